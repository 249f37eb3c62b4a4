package zone_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/hosttest"
	"github.com/sledctl/sledctl/zone"
)

// The whole life of zones on the simulated sled, which knows nothing of this
// package: what it refuses, a real sled would.

// step is what package plan expects of a step.
type step interface {
	Verb() string
	Do(ctx context.Context, h host.Host) error
	Undo() any
}

type rig struct {
	t    *testing.T
	sled *sim.Sled
	host host.Host
}

func simulated(t *testing.T, o sim.Options) rig {
	t.Helper()
	s := sim.New(o, hosttest.Files)
	t.Cleanup(s.Close)
	return rig{t: t, sled: s, host: s.Host()}
}

// run runs a command that belongs to another driver.
func (r rig) run(program string, args ...string) {
	r.t.Helper()
	got, err := r.host.Run(r.t.Context(), host.Command{Program: program, Args: args})
	if err != nil || got.Exit != 0 {
		r.t.Fatalf("%s %q: %v, exit %d: %s", program, args, err, got.Exit, got.Stderr)
	}
}

// do does steps that must succeed.
func (r rig) do(steps ...step) {
	r.t.Helper()
	for _, s := range steps {
		if err := s.Do(r.t.Context(), r.host); err != nil {
			r.t.Fatalf("%s: %v", s.Verb(), err)
		}
	}
}

// remove removes a zone by the state that it is found in.
func (r rig) remove(name string) {
	r.t.Helper()
	z, found, err := zone.Find(r.t.Context(), r.host, name)
	if err != nil || !found {
		r.t.Fatalf("zone %s: found %v, %v", name, found, err)
	}
	for _, s := range zone.Removal(z) {
		r.do(s.(step))
	}
}

func (r rig) state(name string) zone.State {
	r.t.Helper()
	z, _, err := zone.Find(r.t.Context(), r.host, name)
	if err != nil {
		r.t.Fatal(err)
	}
	return z.State
}

// dataset makes a zonepath's dataset as sledctl does, below rpool/zone.
func (r rig) dataset(name string) {
	r.t.Helper()
	r.run("zfs", "create", "-o", "sledctl:instance=x", "rpool/zone/"+name)
	if err := r.host.Files().Chmod("/zone/"+name, 0o700); err != nil {
		r.t.Fatal(err)
	}
}

func base(brand string) zone.Config {
	return zone.Config{Brand: brand, Zonepath: "/zone/base", IPType: "exclusive", Attrs: []zone.Attr{{Name: "sledctl-base", Type: "string", Value: "1"}}}
}

func web1(brand string) zone.Config {
	return zone.Config{
		Brand: brand, Zonepath: "/zone/web1", IPType: "exclusive", Limitpriv: "default,dtrace_proc",
		Attrs:   []zone.Attr{{Name: "sledctl-instance", Type: "string", Value: "54f1cc77-68f1-42ab-acac-5c4f64f5d6e0"}},
		FS:      []zone.FS{{Dir: "/opt/oxide/propolis-server", Special: "/opt/oxide/propolis-server", Type: "lofs", Options: []string{"ro", "nodevices"}}},
		Nets:    []zone.Net{{Physical: "vnic_propolis0"}},
		Devices: []string{"/dev/vmm/*", "/dev/vmmctl", "/dev/viona"},
	}
}

// look is the sled as it is, without counters, times and what is drawn again.
func (r rig) look() string {
	r.t.Helper()
	b, err := sim.Comparable(r.t.Context(), r.sled.World())
	if err != nil {
		r.t.Fatal(err)
	}
	return string(b)
}

func (r rig) arm(f world.Fault) {
	r.t.Helper()
	if err := r.sled.World().Update(r.t.Context(), func(tx *world.Tx) error { tx.Arm(f); return nil }); err != nil {
		r.t.Fatal(err)
	}
}

// sparse is an OmniOS sled with a base zone, a VNIC and an empty dataset for
// web1, which is configured.
func sparse(t *testing.T) rig {
	t.Helper()
	r := simulated(t, sim.Options{})
	r.run("zfs", "create", "-o", "mountpoint=/zone", "rpool/zone")
	r.run("dladm", "create-vnic", "-t", "-l", "net0", "vnic_propolis0")
	r.dataset("base")
	r.do(zone.Configure{Name: "base", Config: base("sparse")}, zone.Install{Name: "base", Zonepath: "/zone/base"})
	r.dataset("web1")
	r.do(zone.Configure{Name: "web1", Config: web1("sparse")})
	return r
}

func TestLifeOfASparseZone(t *testing.T) {
	r := simulated(t, sim.Options{})
	r.run("zfs", "create", "-o", "mountpoint=/zone", "rpool/zone")
	r.run("dladm", "create-vnic", "-t", "-l", "net0", "vnic_propolis0")
	before := r.look()

	r.dataset("base")
	r.do(zone.Configure{Name: "base", Config: base("sparse")}, zone.Install{Name: "base", Zonepath: "/zone/base"})
	r.dataset("web1")
	r.do(
		zone.Configure{Name: "web1", Config: web1("sparse")},
		zone.Clone{Name: "web1", Source: "base", Zonepath: "/zone/web1"},
		zone.Boot{Name: "web1"},
	)
	configs, err := zone.Configs(r.host.Files(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]zone.Config{"base": base("sparse"), "web1": web1("sparse")}, configs, cmpopts.IgnoreFields(zone.Config{}, "Sum")); diff != "" {
		t.Error(diff)
	}
	if err := (zone.Boot{Name: "web1"}).Do(t.Context(), r.host); !errors.Is(err, host.ErrState) {
		t.Errorf("booted twice: %v", err)
	}
	r.remove("web1")
	r.remove("base")
	if diff := cmp.Diff(before, r.look()); diff != "" {
		t.Errorf("left behind: %s", diff)
	}
}

func TestLifeOfAnOmicron1Zone(t *testing.T) {
	r := simulated(t, sim.Options{Mode: world.Helios})
	r.run("zfs", "create", "-o", "mountpoint=/zone", "rpool/zone")
	r.run("dladm", "create-vnic", "-t", "-l", "net0", "vnic_propolis0")
	before := r.look()
	r.dataset("web1")
	r.do(
		zone.Configure{Name: "web1", Config: web1("omicron1")},
		zone.Install{Name: "web1", Zonepath: "/zone/web1", Args: []string{"/opt/oxide/propolis-server.tar.gz", "/opt/oxide/overlay.tar.gz"}},
		zone.Boot{Name: "web1"},
	)
	if got := r.state("web1"); got != zone.Running {
		t.Errorf("the zone is %s", got)
	}
	r.remove("web1")
	r.run("zfs", "destroy", "rpool/zone/web1") // the brand leaves it: see UninstallDestroys
	if diff := cmp.Diff(before, r.look()); diff != "" {
		t.Errorf("left behind: %s", diff)
	}
}

func TestOmicron1CannotCloneAndLeavesNothing(t *testing.T) {
	r := simulated(t, sim.Options{Mode: world.Helios})
	r.run("zfs", "create", "-o", "mountpoint=/zone", "rpool/zone")
	r.dataset("base")
	r.do(
		zone.Configure{Name: "base", Config: base("omicron1")},
		zone.Install{Name: "base", Zonepath: "/zone/base", Args: []string{"/opt/oxide/propolis-server.tar.gz"}},
	)
	r.run("dladm", "create-vnic", "-t", "-l", "net0", "vnic_propolis0")
	r.dataset("web1")
	r.do(zone.Configure{Name: "web1", Config: web1("omicron1")})
	err := zone.Clone{Name: "web1", Source: "base", Zonepath: "/zone/web1"}.Do(t.Context(), r.host)
	if err == nil || r.state("web1") != zone.Configured {
		t.Errorf("%v; the zone is %s", err, r.state("web1"))
	}
}

func TestErrorsOfTheSimulatedSledHaveTheirKinds(t *testing.T) {
	r := sparse(t)
	for _, c := range []struct {
		step step
		want error
	}{
		{zone.Configure{Name: "web1", Config: web1("sparse")}, host.ErrExists},
		{zone.Clone{Name: "web1", Source: "nobody", Zonepath: "/zone/web1"}, host.ErrNotFound},
		{zone.Clone{Name: "web1", Source: "web1", Zonepath: "/zone/web1"}, nil},
		{zone.Boot{Name: "web1"}, host.ErrState},
		{zone.Boot{Name: "nobody"}, host.ErrNotFound},
		{zone.Halt{Name: "nobody"}, host.ErrNotFound},
		{zone.Unmount{Name: "nobody"}, host.ErrNotFound},
		{zone.Uninstall{Name: "nobody"}, host.ErrNotFound},
		{zone.Delete{Name: "nobody"}, host.ErrNotFound},
		{zone.Install{Name: "base", Zonepath: "/zone/base"}, host.ErrState},
	} {
		err := c.step.Do(t.Context(), r.host)
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s of %+v: %v, want %v", c.step.Verb(), c.step, err, c.want)
		}
	}
	if web1, base := r.state("web1"), r.state("base"); web1 != zone.Configured || base != zone.Installed {
		t.Errorf("web1 is %s, base is %s", web1, base)
	}
}

func TestACloneThatTheBrandCannotUninstallIsToldAndCanBeRemoved(t *testing.T) {
	r := sparse(t)
	// The brand's hook takes the first free of web1_snap, web1_snap1, …, web1_snap99
	// (omniosorg/pkg5 src/brand/ipkg/clone).
	r.run("zfs", "snapshot", "rpool/zone/base/ROOT/zbe@web1_snap")
	for n := range 99 {
		r.run("zfs", "snapshot", fmt.Sprintf("rpool/zone/base/ROOT/zbe@web1_snap%d", n+1))
	}
	err := zone.Clone{Name: "web1", Source: "base", Zonepath: "/zone/web1"}.Do(t.Context(), r.host)
	if _, left := errors.AsType[*host.LeftoverError](err); !left || r.state("web1") != zone.Incomplete {
		t.Fatalf("%.200v; the zone is %s", err, r.state("web1"))
	}
	r.remove("web1")
	if got := r.state("web1"); got != "" {
		t.Errorf("the zone is %s", got)
	}
}

func TestABootWithoutItsLinkLeavesTheZoneInstalled(t *testing.T) {
	r := sparse(t)
	r.do(zone.Clone{Name: "web1", Source: "base", Zonepath: "/zone/web1"})
	r.run("dladm", "delete-vnic", "vnic_propolis0")
	err := zone.Boot{Name: "web1"}.Do(t.Context(), r.host)
	if _, ok := errors.AsType[*host.CommandError](err); !ok || r.state("web1") != zone.Installed {
		t.Errorf("%v; the zone is %s", err, r.state("web1"))
	}
}

// Somebody who lists the properties of links holds each while he looks.
func TestABootWaitsForALinkThatIsBusy(t *testing.T) {
	for name, c := range map[string]struct {
		hold time.Duration
		took time.Duration // at least
		want error
	}{
		"for a moment": {hold: 300 * time.Millisecond, took: 300 * time.Millisecond},
		"too long":     {hold: time.Hour, took: 10 * time.Second, want: host.ErrBusy},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := sparse(t)
				r.do(zone.Clone{Name: "web1", Source: "base", Zonepath: "/zone/web1"})
				r.arm(world.Fault{Name: world.FaultSlowLink, Match: "show-linkprop vnic_propolis0", Delay: c.hold, Times: 1})
				var looks sync.WaitGroup
				looks.Go(func() { r.run("dladm", "show-linkprop") })
				synctest.Wait()
				began := time.Now()
				err := zone.Boot{Name: "web1"}.Do(t.Context(), r.host)
				took := time.Since(began)
				want := zone.Running
				if c.want != nil {
					want = zone.Installed
				}
				if !errors.Is(err, c.want) || took < c.took || took > c.took+2*time.Second || r.state("web1") != want {
					t.Errorf("%v after %v; the zone is %s", err, took, r.state("web1"))
				}
				looks.Wait()
				r.sled.Close()
			})
		})
	}
}

// A zoneadm clone that is killed leaves its zone mounted while the brand's hook goes on.
func TestACloneThatIsKilledIsTakenBack(t *testing.T) {
	for name, text := range map[string]string{"before its hook mounts the zone": "", "while the zone is mounted": "mounted"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := sparse(t)
				r.arm(world.Fault{Name: world.FaultSlowClone, Match: "web1 clone", Delay: time.Second})
				r.arm(world.Fault{Name: world.FaultKilled, Match: "zoneadm clone", Text: text, Times: 1})
				clone := zone.Clone{Name: "web1", Source: "base", Zonepath: "/zone/web1"}
				err := clone.Do(t.Context(), r.host)
				if _, left := errors.AsType[*host.LeftoverError](err); err == nil || left || r.state("web1") != zone.Configured {
					t.Errorf("%v; the zone is %s", err, r.state("web1"))
				}
				r.do(clone)
				r.sled.Close()
			})
		})
	}
}
