package scf

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const header = `<?xml version='1.0'?>
<!DOCTYPE service_bundle SYSTEM '/usr/share/lib/xml/dtd/service_bundle.dtd.1'>
`

const manifest = header + `<service_bundle type='manifest' name='test'>
<service name='site/thing' type='service' version='1'>
	<single_instance />
	<dependency name='net' grouping='require_all' restart_on='error' type='service'>
		<service_fmri value='svc:/milestone/network' />
		<service_fmri value='svc:/system/identity:node' />
	</dependency>
	<method_context working_directory='/'>
		<method_credential user='root' group='root' />
		<method_environment><envvar name='A' value='1 2' /></method_environment>
	</method_context>
	<exec_method type='method' name='start' exec='/bin/thing %{config/address} &amp;' timeout_seconds='0' />
	<property_group name='config' type='application'>
		<propval name='address' type='astring' value='10.0.0.1' />
		<propval name='many' type='count' value='0x10' />
	</property_group>
	<instance name='one' enabled='false' />
	<instance name='two' enabled='true'>
		<property_group name='config' type='application'>
			<propval name='address' type='astring' value='10.0.0.2' />
		</property_group>
	</instance>
	<stability value='Unstable' />
	<template><common_name><loctext xml:lang='C'> a thing </loctext></common_name></template>
</service>
</service_bundle>
`

func imported(t *testing.T) *Repository {
	t.Helper()
	services, err := Parse([]byte(manifest), "manifest")
	if err != nil {
		t.Fatal(err)
	}
	r := &Repository{}
	r.Import(services, "/var/svc/manifest/site/thing.xml")
	return r
}

func values(g Groups, group, property string) []string {
	if p := g.Find(group).Property(property); p != nil {
		return p.Values
	}
	return nil
}

// service_bundle(5) and lxml_get_* in usr/src/cmd/svc/svccfg/svccfg_xml.c.
func TestManifestBecomesPropertyGroups(t *testing.T) {
	s := imported(t).Service("site/thing")
	for _, c := range []struct {
		group, property string
		want            []string
	}{
		{"net", "entities", []string{"svc:/milestone/network", "svc:/system/identity:node"}},
		{"net", "restart_on", []string{"error"}},
		{"start", "exec", []string{"/bin/thing %{config/address} &"}},
		{"start", "timeout_seconds", []string{"0"}},
		{"method_context", "environment", []string{"A=1 2"}},
		{"method_context", "user", []string{"root"}},
		{"config", "many", []string{"16"}},
		{"general", "single_instance", []string{"true"}},
		{"general", "entity_stability", []string{"Unstable"}},
		{"tm_common_name", "C", []string{"a thing"}},
		{"manifestfiles", "var_svc_manifest_site_thing_xml", []string{"/var/svc/manifest/site/thing.xml"}},
	} {
		if diff := cmp.Diff(c.want, values(s.Groups, c.group, c.property)); diff != "" {
			t.Errorf("%s/%s: %s", c.group, c.property, diff)
		}
	}
}

// libscf's composed property groups join property by property.
func TestInstancePropertiesCoverThoseOfTheService(t *testing.T) {
	s := imported(t).Service("site/thing")
	one, two := s.Composed(s.Instance("one")), s.Composed(s.Instance("two"))
	if got := one.Value("config", "address"); got != "10.0.0.1" {
		t.Errorf("one reads %q", got)
	}
	if got := two.Value("config", "address"); got != "10.0.0.2" {
		t.Errorf("two reads %q", got)
	}
	if got := values(two, "config", "many"); len(got) != 1 {
		t.Errorf("two lost the service's own property: %q", got)
	}
	if one.Value("general", "enabled") != "false" || two.Value("general", "enabled") != "true" {
		t.Error("enabled is the instance's")
	}
}

// The messages of lxml_get_bundle_file and lxml_get_bundle.
func TestBadDocumentsAreRefusedInSvccfgsWords(t *testing.T) {
	for name, c := range map[string]struct{ document, op, want string }{
		"cut short":         {manifest[:len(manifest)-20], "manifest", "couldn't parse document"},
		"two roots":         {manifest + "<service_bundle />", "manifest", "couldn't parse document"},
		"text behind it":    {manifest + "x", "manifest", "couldn't parse document"},
		"a manifest, apply": {manifest, "profile", "document is not a profile."},
		"a profile, import": {strings.Replace(manifest, "type='manifest'", "type='profile'", 1), "manifest", "document is not a manifest."},
	} {
		_, err := Parse([]byte(c.document), c.op)
		if refusal, ok := errors.AsType[*DocumentError](err); !ok || refusal.Text != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// What no manifest of sledctl and of the simulated system has, and what svccfg would
// refuse in words of libxml2.
func TestWhatIsNotSimulatedIsRefused(t *testing.T) {
	const bundle = "a document that is no service bundle"
	for name, c := range map[string]struct{ old, new, want string }{
		"no DTD":              {header, "<?xml version='1.0'?>", bundle},
		"another DTD":         {"dtd.1'>", "dtd.2'>", bundle},
		"another root":        {manifest, header + "<zone/>", bundle},
		"out of order":        {"<single_instance />", "<stability value='Stable' /><single_instance />", "service"},
		"unknown attribute":   {"name='one'", "name='one' bogus='1'", "instance"},
		"missing attribute":   {" version='1'>\n\t<single", ">\n\t<single", "service"},
		"missing element":     {"<loctext xml:lang='C'> a thing </loctext>", "", "common_name"},
		"text":                {"<single_instance />", "x", "service"},
		"bad enumeration":     {"require_all", "require_some", "dependency"},
		"a service to avoid":  {"require_all", "exclude_all", "dependency"},
		"a path":              {"svc:/milestone/network", "file://localhost/etc/x", "service_fmri"},
		"another scope":       {"svc:/milestone/network", "svc://localhost/milestone/network", "service_fmri"},
		"restart at refresh":  {"restart_on='error'", "restart_on='refresh'", "dependency"},
		"a refresh method":    {"name='start'", "name='refresh'", "exec_method"},
		"endless as -1":       {"timeout_seconds='0'", "timeout_seconds='-1'", "exec_method"},
		"bad value":           {"value='0x10'", "value='ten'", "propval"},
		"another type":        {"type='count'", "type='integer'", "propval"},
		"bad service name":    {"site/thing", "site/9", "service"},
		"several values":      {"<propval name='many' type='count' value='0x10' />", "<property name='many' type='count'><count_list><value_node value='1' /></count_list></property>", "property_group"},
		"a restarter":         {"<single_instance />", "<restarter><service_fmri value='svc:/a' /></restarter>", "service"},
		"a dependent":         {"<method_context", "<dependent name='d' grouping='require_all' restart_on='none'><service_fmri value='svc:/a' /></dependent><method_context", "service"},
		"a method profile":    {"<method_credential user='root' group='root' />", "<method_profile name='x' />", "method_context"},
		"a deleted group":     {"<property_group name", "<property_group delete='true' name", "property_group"},
		"a bundle in another": {"</service_bundle>", "<service_bundle type='manifest' name='x' /></service_bundle>", "service_bundle"},
		"documentation":       {"</template>", "<documentation /></template>", "template"},
		"another milestone":   {"name='many' type='count' value='0x10'", "name='milestone' type='astring' value='none'", "propval"},
	} {
		if c.want != bundle {
			c.want = "element " + c.want + " with what stands in it"
		}
		_, err := Parse([]byte(strings.Replace(manifest, c.old, c.new, 1)), "manifest")
		if e, ok := errors.AsType[*UnsimulatedError](err); !ok || e.What != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	for name, body := range map[string]string{
		"no type of a group": "<instance name='one' enabled='true'><property_group name='config' /></instance>",
		"not enabled or off": "<instance name='one' />",
		"a template":         "<template><common_name><loctext xml:lang='C'>a</loctext></common_name></template>",
		"a service's group":  "<property_group name='config' type='application' />",
	} {
		_, err := Parse([]byte(header+"<service_bundle type='profile' name='p'><service name='site/thing' type='service' version='1'>"+body+"</service></service_bundle>"), "profile")
		if _, ok := errors.AsType[*UnsimulatedError](err); !ok {
			t.Errorf("profile with %s: %v", name, err)
		}
	}
}

// svcprop(1): without -c it reads the running snapshot.
func TestEditsReachTheRunningSnapshotWithARefresh(t *testing.T) {
	r := imported(t)
	s := r.Service("site/thing")
	one, two := s.Instance("one"), s.Instance("two")
	Entity{Service: s}.Set("config", "address", "astring", "10.9.9.9")
	if got := s.Snapshot(one).Value("config", "address"); got != "10.0.0.1" {
		t.Errorf("before the refresh: %q", got)
	}
	if got := s.Composed(one).Value("config", "address"); got != "10.9.9.9" {
		t.Errorf("live: %q", got)
	}
	one.Refresh()
	if got := s.Snapshot(one).Value("config", "address"); got != "10.9.9.9" {
		t.Errorf("after the refresh: %q", got)
	}
	if got := s.Snapshot(two).Value("config", "address"); got != "10.0.0.2" {
		t.Errorf("the other instance: %q", got)
	}
}

// svccfg(8), import: what an administrator has changed is kept.
func TestImportKeepsAdministratorsChanges(t *testing.T) {
	r := imported(t)
	s := r.Service("site/thing")
	Entity{Service: s, Instance: s.Instance("one")}.Set("general", "enabled", "boolean", "true")
	newer, err := Parse([]byte(strings.Replace(manifest, "10.0.0.1", "10.0.0.8", 1)), "manifest")
	if err != nil {
		t.Fatal(err)
	}
	r.Import(newer, "/var/svc/manifest/site/thing.xml")
	if got := s.Groups.Value("config", "address"); got != "10.0.0.8" {
		t.Errorf("untouched property: %q, want the new manifest's", got)
	}
	if got := s.Instance("one").Groups.Value("general", "enabled"); got != "true" {
		t.Errorf("changed property: %q, want the administrator's", got)
	}
}

// svccfg(8), apply.
func TestProfileOverridesWhatIsThere(t *testing.T) {
	r := imported(t)
	profile := header + `<service_bundle type='profile' name='site'>
<service name='site/thing' type='service' version='1'>
	<instance name='one' enabled='true'>
		<property_group name='config' type='application'><propval name='address' type='astring' value='a &amp; "b"' /></property_group>
	</instance>
	<instance name='three' enabled='true' />
</service>
<service name='site/none' type='service' version='1' />
</service_bundle>`
	services, err := Parse([]byte(profile), "profile")
	if err != nil {
		t.Fatal(err)
	}
	r.Apply(services)
	s := r.Service("site/thing")
	if got := s.Snapshot(s.Instance("one")).Value("config", "address"); got != `a & "b"` {
		t.Errorf("address: %q", got)
	}
	if s.Instance("one").Groups.Value("general", "enabled") != "true" {
		t.Error("not enabled")
	}
	if s.Instance("three") != nil || r.Service("site/none") != nil {
		t.Error("a profile made an instance")
	}
}

// svccfg cleanup deletes what no manifest delivers.
func TestCleanupDeletesServicesWithoutTheirManifest(t *testing.T) {
	r := imported(t)
	r.AddService("site/by-hand")
	r.SetHash("/var/svc/manifest/site/thing.xml", "x")
	r.Cleanup(func(string) bool { return true })
	if r.Service("site/thing") == nil || r.Hash("/var/svc/manifest/site/thing.xml") == "" {
		t.Error("the service is gone with its manifest there")
	}
	r.Cleanup(func(string) bool { return false })
	if r.Hash("/var/svc/manifest/site/thing.xml") != "" {
		t.Error("the hash is still there")
	}
	if r.Service("site/thing") != nil || r.Service("site/by-hand") == nil {
		t.Error("the wrong service is gone")
	}
}

// scf_walk_fmri, for full names.
func TestFullNames(t *testing.T) {
	r := imported(t)
	for name, want := range map[string][]string{
		"svc:/site/thing:two":  {"svc:/site/thing:two"},
		"svc:/site/thing":      {"svc:/site/thing:one", "svc:/site/thing:two"},
		"svc:/site/thing:nine": nil,
		"svc:/site/no":         nil,
	} {
		f, ok := ParseFMRI(name)
		var got []string
		for _, e := range r.Instances(f) {
			got = append(got, e.FMRI())
		}
		if diff := cmp.Diff(want, got); diff != "" || !ok {
			t.Errorf("%s: %v, %s", name, ok, diff)
		}
	}
	for _, other := range []string{"", "thing", "svc:/", "svc://localhost/site/thing", "svc:/site/*", "svc:/site/thing:one/:properties/config", "svc:/site/thing:", "lrc:/etc/rc2_d/S20x"} {
		if f, ok := ParseFMRI(other); ok {
			t.Errorf("%q is %v", other, f)
		}
	}
}

// mhash_filename_to_propname in usr/src/cmd/svc/common/manifest_hash.c.
func TestHashNames(t *testing.T) {
	for path, want := range map[string]string{
		"/lib/svc/manifest/milestone/single-user.xml": "lib_svc_manifest_milestone_single-user_xml",
		"/var/svc/profile/site.xml":                   "var_svc_profile_site_xml",
		"/9/x":                                        "A_x",
	} {
		if got := HashName(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// scf_value_set_from_string(3SCF).
func TestValues(t *testing.T) {
	for _, c := range []struct {
		typ, value, want string
		ok               bool
	}{
		{"boolean", "t", "true", true}, {"boolean", "yes", "", false},
		{"count", "18446744073709551615", "18446744073709551615", true}, {"count", "-1", "", false},
		{"astring", "", "", true},
	} {
		got, ok := Normalize(c.typ, c.value)
		if ok != c.ok || ok && got != c.want {
			t.Errorf("%s %q: %q, %v", c.typ, c.value, got, ok)
		}
	}
}

func TestRepositorySurvivesItsFile(t *testing.T) {
	r := imported(t)
	s := r.Service("site/thing")
	Entity{Service: s}.Set("config", "address", "astring", "changed")
	r.SetHash("/var/svc/manifest/site/thing.xml", Sum([]byte(manifest)))
	data, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, back); diff != "" {
		t.Error(diff)
	}
	for _, bad := range [][]byte{nil, []byte("SQLite"), data[:len(data)/2]} {
		if _, err := Decode(bad); !errors.Is(err, ErrNotRepository) {
			t.Errorf("%.20q: %v", bad, err)
		}
	}
}

// A snapshot is what was there at the last refresh, whatever the edits.
func TestSnapshotsAreFrozen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &Repository{}
		r.AddService("a")
		s := r.Service("a")
		s.AddInstance("i")
		i := s.Instance("i")
		i.Refresh()
		frozen := s.Composed(i).clone()
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			e := Entity{Service: s}
			if rapid.Bool().Draw(t, "instance") {
				e.Instance = i
			}
			group := rapid.SampledFrom([]string{"x", "y"}).Draw(t, "group")
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				e.AddGroup(group, "application")
			case 1:
				if e.Groups().Find(group) != nil {
					e.Set(group, "p", "count", rapid.SampledFrom([]string{"1", "2"}).Draw(t, "value"))
				}
			case 2:
				i.Refresh()
				frozen = s.Composed(i).clone()
			}
			if diff := cmp.Diff(frozen, s.Snapshot(i).clone()); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(manifest))
	f.Add([]byte(header + "<service_bundle type='manifest' name='x'/>"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, op := range []string{"manifest", "profile"} {
			b, err := Parse(data, op)
			if err != nil {
				continue
			}
			r := &Repository{}
			touched := r.Import(b, "/x.xml")
			if !slices.IsSorted(touched) {
				t.Errorf("touched: %q", touched)
			}
			r.Apply(b)
		}
	})
}
