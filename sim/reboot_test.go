package sim

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zones"
	"github.com/sledctl/sledctl/test/hosttest"
)

// svc:/system/zones boots what has autoboot=true; the rest stays installed, and
// links made with -t are gone (zones(7), dladm(8)).
func TestARebootBringsBackWhatIsPersistent(t *testing.T) {
	s := newSledFor(t, Options{})
	d := door{host: s.Host(), sled: s}
	d.makeBase(t)
	d.makeZone(t)
	d.run(t, "zonecfg", "-z", "auto", "create -b; set brand=sparse; set zonepath=/zone/auto; set autoboot=true; set ip-type=exclusive")
	d.run(t, "zoneadm", "-z", "auto", "clone", "base")
	if err := s.Reboot(t.Context()); err != nil {
		t.Fatal(err)
	}
	states := map[string]string{}
	for line := range strings.Lines(d.run(t, "zoneadm", "list", "-cp")) {
		fields := strings.Split(line, ":")
		states[fields[1]] = fields[2]
	}
	if states["auto"] != "running" || states["vm1"] != "installed" || states["base"] != "installed" {
		t.Errorf("zones: %v", states)
	}
	if got := d.run(t, "dladm", "show-vnic", "-p", "-o", "link"); got != "" {
		t.Errorf("VNICs: %q", got)
	}
	if got := d.try(t, "", "zoneadm", "-z", "vm1", "boot"); got.Exit == 0 {
		t.Error("a zone booted without its link")
	}
	d.run(t, "dladm", "create-vnic", "-t", "-l", "net0", "-m", "2:8:20:1:2:3", "vnic0")
	d.run(t, "zoneadm", "-z", "vm1", "boot")
	d.awaitService(t, "svc:/milestone/single-user:default", "online")
}

// The published times of the steps (omicron PR 385) add up: nothing else takes
// any, and what runs side by side overlaps.
func TestALifeTakesThePublishedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Latency: "helios2021"}, hosttest.Files)
		defer s.Close()
		d := door{s.Host(), s, "127.77.1.2"}
		took := func(what string, want time.Duration, do func()) {
			t.Helper()
			start := time.Now()
			do()
			// The tests look every 5 ms.
			if got := time.Since(start); got < want || got > want+6*time.Millisecond {
				t.Errorf("%s took %s, want %s", what, got, want)
			}
		}
		d.makeBase(t)
		took("link, configuration, clone, boot, milestone", (30+12+1700+680+17900)*time.Millisecond, func() { d.makeZone(t) })
		d.in(t, "vm1", "ipadm", "create-if", "-t", "vnic0")
		took("address", 50*time.Millisecond, func() {
			d.in(t, "vm1", "ipadm", "create-addr", "-t", "-T", "static", "-a", d.address+"/24", "vnic0/v4")
			d.await(t, "ok", func() string { return d.in(t, "vm1", "ipadm", "show-addr", "-p", "-o", "state", "vnic0/v4") })
		})
		took("Propolis", 480*time.Millisecond, func() {
			d.run(t, "svcadm", "-z", "vm1", "enable", "-t", "svc:/site/vm:default")
			d.await(t, "424 Failed Dependency", func() string { return d.get(t, "http://"+d.address+":12400/instance") })
		})
		took("halt", time.Second, func() { d.run(t, "zoneadm", "-z", "vm1", "halt") })
	})
}

func BenchmarkList(b *testing.B) {
	s := New(Options{}, hosttest.Files)
	defer s.Close()
	benchmarkCommand(b, s, "zoneadm", "list", "-cp")
}

func BenchmarkInZone(b *testing.B) {
	s := New(Options{}, hosttest.Files)
	defer s.Close()
	err := s.World().Update(b.Context(), func(tx *world.Tx) error {
		c := world.Config{Brand: "sparse", Zonepath: "/zone/z1", IPType: "exclusive"}
		z, err := zones.AddZone(tx, "z1", c)
		if err != nil {
			return err
		}
		zones.StartKernelZone(tx, z).State = "running"
		return zones.SetZoneState(tx, z, world.ZoneInstalled)
	})
	if err != nil {
		b.Fatal(err)
	}
	benchmarkCommand(b, s, "zlogin", "-n", "z1", "zonename")
}

func benchmarkCommand(b *testing.B, s *Sled, words ...string) {
	for b.Loop() {
		got, err := s.Host().Run(b.Context(), host.Command{Program: words[0], Args: words[1:], ReadOnly: true})
		if err != nil || got.Exit != 0 {
			b.Fatal(err, string(got.Stderr))
		}
	}
}
