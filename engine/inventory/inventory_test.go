package inventory_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/hosttest"
	"github.com/sledctl/sledctl/vnic"
	"github.com/sledctl/sledctl/zfs"
	"github.com/sledctl/sledctl/zone"
)

func every() []inventory.Part {
	return []inventory.Part{inventory.Zones, inventory.Configs, inventory.Links, inventory.Pools, inventory.Datasets}
}

func newSled(t *testing.T) *sim.Sled {
	t.Helper()
	s := sim.New(sim.Options{}, hosttest.Files)
	t.Cleanup(s.Close)
	return s
}

// known are the parts that can be read.
func known(inv *inventory.Inventory) []inventory.Part {
	return slices.DeleteFunc(every(), func(p inventory.Part) bool { return inv.Know(p) != nil })
}

func TestAFailingCommandMakesItsPartUnknownAndLeavesTheOthers(t *testing.T) {
	for command, lost := range map[string][]inventory.Part{
		"zoneadm list":    {inventory.Zones},
		"dladm show-link": {inventory.Links},
		"dladm show-vnic": {inventory.Links},
		"zpool list":      {inventory.Pools, inventory.Datasets}, // the roots are chosen among the pools
		"zfs get":         {inventory.Datasets},
	} {
		t.Run(command, func(t *testing.T) {
			s := newSled(t)
			err := s.World().Update(t.Context(), func(tx *world.Tx) error {
				tx.Arm(world.Fault{Name: world.FaultFail, Match: command, Exit: 1, Text: "out of luck"})
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			inv := inventory.Look(t.Context(), s.Host(), inventory.Want{Parts: every()})
			want := slices.DeleteFunc(every(), func(p inventory.Part) bool { return slices.Contains(lost, p) })
			if got := known(inv); !slices.Equal(got, want) {
				t.Errorf("known: %v, want %v", got, want)
			}
			for _, p := range lost {
				unknown, ok := errors.AsType[*inventory.UnknownError](inv.Know(p))
				if !ok || unknown.Part != p {
					t.Fatalf("%s: %v", p, inv.Know(p))
				}
				if _, ok := errors.AsType[*host.CommandError](unknown); !ok {
					t.Errorf("%s does not say what the host said: %v", p, unknown)
				}
			}
		})
	}
}

func TestABrokenConfigurationMakesConfigurationsUnknown(t *testing.T) {
	s := newSled(t)
	h := s.Host()
	for _, args := range [][]string{{"-z", "z1", "create -b; set zonepath=/zones/z1; set brand=sparse"}} {
		if r, err := h.Run(t.Context(), host.Command{Program: "zonecfg", Args: args}); err != nil || r.Exit != 0 {
			t.Fatal(err, string(r.Stderr))
		}
	}
	if err := host.WriteFile(h.Files(), "/etc/zones/z1.xml", []byte("<zone"), 0o644); err != nil {
		t.Fatal(err)
	}
	inv := inventory.Look(t.Context(), h, inventory.Want{Parts: []inventory.Part{inventory.Configs, inventory.Zones}})
	if _, err := inv.Configs(); err == nil {
		t.Error("half of a file was read as a configuration")
	}
	if zones, err := inv.Zones(); err != nil || len(zones) != 2 {
		t.Errorf("zones: %v, %v", zones, err)
	}
}

func TestOnlyTheConfigurationsOfTheNamedZonesAreRead(t *testing.T) {
	s := newSled(t)
	h := s.Host()
	for _, z := range []string{"z1", "z2"} {
		args := []string{"-z", z, "create -b; set zonepath=/zones/" + z + "; set brand=sparse"}
		if r, err := h.Run(t.Context(), host.Command{Program: "zonecfg", Args: args}); err != nil || r.Exit != 0 {
			t.Fatal(err, string(r.Stderr))
		}
	}
	if err := host.WriteFile(h.Files(), "/etc/zones/z2.xml", []byte("<zone"), 0o644); err != nil {
		t.Fatal(err)
	}
	inv := inventory.Look(t.Context(), h, inventory.Want{Parts: every(), OfZones: func(name string) bool { return name == "z1" }})
	configs, err := inv.Configs()
	if _, there := configs["z1"]; err != nil || len(configs) != 1 || !there {
		t.Errorf("%v %v", configs, err)
	}
	if zones, err := inv.Zones(); err != nil || len(zones) != 3 {
		t.Errorf("%v %v", zones, err)
	}
}

func TestWhatWasNotAskedForIsUnknown(t *testing.T) {
	s := newSled(t)
	for _, part := range every() {
		inv := inventory.Look(t.Context(), s.Host(), inventory.Want{Parts: []inventory.Part{part}})
		want := []inventory.Part{part}
		if part == inventory.Datasets {
			want = []inventory.Part{inventory.Pools, inventory.Datasets}
		}
		if got := known(inv); !slices.Equal(got, want) {
			t.Errorf("asked for %s, known: %v", part, got)
		}
	}
	inv := inventory.Look(t.Context(), s.Host(), inventory.Want{})
	_, zones := inv.Zones()
	_, configs := inv.Configs()
	_, links := inv.Links()
	_, pools := inv.Pools()
	_, datasets := inv.Datasets()
	for i, err := range []error{zones, configs, links, pools, datasets} {
		if err == nil {
			t.Errorf("%s: no error", every()[i])
		}
	}
}

func TestOnlyTheRootsAreLookedAt(t *testing.T) {
	s := newSled(t)
	look := func(roots func([]zfs.Pool) []string) []zfs.Dataset {
		inv := inventory.Look(t.Context(), s.Host(), inventory.Want{Parts: []inventory.Part{inventory.Datasets}, Roots: roots})
		all, err := inv.Datasets()
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	all := look(nil)
	some := look(func([]zfs.Pool) []string { return []string{"rpool"} })
	none := look(func([]zfs.Pool) []string { return nil })
	if len(all) <= len(some) || len(some) == 0 || len(none) != 0 {
		t.Errorf("%d everywhere, %d on rpool, %d nowhere", len(all), len(some), len(none))
	}
}

func TestZonePools(t *testing.T) {
	const u2, m2 = "oxp_e4b4dc87-ab46-49fb-a4b4-d361ae214c03", "oxi_a462a7f7-b628-40fe-80ff-4e4189e2d62b"
	for name, c := range map[string]struct{ pools, want []string }{
		"those on U.2 disks":              {[]string{m2, u2, "rpool"}, []string{u2}},
		"any that is not on an M.2":       {[]string{m2, "rpool", "tank"}, []string{"rpool", "tank"}},
		"none, if there are only M.2s":    {[]string{m2}, nil},
		"a name that only looks like one": {[]string{"oxp_tank"}, []string{"oxp_tank"}},
	} {
		var pools []zfs.Pool
		for _, p := range c.pools {
			pools = append(pools, zfs.Pool{Name: p})
		}
		if got := inventory.ZonePools(pools); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestThingsAreFoundByName(t *testing.T) {
	inv := inventory.Of(inventory.Listings{
		Zones: []zone.Zone{{Name: "global"}, {Name: "a", Path: "/a"}}, Links: []vnic.Link{{Name: "net0", Class: "phys"}},
		Datasets: []zfs.Dataset{}, Configs: map[string]zone.Config{"a": {Brand: "sparse"}},
	})
	if z, ok := inv.Zone("a"); !ok || z.Path != "/a" {
		t.Errorf("zone: %v, %v", z, ok)
	}
	if l, ok := inv.Link("net0"); !ok || l.Class != "phys" {
		t.Errorf("link: %v, %v", l, ok)
	}
	if c, ok := inv.Config("a"); !ok || c.Brand != "sparse" {
		t.Errorf("config: %v, %v", c, ok)
	}
	if _, ok := inv.Zone("b"); ok {
		t.Error("a missing zone was found")
	}
	if err := inv.Know(inventory.Zones, inventory.Links, inventory.Datasets, inventory.Configs); err != nil {
		t.Error(err)
	}
	if inv.Know(inventory.Pools) == nil {
		t.Error("pools are known, and nobody listed them")
	}
}

func TestBelowIsExactlyWhatLiesBelow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`p(/[ab-]{1,2}){0,3}(@[ab]{1,2})?`), 0, 30, rapid.ID).Draw(t, "datasets")
		var all []zfs.Dataset
		for _, n := range names {
			all = append(all, zfs.Dataset{Name: n})
		}
		of := rapid.StringMatching(`p(/[ab-]{1,2}){0,2}`).Draw(t, "of")
		var want []string
		for _, n := range names { // the order of the listing stays
			if len(n) > len(of) && n[:len(of)] == of && (n[len(of)] == '/' || n[len(of)] == '@') {
				want = append(want, n)
			}
		}
		var got []string
		for _, d := range inventory.Of(inventory.Listings{Datasets: all}).Below(of) {
			got = append(got, d.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("below %s: %v, want %v", of, got, want)
		}
	})
}

func BenchmarkFinding10000(b *testing.B) {
	all := make([]zfs.Dataset, 10_000)
	for i := range all {
		all[i].Name = fmt.Sprintf("pool/zone/z%d", i)
	}
	for b.Loop() {
		inv := inventory.Of(inventory.Listings{Datasets: all})
		for _, d := range all {
			if _, ok := inv.Dataset(d.Name); !ok || len(inv.Below(d.Name)) != 0 {
				b.Fatal(d.Name)
			}
		}
	}
}
