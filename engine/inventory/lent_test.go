package inventory

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/hosttest"
	"github.com/sledctl/sledctl/vnic"
	"github.com/sledctl/sledctl/zone"
)

// The zone that has a VNIC follows from the zones that the kernel has and
// their configurations. A single link is asked for only where these do not tell.
func TestLent(t *testing.T) {
	id := 1
	in := func(name string, s zone.State) zone.Zone {
		z := zone.Zone{Name: name, State: s}
		if !slices.Contains([]zone.State{zone.Configured, zone.Incomplete, zone.Installed}, s) {
			z.ID = &id
		}
		return z
	}
	has := func(links ...string) zone.Config {
		var c zone.Config
		for _, l := range links {
			c.Nets = append(c.Nets, zone.Net{Physical: l})
		}
		return c
	}
	links := func(names ...string) []vnic.Link {
		list := []vnic.Link{{Name: "net0", Class: "phys"}}
		for _, n := range names {
			list = append(list, vnic.Link{Name: n, Class: "vnic"})
		}
		return list
	}
	for name, c := range map[string]struct {
		links   []vnic.Link
		zones   []zone.Zone
		configs map[string]zone.Config
		answers map[string]string // to who is asked
		want    []string          // zones, of net0 first
		asked   []string
	}{
		"running and ready zones have their links": {
			links: links("v1", "v2", "v3"), zones: []zone.Zone{in("global", zone.Running), in("z1", zone.Running), in("z2", zone.Ready)},
			configs: map[string]zone.Config{"z1": has("v1", "net0"), "z2": has("v2")}, want: []string{"", "z1", "z2", ""},
		},
		"others have none": {
			links: links("v1", "v2", "v3"), zones: []zone.Zone{in("z1", zone.Installed), in("z2", zone.Mounted), in("z3", zone.Configured)},
			configs: map[string]zone.Config{"z1": has("v1"), "z2": has("v2"), "z3": has("v3")}, want: []string{"", "", "", ""},
		},
		"a zone that goes down may have given its links back": {
			links: links("v1", "v2"), zones: []zone.Zone{in("z1", zone.Down), in("z2", zone.ShuttingDown)},
			configs: map[string]zone.Config{"z1": has("v1"), "z2": has("v2")}, answers: map[string]string{"v2": "z2"},
			want: []string{"", "", "z2"}, asked: []string{"v1", "v2"},
		},
		"two that want the same link": {
			links: links("v1"), zones: []zone.Zone{in("z1", zone.Running), in("z2", zone.Running)},
			configs: map[string]zone.Config{"z1": has("v1"), "z2": has("v1")}, answers: map[string]string{"v1": "z2"},
			want: []string{"", "z2"}, asked: []string{"v1"},
		},
		"a configuration that cannot be read": {
			links: links("v1", "v2"), zones: []zone.Zone{in("z1", zone.Running), in("z2", zone.Running)},
			configs: map[string]zone.Config{"z1": has("v1")}, answers: map[string]string{"v2": "z2"},
			want: []string{"", "z1", "z2"}, asked: []string{"v2"},
		},
		"two links of one name": {
			links: links("v1", "v1"), zones: []zone.Zone{in("z1", zone.Running)},
			configs: map[string]zone.Config{"z1": has("v1")}, want: []string{"", "z1", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			got, err := lent(c.links, c.zones, c.configs, func(link string) (string, error) {
				asked = append(asked, link)
				return c.answers[link], nil
			})
			if err != nil {
				t.Fatal(err)
			}
			var zones []string
			for _, l := range got {
				zones = append(zones, l.Zone)
			}
			if diff := cmp.Diff(c.want, zones) + cmp.Diff(c.asked, asked); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What the sled's listings do not tell is unknown, not free.
func TestLinksOfZonesThatCannotBeSeen(t *testing.T) {
	s := sim.New(sim.Options{Mode: world.Helios}, hosttest.Files)
	t.Cleanup(s.Close)
	run := func(args ...string) {
		t.Helper()
		if r, err := s.Host().Run(t.Context(), host.Command{Program: args[0], Args: args[1:]}); err != nil || r.Exit != 0 {
			t.Fatal(args, err, string(r.Stderr))
		}
	}
	run("dladm", "create-vnic", "-t", "-l", "net0", "v1")
	look := func() ([]vnic.Link, error) {
		return Look(t.Context(), s.Host(), Want{Parts: []Part{Links}}).Links()
	}
	if links, err := look(); err != nil || len(links) < 2 {
		t.Fatal(links, err)
	}
	for _, command := range []string{"zoneadm list", "dladm show-vnic -p -o link,over,macaddress,vid"} {
		err := s.World().Update(t.Context(), func(tx *world.Tx) error {
			tx.Arm(world.Fault{Name: world.FaultFail, Match: command, Times: 1})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := errors.AsType[*UnknownError](func() error { _, err := look(); return err }()); !ok {
			t.Errorf("%s fails: the links are known", command)
		}
	}
}
