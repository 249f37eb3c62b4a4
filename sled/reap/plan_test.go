package reap

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/zfs"
	"github.com/sledctl/sledctl/zone"
)

// behind lists, for each action, all that must be done before it.
func behind(t operationtest.T, p plan.Plan) map[string][]string {
	sorted, err := p.Sorted()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, a := range sorted.Actions {
		for _, id := range a.After {
			all[a.ID] = append(append(all[a.ID], id), all[id]...)
		}
	}
	return all
}

func TestAZoneGoesBeforeItsVNICsAndItsDatasets(t *testing.T) {
	s := empty()
	s.base(t, base1, 1, true)
	s.zone(zone1, zone.Down)
	s.link("vnic_propolis0", "02:08:20:00:00:01", zone1)
	s.clone("rpool/zone/"+zone1+"/zbe", "rpool/zone/"+base1+"/zbe@"+zone1+"_snap")
	s.snapshot("rpool/zone/" + base1 + "@" + zone1 + "_snap")
	s.zone(zone2, zone.Configured)
	s.Configs[zone2] = zone.Config{Nets: []zone.Net{{Physical: "vnic_propolis1"}}}
	s.link("vnic_propolis1", "02:08:20:00:00:02", "")
	s.dataset("rpool/zone/" + zone2 + "/a")
	s.dataset("rpool/zone/" + zone2 + "/a/b")
	s.snapshot("rpool/zone/" + zone2 + "/a@s")
	f := s.judge(t)
	d := f.removal(bundler{})
	before := behind(t, d.Plan)
	for _, c := range []struct{ later, earlier string }{
		{"zone.uninstall " + zone1, "zone.halt " + zone1},
		{"zone.delete " + zone1, "zone.uninstall " + zone1},
		{"vnic.delete vnic_propolis0", "zone.delete " + zone1},
		{"zfs.destroy-snapshots rpool/zone/" + base1 + "@" + zone1 + "_snap", "zone.delete " + zone1},
		{"vnic.delete vnic_propolis1", "zone.delete " + zone2},
		{"zfs.destroy rpool/zone/" + zone2, "zone.delete " + zone2},
		{"zfs.destroy rpool/zone/" + zone2, "zfs.destroy rpool/zone/" + zone2 + "/a"},
		{"zfs.destroy rpool/zone/" + zone2 + "/a", "zfs.destroy rpool/zone/" + zone2 + "/a/b"},
		{"zfs.destroy rpool/zone/" + zone2 + "/a", "zfs.destroy-snapshot rpool/zone/" + zone2 + "/a@s"},
	} {
		if !slices.Contains(before[c.later], c.earlier) {
			t.Errorf("%s does not come after %s, but after %q", c.later, c.earlier, before[c.later])
		}
	}
	if d.Plan.Policy != plan.Continue {
		t.Errorf("policy %s", d.Plan.Policy)
	}
	for _, o := range d.Intent.Removes {
		if o.Identity == "" && o.Name != zone2 { // one that is configured has no uuid
			t.Errorf("%s %s is removed without saying which", o.Kind, o.Name)
		}
	}
}

// What lies in two things that go is removed once.
func TestAnUnfinishedBaseWithoutAZoneGoesWithAllThatClonesLeftOnIt(t *testing.T) {
	s := empty()
	s.base(t, base1, 1, true)
	s.Zones = s.Zones[:1]
	s.snapshot("rpool/zone/" + base1 + "@" + zone1 + "_snap")
	s.snapshot("rpool/zone/" + base1 + "/zbe@" + zone1 + "_snap")
	f := s.judge(t)
	before := behind(t, f.removal(bundler{}).Plan)
	if got := before["zfs.destroy rpool/zone/"+base1]; len(got) != 6 && len(slices.Compact(slices.Sorted(slices.Values(got)))) != 3 {
		t.Errorf("behind %q", got)
	}
}

// world is some sled and some ledger, as they might be after anything.
func world() *rapid.Generator[*scene] {
	return rapid.Custom(func(t *rapid.T) *scene {
		s := empty()
		states := []zone.State{zone.Configured, zone.Incomplete, zone.Installed, zone.Ready, zone.Mounted, zone.Running, zone.ShuttingDown, zone.Down}
		names := []string{zone1, zone2, "propolis_instance_x", "oxz_propolis-server_8c4a2b1e-6a57-4a5c-9d3e-000000000003", "mail", "db"}
		for _, n := range []int{1, 2} {
			if name := fmt.Sprintf("propolis_base_rpool_%d", n); rapid.Bool().Draw(t, name) {
				s.base(t, name, n, rapid.Bool().Draw(t, "finished"))
				if rapid.IntRange(0, 4).Draw(t, "base's zone is gone") == 0 {
					s.Zones = s.Zones[:len(s.Zones)-1]
				} else if rapid.IntRange(0, 4).Draw(t, "base runs") == 0 {
					s.Zones[len(s.Zones)-1].State = zone.Running
				}
			}
		}
		for i, name := range names {
			if rapid.Bool().Draw(t, "zone "+name) {
				s.zone(name, rapid.SampledFrom(states).Draw(t, "state"))
				s.Zones[len(s.Zones)-1].Brand = rapid.SampledFrom([]string{"sparse", "omicron1"}).Draw(t, "brand")
			} else if rapid.Bool().Draw(t, "dataset "+name) {
				s.home(name, naming.PropertyInstance)
			}
			if name == "mail" || name == "db" {
				for j := range s.Datasets { // theirs carry no mark
					if s.Datasets[j].Name == "rpool/zone/"+name {
						s.Datasets[j].User = nil
					}
				}
			}
			if rapid.Bool().Draw(t, "children") {
				s.dataset("rpool/zone/" + name + "/zbe")
				s.snapshot("rpool/zone/" + name + "/zbe@s")
			}
			if base := rapid.SampledFrom([]string{"", base1, base2}).Draw(t, "cloned from"); base != "" {
				s.clone(fmt.Sprintf("rpool/zone/%s/clone", name), fmt.Sprintf("rpool/zone/%s@%s_snap", base, name))
			}
			link := fmt.Sprintf("vnic_propolis%d", i)
			if rapid.Bool().Draw(t, "link") {
				s.link(link, rapid.SampledFrom([]string{"02:08:20:00:00:01", "02:08:20:00:00:02"}).Draw(t, "mac"), "")
				if z := len(s.Zones) - 1; z > 0 && s.Zones[z].State == zone.Running && rapid.Bool().Draw(t, "lent") {
					s.Links[len(s.Links)-1].Zone = s.Zones[z].Name
				}
			}
			if rapid.Bool().Draw(t, "recorded") {
				r := run(name, link)
				r.Boot = rapid.SampledFrom([]string{thisBoot, earlierBoot}).Draw(t, "boot")
				r.Ensured, r.Base = rapid.Bool().Draw(t, "ensured"), rapid.SampledFrom([]string{base1, base2}).Draw(t, "base")
				s.record(t, "i"+fmt.Sprint(i), r)
			}
			if rapid.Bool().Draw(t, "held") {
				s.hold(t, link, now().Add(time.Duration(rapid.IntRange(-1, 1).Draw(t, "hours"))*time.Hour))
			}
			if rapid.IntRange(0, 3).Draw(t, "intent") == 0 {
				s.intent(t, fmt.Sprint("instance/", i), rapid.Bool().Draw(t, "alive"), operation.Intent{
					Makes: []operation.Object{{Kind: "zone", Name: name}, {Kind: "dataset", Name: "rpool/zone/" + name}, {Kind: "vnic", Name: link}}, Base: base1})
			}
		}
		s.link("mail0", "02:08:20:00:00:09", "")
		origin := rapid.SampledFrom([]string{"", "rpool/zone/" + base1 + "/zbe@s", "rpool/zone/" + zone1 + "/zbe@s"}).Draw(t, "a foreign clone")
		s.dataset("rpool/data").Origin = origin
		if origin != "" && !slices.ContainsFunc(s.Datasets, func(d zfs.Dataset) bool { return d.Name == origin }) {
			s.snapshot(origin)
		}
		return s
	})
}

// Whatever sled and ledger look like: no action touches what is foreign, what
// runs, what is being worked on, what is held, or what an instance of this
// boot has; and the plan can be done.
func TestNothingThatIsNeededOrForeignIsEverInThePlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := world().Draw(t, "world")
		f := s.judge(t)
		d := f.removal(bundler{})
		before := behind(t, d.Plan) // fails if it cannot be done
		records, err := record.All(operationtest.Book(t, s.facts...))
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range d.Plan.Actions {
			kind, name, _ := strings.Cut(a.Object, " ")
			switch kind {
			case "zone":
				z, _ := f.inv.Zone(name)
				switch {
				case z.State == zone.Running:
					t.Errorf("%s: it runs", a.ID)
				case name == "mail" || name == "db":
					recorded := slices.ContainsFunc(records, func(r record.Record) bool { return r.Incarnation.Zone == name })
					t.Errorf("%s: it is foreign (recorded: %v)", a.ID, recorded)
				case s.alive["instance/"+fmt.Sprint(slices.Index([]string{zone1, zone2}, name))]:
					t.Errorf("%s: it is being worked on", a.ID)
				}
			case "vnic":
				l, _ := f.inv.Link(name)
				z, _ := f.inv.Zone(l.Zone)
				if z.State == zone.Running || name == "mail0" {
					t.Errorf("%s: zone %q has it, %s", a.ID, l.Zone, z.State)
				}
			case "dataset":
				zoneName := strings.SplitN(strings.SplitN(strings.TrimPrefix(name, "rpool/zone/"), "/", 2)[0], "@", 2)[0]
				if z, there := f.inv.Zone(zoneName); there && z.State == zone.Running {
					if dataset, snapshot, _ := strings.Cut(name, "@"); !strings.Contains(dataset, "base") || !strings.Contains(snapshot, "_snap") {
						t.Errorf("%s: its zone runs", a.ID)
					}
				}
				if zoneName == "mail" || zoneName == "db" || !strings.HasPrefix(name, "rpool/zone/") {
					t.Errorf("%s: it is foreign", a.ID)
				}
				for _, clone := range f.clones[name] {
					holder := strings.SplitN(strings.TrimPrefix(clone, "rpool/zone/"), "/", 2)[0]
					first := func(id string) bool { return slices.Contains(before[a.ID], id) }
					if !first("zfs.destroy "+clone) && !first("zone.delete "+holder) && !first("zone.discard "+holder) {
						t.Errorf("%s: %s is cloned from it", a.ID, clone)
					}
				}
			}
		}
	})
}

// A sled is judged in no more time than twice the objects need.
func BenchmarkReap10000(b *testing.B) {
	s := empty()
	s.base(b, base1, 1, true)
	for i := range 2500 { // zone, VNIC, dataset, its environment, and a snapshot on the base
		name := fmt.Sprintf("propolis_instance_8c4a2b1e-6a57-4a5c-9d3e-%012d", i)
		s.zone(name, zone.Installed)
		s.link(fmt.Sprintf("vnic_propolis%d", i), fmt.Sprintf("02:08:20:00:%02x:%02x", i/256, i%256), "")
		s.clone("rpool/zone/"+name+"/zbe", "rpool/zone/"+base1+"/zbe@"+name+"_snap")
		if i%2 == 0 {
			r := run(name, fmt.Sprintf("vnic_propolis%d", i))
			r.Control.MAC = fmt.Sprintf("02:08:20:00:%02x:%02x", i/256, i%256)
			s.record(b, fmt.Sprint("i", i), r)
		}
	}
	for b.Loop() {
		f := s.judge(b)
		if d := f.removal(bundler{}); len(d.Intent.Removes) != 2500 || len(f.Objects)+len(f.inv.Below("rpool/zone")) < 10_000 {
			b.Fatal(len(d.Intent.Removes), len(f.Objects))
		}
	}
}

func TestCloneOf(t *testing.T) {
	for snapshot, want := range map[string]string{
		"z1_snap": "z1", "z1_snap1": "z1", "z1_snap99": "z1", "a_snap_snap": "a_snap", "_snap": "", "z1": "", "z1_snapshot": "", "z1_snap1a": "", "": "",
	} {
		if got, ok := cloneOf(snapshot); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v", snapshot, got, ok)
		}
	}
}
