package reap

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/sled/network"
	"github.com/sledctl/sledctl/vnic"
	"github.com/sledctl/sledctl/zone"
)

func TestPatterns(t *testing.T) {
	dataset := Object{Kind: KindDataset, Name: "rpool/zone/a"}
	for pattern, want := range map[string]bool{
		"dataset": true, "*": true, "zone": false, "dataset/rpool/zone/a": true, "dataset/rpool/*": true, "*/*zone*": true, "dataset/*/a": true,
		"dataset/rpool": false, "dataset/": false, "zone/*": false, "dataset/*b": false, "dataset/*rpool/zone/a*": true, "dataset/a*": false,
	} {
		p, err := ParsePattern(pattern)
		if err != nil || p.Fits(dataset) != want {
			t.Errorf("%s: %v, %v", pattern, p.Fits(dataset), err)
		}
	}
	for _, bad := range []string{"", "datasets", "/x", "vnics/*"} {
		if _, err := ParsePattern(bad); err == nil {
			t.Errorf("%q is a pattern", bad)
		} else if _, ok := errors.AsType[*PatternError](err); !ok {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// A star fits what .* of a regular expression fits.
func TestStarsFitAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`[ab/*]{0,8}`).Draw(t, "pattern")
		name := rapid.StringMatching(`[ab/]{0,10}`).Draw(t, "name")
		want := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + "$").MatchString(name)
		if got := fits(pattern, name); got != want {
			t.Errorf("%q fits %q: %v", pattern, name, got)
		}
	})
}

// goers are the objects that go, by kind and name.
func goers(f Findings) []string {
	var all []string
	for _, o := range f.Objects {
		if o.Removed {
			all = append(all, o.Kind+" "+o.Name)
		}
	}
	return all
}

// full is a sled with an instance, a protected one, one that is being worked
// on, a stray VM, held and lent VNICs, and the sled's network.
func full(t *testing.T) *scene {
	s := empty()
	zone3, zone4 := "propolis_instance_8c4a2b1e-6a57-4a5c-9d3e-000000000003", "propolis_instance_8c4a2b1e-6a57-4a5c-9d3e-000000000004"
	s.fact(t, "network", network.Record{Etherstub: "stub0", GZVNIC: "gz0"})
	s.link("gz0", "02:08:20:00:00:07", "")
	s.base(t, base1, 1, true)
	s.base(t, base2, 2, true)
	s.zone(zone1, zone.Running)
	s.record(t, "web1", run(zone1, "vnic_propolis1"))
	s.link("vnic_propolis1", "02:08:20:00:00:01", zone1)
	s.clone("rpool/zone/"+zone1+"/zbe", "rpool/zone/"+base1+"/zbe@"+zone1+"_snap")
	s.zone(zone2, zone.Running)
	s.facts = append(s.facts, protectedFact(t, "web2", run(zone2, "vnic_propolis2")))
	s.link("vnic_propolis2", "02:08:20:00:00:01", zone2)
	s.clone("rpool/zone/"+zone2+"/zbe", "rpool/zone/"+base2+"/zbe@"+zone2+"_snap")
	s.zone(zone3, zone.Running)
	s.zone(zone4, zone.Incomplete)
	s.intent(t, "instance/4", true, operation.Intent{Makes: []operation.Object{{Kind: "zone", Name: zone4}, {Kind: "vnic", Name: "vnic_propolis4"}}})
	s.link("vnic_propolis4", "02:08:20:00:00:04", "")
	s.link("vnic_propolis5", "02:08:20:00:00:05", "")
	s.hold(t, "vnic_propolis5", now().Add(time.Hour))
	s.Zones = append(s.Zones, zone.Zone{Name: "mail", State: zone.Running, Path: "/zone/mail"})
	s.link("vnic_propolis6", "02:08:20:00:00:06", "mail")
	s.link("mail0", "02:08:20:00:00:09", "")
	return s
}

func TestAllTakesWhatIsOursAndNoMore(t *testing.T) {
	f := full(t).judgeAs(t, Choice{All: true})
	want := []string{
		"zone " + base1, "zone " + zone1, "zone propolis_instance_8c4a2b1e-6a57-4a5c-9d3e-000000000003", "vnic vnic_propolis1", "vnic vnic_propolis5",
	}
	if d := cmp.Diff(want, goers(f)); d != "" {
		t.Error(d)
	}
	before := behind(t, f.removal(bundler{}).Plan)
	if !slices.Contains(before["zone.uninstall "+base1], "zone.delete "+zone1) {
		t.Errorf("the base goes behind %q", before["zone.uninstall "+base1])
	}
	if len(goers(full(t).judge(t))) != 0 {
		t.Error("something would go without --all")
	}
}

func TestWhatIsLeftOutStays(t *testing.T) {
	scene := func() *scene {
		s := empty()
		s.zone(zone1, zone.Down)
		s.link("vnic_propolis1", "02:08:20:00:00:01", zone1)
		s.link("vnic_propolis2", "02:08:20:00:00:02", "")
		return s
	}
	pattern := func(s string) []Pattern {
		p, err := ParsePattern(s)
		if err != nil {
			t.Fatal(err)
		}
		return []Pattern{p}
	}
	for name, c := range map[string]struct {
		choice Choice
		want   []string
	}{
		"nothing is left out":              {Choice{}, []string{"zone " + zone1, "vnic vnic_propolis1", "vnic vnic_propolis2"}},
		"one kind only":                    {Choice{Include: pattern("vnic")}, []string{"vnic vnic_propolis2"}}, // the other one is the zone's, which stays
		"a zone, whose VNIC stays with it": {Choice{Exclude: pattern("zone")}, []string{"vnic vnic_propolis2"}},
		"one by its name":                  {Choice{Exclude: pattern("vnic/*2")}, []string{"zone " + zone1, "vnic vnic_propolis1"}},
		"out wins over in":                 {Choice{Include: pattern("vnic/*2"), Exclude: pattern("vnic")}, nil},
	} {
		if d := cmp.Diff(c.want, goers(scene().judgeAs(t, c.choice))); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// What may be adopted is no orphan: it goes where it is named, or where all goes.
func TestWhatCanBeAdoptedGoesByItsName(t *testing.T) {
	name := "rpool/zone/" + zone1
	for what, c := range map[string]struct {
		choice Choice
		want   []string
	}{
		"by itself":          {Choice{}, nil},
		"with all":           {Choice{All: true}, []string{"dataset " + name}},
		"with its kind":      {Choice{Include: []Pattern{{"dataset", "*"}}}, nil},
		"named":              {Choice{Include: []Pattern{{"dataset", name}}}, []string{"dataset " + name}},
		"named and left out": {Choice{Include: []Pattern{{"dataset", name}}, Exclude: []Pattern{{"*", "*"}}}, nil},
	} {
		s := empty()
		s.noted(zone1)
		if d := cmp.Diff(c.want, goers(s.judgeAs(t, c.choice))); d != "" {
			t.Errorf("%s: %s", what, d)
		}
	}
}

// A saved plan and the sled as it is: what is removed is in both, and is the same.
func TestASavedPlanRemovesTheIntersection(t *testing.T) {
	first := func() *scene {
		s := empty()
		s.zone(zone1, zone.Installed)
		s.link("vnic_propolis1", "02:08:20:00:00:01", "")
		s.link("vnic_propolis2", "02:08:20:00:00:02", "")
		return s
	}
	saved := first().judge(t).Objects
	for name, c := range map[string]struct {
		change func(*scene)
		want   []string
		told   []string
	}{
		"nothing has changed": {func(*scene) {}, []string{"zone " + zone1, "vnic vnic_propolis1", "vnic vnic_propolis2"}, nil},
		"one is gone": {func(s *scene) { s.Links = s.Links[:3] }, []string{"zone " + zone1, "vnic vnic_propolis1"},
			[]string{"vnic_propolis2 no longer exists"}},
		"one is another": {func(s *scene) { s.Links[2].MAC = "02:08:20:00:00:99" }, []string{"zone " + zone1, "vnic vnic_propolis2"},
			[]string{"vnic_propolis1 is another one: 02:08:20:00:00:99, and the plan has 02:08:20:00:00:01"}},
		"one was reinstalled": {func(s *scene) { s.Zones[1].UUID = "another" }, []string{"vnic vnic_propolis1", "vnic vnic_propolis2"},
			[]string{zone1 + " is another one"}},
		"one is needed now": {func(s *scene) { s.record(t, "web1", run(zone1, "vnic_propolis1")) }, []string{"vnic vnic_propolis2"},
			[]string{zone1 + " is in use now: instance web1", "vnic_propolis1 is in use now"}},
		"there is more now": {func(s *scene) { s.link("vnic_propolis3", "02:08:20:00:00:03", "") },
			[]string{"zone " + zone1, "vnic vnic_propolis1", "vnic vnic_propolis2"}, nil},
		"one runs now": {func(s *scene) { s.Zones[1].State = zone.Running }, []string{"vnic vnic_propolis1", "vnic vnic_propolis2"},
			[]string{zone1 + " is adoptable now"}},
	} {
		s := first()
		c.change(s)
		f := s.judgeAs(t, Choice{Plan: saved})
		if d := cmp.Diff(c.want, goers(f)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		var told []string
		for _, x := range f.Changed {
			told = append(told, x.Name+" "+x.Now)
		}
		if len(told) != len(c.told) {
			t.Errorf("%s: %q", name, told)
			continue
		}
		for i, want := range c.told {
			if !strings.HasPrefix(told[i], want) {
				t.Errorf("%s: %q, want %q", name, told[i], want)
			}
		}
	}
}

func TestAnEmptyPlanRemovesNothing(t *testing.T) {
	s := empty()
	s.zone(zone1, zone.Installed)
	s.hold(t, "vnic_propolis4", now().Add(-time.Minute))
	if f := s.judgeAs(t, Choice{Plan: []Object{}}); len(goers(f)) != 0 || !f.removal(bundler{}).Plan.Empty() {
		t.Error(goers(f))
	}
}

// Whatever the sled, --all never takes what is foreign, protected, at work or
// a zone's that stays.
func TestAllIsNeverForeign(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := world().Draw(t, "world")
		s.Links = append(s.Links, vnic.Link{Name: "propolis_gz0", Class: "vnic", Over: "stub0"})
		s.fact(t, "network", network.Record{GZVNIC: "propolis_gz0", Etherstub: "stub0"})
		f := s.judgeAs(t, Choice{All: true})
		behind(t, f.removal(bundler{}).Plan)
		for _, o := range f.Objects {
			l, _ := f.inv.Link(o.Name)
			switch {
			case !o.Removed:
			case o.Verdict == InProgress, o.Verdict == Unknown, o.Name == "mail", o.Name == "db", o.Name == "mail0", o.Name == "propolis_gz0", o.Name == "rpool/data":
				t.Errorf("%s %s goes: %s, %s", o.Kind, o.Name, o.Verdict, o.Reason)
			case o.Kind == KindVNIC && l.Zone != "" && !f.goes["zone "+l.Zone]:
				t.Errorf("%s is in the zone %s, which stays", o.Name, l.Zone)
			}
		}
		for origin, clones := range f.clones {
			for _, clone := range clones {
				if f.leaves(strings.SplitN(origin, "@", 2)[0]) && !f.leaves(clone) && !strings.HasPrefix(clone, strings.SplitN(origin, "@", 2)[0]) {
					t.Errorf("%s goes, and %s is cloned from it", origin, clone)
				}
			}
		}
	})
}
