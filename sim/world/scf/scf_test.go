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
		<property name='many' type='count'><count_list><value_node value='1' /><value_node value='0x10' /></count_list></property>
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
	b, err := Parse([]byte(manifest), "manifest")
	if err != nil {
		t.Fatal(err)
	}
	r := &Repository{}
	r.Import(b, "/var/svc/manifest/site/thing.xml")
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
		{"config", "many", []string{"1", "16"}},
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
	if got := values(two, "config", "many"); len(got) != 2 {
		t.Errorf("two lost the service's own property: %q", got)
	}
	if one.Value("general", "enabled") != "false" || two.Value("general", "enabled") != "true" {
		t.Error("enabled is the instance's")
	}
}

// The messages of lxml_get_bundle_file, lxml_get_bundle and lxml_get_instance.
func TestBadDocumentsAreRefusedInSvccfgsWords(t *testing.T) {
	body := strings.TrimPrefix(manifest, header)
	for name, c := range map[string]struct{ document, op, want string }{
		"cut short":         {manifest[:len(manifest)-20], "manifest", "couldn't parse document"},
		"no DTD":            {"<?xml version='1.0'?>" + body, "manifest", "document has no DTD"},
		"another DTD":       {strings.Replace(manifest, "dtd.1'>", "dtd.2'>", 1), "manifest", "document DTD unknown; not service bundle?"},
		"another root":      {header + "<zone/>", "manifest", "document is not a service bundle"},
		"a manifest, apply": {manifest, "profile", "document is not a profile."},
		"a profile, import": {strings.Replace(manifest, "type='manifest'", "type='profile'", 1), "manifest", "document is not a manifest."},
		"out of order": {strings.Replace(manifest, "<single_instance />", "<stability value='Stable' /><single_instance />", 1),
			"manifest", "Document is not valid."},
		"unknown attribute": {strings.Replace(manifest, "name='one'", "name='one' bogus='1'", 1), "manifest", "Document is not valid."},
		"missing attribute": {strings.Replace(manifest, " version='1'>\n\t<single", ">\n\t<single", 1), "manifest", "Document is not valid."},
		"bad enumeration":   {strings.Replace(manifest, "require_all", "require_some", 1), "manifest", "Document is not valid."},
		"bad value":         {strings.Replace(manifest, "value='0x10'", "value='ten'", 1), "manifest", `Value "ten" is not a valid count.`},
		"bad service name":  {strings.Replace(manifest, "site/thing", "site/9", 1), "manifest", "invalid value"},
		"no bundle name":    {strings.Replace(manifest, "name='test'", "name=''", 1), "manifest", "service bundle lacks name attribute"},
		"list of another type": {strings.ReplaceAll(manifest, "count_list", "integer_list"), "manifest",
			`property "many" type "count" does not match list type "integer"`},
	} {
		_, err := Parse([]byte(c.document), c.op)
		var refusal *DocumentError
		if !errors.As(err, &refusal) || !strings.Contains(refusal.Text, c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
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

// svccfg(8), apply; find_current_pg_type for the types left out.
func TestProfileOverridesWhatIsThere(t *testing.T) {
	r := imported(t)
	profile := header + `<service_bundle type='profile' name='site'>
<service name='site/thing' type='service' version='1'>
	<instance name='one' enabled='true'>
		<property_group name='config'><propval name='address' value='a &amp; "b"' /></property_group>
	</instance>
	<instance name='three' enabled='true' />
</service>
<service name='site/none' type='service' version='1' />
</service_bundle>`
	b, err := Parse([]byte(profile), "profile")
	if err != nil {
		t.Fatal(err)
	}
	touched, warnings, err := r.Apply(b)
	if err != nil {
		t.Fatal(err)
	}
	s := r.Service("site/thing")
	if got := s.Snapshot(s.Instance("one")).Value("config", "address"); got != `a & "b"` {
		t.Errorf("address: %q", got)
	}
	if s.Instance("one").Groups.Value("general", "enabled") != "true" {
		t.Error("not enabled")
	}
	if diff := cmp.Diff([]string{"svc:/site/thing:one"}, touched); diff != "" {
		t.Error(diff)
	}
	want := []string{"Ignoring nonexistent instance site/thing:three.", "Ignoring nonexistent service site/none."}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Error(diff)
	}
}

func TestProfileWithAnUnknownTypeFails(t *testing.T) {
	r := imported(t)
	b, err := Parse([]byte(header+`<service_bundle type='profile' name='site'><service name='site/thing' type='service' version='1'>
<instance name='one' enabled='true'><property_group name='other'><propval name='x' value='1'/></property_group></instance>
</service></service_bundle>`), "profile")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Apply(b); err == nil || !strings.HasPrefix(err.Error(), "Could not find property group type") {
		t.Errorf("error %v", err)
	}
}

// svccfg cleanup deletes what no manifest delivers.
func TestCleanupDeletesServicesWithoutTheirManifest(t *testing.T) {
	r := imported(t)
	r.AddService("site/by-hand")
	if gone := r.Cleanup(func(string) bool { return true }); len(gone) != 0 {
		t.Errorf("gone: %q", gone)
	}
	gone := r.Cleanup(func(string) bool { return false })
	if diff := cmp.Diff([]string{"svc:/site/thing:one", "svc:/site/thing:two"}, gone); diff != "" {
		t.Error(diff)
	}
	if r.Service("site/thing") != nil || r.Service("site/by-hand") == nil {
		t.Error("the wrong service is gone")
	}
}

// svcs(1), "FMRI|pattern"; scf_walk_fmri.
func TestPatterns(t *testing.T) {
	r := imported(t)
	r.AddService("network/smtp")
	r.Service("network/smtp").AddInstance("sendmail")
	for pattern, want := range map[string][]string{
		"svc:/network/smtp:sendmail":           {"svc:/network/smtp:sendmail"},
		"svc://localhost/network/smtp":         {"svc:/network/smtp:sendmail"},
		"network/smtp:sendmail":                {"svc:/network/smtp:sendmail"},
		"network/*mail":                        {"svc:/network/smtp:sendmail"},
		"network/smtp":                         {"svc:/network/smtp:sendmail"},
		"smtp:sendmail":                        {"svc:/network/smtp:sendmail"},
		"smtp":                                 {"svc:/network/smtp:sendmail"},
		"sendmail":                             {"svc:/network/smtp:sendmail"},
		"mtp":                                  nil,
		"thing":                                {"svc:/site/thing:one", "svc:/site/thing:two"},
		"svc:/site/thing":                      {"svc:/site/thing:one", "svc:/site/thing:two"},
		"*:one":                                {"svc:/site/thing:one"},
		"svc:/site/[a-z]hin?:*":                {"svc:/site/thing:one", "svc:/site/thing:two"},
		"*":                                    {"svc:/site/thing:one", "svc:/site/thing:two", "svc:/network/smtp:sendmail"},
		"svc:/site/thing:nine":                 nil,
		"svc:/site/thing:one/:properties/conf": {"svc:/site/thing:one"},
	} {
		var got []string
		for _, m := range r.Matches(pattern, false) {
			got = append(got, m.FMRI())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", pattern, diff)
		}
	}
	if m := r.Matches("svc:/site/thing", true); len(m) != 1 || m[0].Instance != nil {
		t.Errorf("a full FMRI of a service, with services wanted: %v", m)
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
		{"integer", "-5", "-5", true}, {"integer", "x", "", false},
		{"time", "1.5", "1.500000000", true}, {"time", "x", "", false},
		{"opaque", "00FF", "00ff", true}, {"opaque", "0", "", false},
		{"fmri", "svc:/a", "svc:/a", true}, {"fmri", "a", "", false},
		{"net_address_v4", "10.0.0.1/8", "10.0.0.1/8", true}, {"net_address_v4", "::1", "", false},
		{"net_address_v6", "::1", "::1", true}, {"host", "a.b-c", "a.b-c", true}, {"hostname", "-a", "", false},
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
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				e.AddGroup(group, "application", false)
			case 1:
				e.DeleteGroup(group)
			case 2:
				if e.Groups().Find(group) != nil {
					e.Set(group, "p", "count", rapid.SampledFrom([]string{"1", "2"}).Draw(t, "value"))
				}
			case 3:
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
			if _, _, err := r.Apply(b); err != nil {
				continue
			}
		}
	})
}
