package smf

import (
	"encoding/xml"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func oneProperty(p ProfileProperty) Profile {
	return Profile{Name: "sledctl", Services: []ProfileService{{
		Name: "system/illumos/propolis-server", Instance: "default", Enabled: true,
		Groups: []ProfileGroup{{Name: "config", Type: "application", Properties: []ProfileProperty{p}}},
	}}}
}

func TestRenderProfile(t *testing.T) {
	p := oneProperty(ProfileProperty{Name: "address", Type: "astring", Values: []string{`a<b & "c"`}})
	p.Services[0].Groups[0].Properties = append(p.Services[0].Groups[0].Properties,
		ProfileProperty{Name: "dns", Type: "astring", Values: []string{"10.0.0.1", "10.0.0.2"}},
		ProfileProperty{Name: "none", Type: "count"})
	const want = `<?xml version="1.0"?>
<!DOCTYPE service_bundle SYSTEM "/usr/share/lib/xml/dtd/service_bundle.dtd.1">
<service_bundle type="profile" name="sledctl">
  <service name="system/illumos/propolis-server" type="service" version="1">
    <instance name="default" enabled="true">
      <property_group name="config" type="application">
        <propval name="address" type="astring" value="a&lt;b &amp; &#34;c&#34;"/>
        <property name="dns" type="astring">
          <astring_list>
            <value_node value="10.0.0.1"/>
            <value_node value="10.0.0.2"/>
          </astring_list>
        </property>
        <property name="none" type="count"/>
      </property_group>
    </instance>
  </service>
</service_bundle>
`
	if diff := cmp.Diff(want, string(RenderProfile(p))); diff != "" {
		t.Error(diff)
	}
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
}

// Whatever Validate lets pass comes back from a parser as it was.
func TestProfileValuesSurviveTheDocument(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.String(), 1, 4).Draw(t, "values")
		p := oneProperty(ProfileProperty{Name: "x", Type: "astring", Values: values})
		if p.Validate() != nil {
			t.Skip("refused")
		}
		var doc struct {
			Propvals []struct {
				Value string `xml:"value,attr"`
			} `xml:"service>instance>property_group>propval"`
			Nodes []struct {
				Value string `xml:"value,attr"`
			} `xml:"service>instance>property_group>property>astring_list>value_node"`
		}
		if err := xml.Unmarshal(RenderProfile(p), &doc); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, v := range slices.Concat(doc.Propvals, doc.Nodes) {
			got = append(got, v.Value)
		}
		if diff := cmp.Diff(values, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestProfilesThatSMFWouldNotTakeAreRefused(t *testing.T) {
	for name, spoil := range map[string]func(*Profile){
		"no name":       func(p *Profile) { p.Name = "" },
		"service name":  func(p *Profile) { p.Services[0].Name = "site/9" },
		"empty part":    func(p *Profile) { p.Services[0].Name = "site//a" },
		"instance name": func(p *Profile) { p.Services[0].Instance = "a b" },
		"group name":    func(p *Profile) { p.Services[0].Groups[0].Name = "" },
		"group type":    func(p *Profile) { p.Services[0].Groups[0].Type = "<" },
		"property name": func(p *Profile) { p.Services[0].Groups[0].Properties[0].Name = "a/b" },
		"property type": func(p *Profile) { p.Services[0].Groups[0].Properties[0].Type = "string" },
		"control byte":  func(p *Profile) { p.Services[0].Groups[0].Properties[0].Values = []string{"a\x01"} },
		"not UTF-8":     func(p *Profile) { p.Services[0].Groups[0].Properties[0].Values = []string{"\xff"} },
	} {
		p := oneProperty(ProfileProperty{Name: "x", Type: "astring", Values: []string{"1"}})
		spoil(&p)
		err := p.Validate()
		if _, ok := errors.AsType[*ProfileError](err); !ok {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "profile: ") {
			t.Errorf("%s: %q", name, err)
		}
	}
}
