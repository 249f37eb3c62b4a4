package zone_test

import (
	"context"
	"errors"
	"io/fs"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/zone"
)

func TestRemovalFromEveryState(t *testing.T) {
	for name, reach := range map[string]func(r rig){
		"configured": func(rig) {},
		"installed":  func(r rig) { r.do(zone.Clone{Name: "web1", Source: "base", Zonepath: "/zone/web1"}) },
		"incomplete": func(r rig) { r.run("zoneadm", "-z", "web1", "mark", "incomplete") },
		"ready": func(r rig) {
			r.do(zone.Clone{Name: "web1", Source: "base", Zonepath: "/zone/web1"})
			r.run("zoneadm", "-z", "web1", "ready")
		},
		"mounted": func(r rig) {
			r.do(zone.Clone{Name: "web1", Source: "base", Zonepath: "/zone/web1"})
			r.run("zoneadm", "-z", "web1", "mount")
		},
		"running": func(r rig) {
			r.do(zone.Clone{Name: "web1", Source: "base", Zonepath: "/zone/web1"}, zone.Boot{Name: "web1"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := sparse(t)
			reach(r)
			if got := r.state("web1"); string(got) != name {
				t.Fatalf("the zone is %s", got)
			}
			r.remove("web1")
			if got := r.state("web1"); got != "" {
				t.Errorf("the zone is %s", got)
			}
		})
	}
}

func TestHaltGoesOnUntilTheZoneIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := sparse(t)
		r.do(zone.Clone{Name: "web1", Source: "base", Zonepath: "/zone/web1"}, zone.Boot{Name: "web1"})
		r.arm(world.Fault{Name: world.FaultDown, Match: "zoneadm web1 halt", Times: 2})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := (zone.Halt{Name: "web1"}).Do(ctx, r.host); err != nil {
			t.Error(err)
		}
		if got := r.state("web1"); got != zone.Installed {
			t.Errorf("the zone is %s", got)
		}
		r.sled.Close()
	})
}

func TestUndoOnTheSimulatedSled(t *testing.T) {
	r := simulated(t, sim.Options{})
	r.run("zfs", "create", "-o", "mountpoint=/zone", "rpool/zone")
	r.run("dladm", "create-vnic", "-t", "-l", "net0", "vnic_propolis0")
	r.dataset("base")
	r.do(zone.Configure{Name: "base", Config: base("sparse")}, zone.Install{Name: "base", Zonepath: "/zone/base"})
	r.dataset("web1")
	before := r.state("web1")
	steps := []step{
		zone.Configure{Name: "web1", Config: web1("sparse")},
		zone.Clone{Name: "web1", Source: "base", Zonepath: "/zone/web1"},
		zone.Boot{Name: "web1"},
	}
	r.do(steps...)
	for i := len(steps) - 1; i >= 0; i-- {
		r.do(steps[i].Undo().(step))
	}
	if got := r.state("web1"); got != before {
		t.Errorf("the zone is %q", got)
	}
}

// A zonecfg that is killed between the configuration and the index leaves a zone
// that exists for zonecfg alone. Its own is written over, a foreign one is not.
// A zonecfg that is killed leaves nothing if the process that ran it is alive.
func TestAZonecfgThatIsKilledLeavesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		match string
		step  step
	}{
		"making":   {"zonecfg create", zone.Configure{Name: "web1", Config: web1("sparse")}},
		"deleting": {"zonecfg delete", zone.Delete{Name: "web1"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := simulated(t, sim.Options{})
			if name == "deleting" {
				r.do(zone.Configure{Name: "web1", Config: web1("sparse")})
			}
			if err := r.sled.World().Update(t.Context(), func(tx *world.Tx) error {
				tx.Arm(world.Fault{Name: world.FaultKilled, Match: c.match, Times: 1})
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			err := c.step.Do(t.Context(), r.host)
			if deletes := name == "deleting"; deletes != (err == nil) {
				t.Error(err)
			}
			if _, err := r.host.Files().Stat("/etc/zones/web1.xml"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("its configuration is left: %v", err)
			}
		})
	}
}

// What is removed is what was looked at, and no zone's.
func TestAConfigurationIsRemovedIfNoIndexNamesIt(t *testing.T) {
	const file = "/etc/zones/web1.xml"
	r := simulated(t, sim.Options{})
	inode := func() uint64 {
		info, err := r.host.Files().Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		return info.Inode
	}
	r.do(zone.Configure{Name: "web1", Config: web1("sparse")})
	if err := (zone.RemoveConfig{Name: "web1", Inode: inode()}).Do(t.Context(), r.host); !errors.Is(err, host.ErrRefused) {
		t.Errorf("of a zone that is there: %v", err)
	}
	r.do(zone.Delete{Name: "web1"})
	if err := (zone.RemoveConfig{Name: "web1", Inode: 1}).Do(t.Context(), r.host); !errors.Is(err, host.ErrNotFound) {
		t.Errorf("of none: %v", err)
	}
	if err := host.WriteFile(r.host.Files(), file, []byte("<zone/>"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := (zone.RemoveConfig{Name: "web1", Inode: inode() + 1}).Do(t.Context(), r.host); !errors.Is(err, host.ErrRefused) {
		t.Errorf("of another: %v", err)
	}
	r.do(zone.RemoveConfig{Name: "web1", Inode: inode()})
	if _, err := r.host.Files().Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is there: %v", err)
	}
}

func TestAConfigurationThatNoIndexNames(t *testing.T) {
	for name, c := range map[string]struct {
		left zone.Config
		own  bool
	}{"one's own": {web1("sparse"), true}, "foreign": {base("sparse"), false}} {
		t.Run(name, func(t *testing.T) {
			r := simulated(t, sim.Options{})
			r.do(zone.Configure{Name: "web1", Config: c.left})
			xml, err := host.ReadFile(r.host.Files(), "/etc/zones/web1.xml")
			if err != nil {
				t.Fatal(err)
			}
			r.do(zone.Delete{Name: "web1"})
			if err := host.WriteFile(r.host.Files(), "/etc/zones/web1.xml", xml, 0o644); err != nil {
				t.Fatal(err)
			}
			err = zone.Configure{Name: "web1", Config: web1("sparse")}.Do(t.Context(), r.host)
			if c.own != (err == nil) || !c.own && !errors.Is(err, host.ErrExists) {
				t.Errorf("%v", err)
			}
		})
	}
}
