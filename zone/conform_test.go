package zone_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/test/hosttest"
	"github.com/sledctl/sledctl/test/steptest"
	"github.com/sledctl/sledctl/zone"
)

// The steps that remove what a killed program has left.
func TestStepsOnLeftovers(t *testing.T) {
	const config, home = "/etc/zones/web1.xml", "/zone/web1"
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	on := func(t *testing.T) (host.Host, host.Info) {
		s := sim.New(sim.Options{}, hosttest.Files)
		t.Cleanup(s.Close)
		h := s.Host()
		must(t, host.WriteFile(h.Files(), config, []byte("<zone/>"), 0o644))
		must(t, host.MkdirAll(h.Files(), home, 0o755))
		info, err := h.Files().Stat(config)
		must(t, err)
		return h, info
	}
	sled := func(t *testing.T) steptest.Sled {
		h, _ := on(t)
		return steptest.Sled{Host: h, State: func() any {
			_, noConfig := h.Files().Stat(config)
			_, noHome := h.Files().Stat(home)
			return []bool{noConfig == nil, noHome == nil}
		}}
	}
	_, info := on(t)
	steptest.Conform(t,
		steptest.Case{Step: zone.RemoveConfig{Name: "web1", Inode: info.Inode}, Sled: sled, Again: host.ErrNotFound},
		steptest.Case{Step: zone.RemoveHome{Path: home}, Sled: sled, Again: host.ErrNotFound},
	)
}

// A zone that is installed, and what it is reconfigured to and back.
func plainConfig() zone.Config {
	return zone.Config{
		Zonepath: "/zone/web1", Brand: "sparse", IPType: "exclusive", Limitpriv: "default",
		Attrs: []zone.Attr{{Name: "sledctl-spare", Type: "string", Value: "base"}},
	}
}

func fullConfig() zone.Config {
	c := plainConfig()
	c.Attrs = []zone.Attr{{Name: "sledctl-instance", Type: "string", Value: "web1"}}
	c.FS = []zone.FS{{Dir: "/data", Special: "/data", Type: "lofs", Options: []string{"ro", "nodevices"}}}
	c.Nets = []zone.Net{{Physical: "vnic0"}}
	c.Devices = []string{"/dev/vmm", "/dev/viona"}
	return c
}

func installed(t *testing.T, c zone.Config) host.Host {
	t.Helper()
	s := sim.New(sim.Options{}, hosttest.Files)
	t.Cleanup(s.Close)
	h := s.Host()
	for _, c := range []host.Command{
		{Program: "zfs", Args: []string{"create", "-o", "mountpoint=/zone", "rpool/zone"}},
		{Program: "dladm", Args: []string{"create-vnic", "-t", "-l", "net0", "vnic0"}},
	} {
		if r, err := h.Run(t.Context(), c); err != nil || r.Exit != 0 {
			t.Fatalf("%s %q: %v, %s", c.Program, c.Args, err, r.Stderr)
		}
	}
	if err := host.MkdirAll(h.Files(), "/data", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, step := range []steptest.Step{zone.Configure{Name: "web1", Config: c}, zone.Install{Name: "web1", Zonepath: c.Zonepath}} {
		if err := step.Do(t.Context(), h); err != nil {
			t.Fatalf("%s: %v", step.Verb(), err)
		}
	}
	return h
}

func TestReconfigureConforms(t *testing.T) {
	for _, s := range []zone.Reconfigure{
		{Name: "web1", Old: plainConfig(), New: fullConfig()},
		{Name: "web1", Old: fullConfig(), New: plainConfig()},
	} {
		steptest.Conform(t, steptest.Case{Step: s, Again: host.ErrState, Sled: func(t *testing.T) steptest.Sled {
			h := installed(t, s.Old)
			return steptest.Sled{Host: h, State: func() any {
				c, err := zone.ReadConfig(h.Files(), "web1")
				c.Sum = ""
				return fmt.Sprint(c, err)
			}}
		}})
	}
}

func TestSetCapConforms(t *testing.T) {
	for _, s := range []zone.SetCap{{"web1", 0, 150}, {"web1", 29, 0}, {"web1", 200, 29}} {
		steptest.Conform(t, steptest.Case{Step: s, Again: host.ErrState, Sled: func(t *testing.T) steptest.Sled {
			h := installed(t, plainConfig().WithCap(s.Old))
			return steptest.Sled{Host: h, State: func() any {
				c, err := zone.ReadConfig(h.Files(), "web1")
				c.Sum = ""
				return fmt.Sprint(c, err)
			}}
		}})
	}
}

// A limit that no capped-cpu makes is removed as what it is.
func TestSetCapTakesTheLimitOfAnother(t *testing.T) {
	h := installed(t, plainConfig())
	other := host.Command{Program: "zonecfg", Args: []string{"-z", "web1", "add rctl; set name=zone.cpu-cap; add value (priv=privileged,limit=150,action=none); end"}}
	if r, err := h.Run(t.Context(), other); err != nil || r.Exit != 0 {
		t.Fatalf("%v, %s", err, r.Stderr)
	}
	found, err := zone.ReadConfig(h.Files(), "web1")
	if err != nil {
		t.Fatal(err)
	}
	step := zone.SetCap{Name: "web1", Old: found.CPUCap, New: 150}
	if err := step.Do(t.Context(), h); err != nil || step.Undo() != nil {
		t.Errorf("%v, undone by %v", err, step.Undo())
	}
	if now, err := zone.ReadConfig(h.Files(), "web1"); err != nil || now.CPUCap != 150 {
		t.Errorf("%d, %v", now.CPUCap, err)
	}
}

// The resources stand where Configure would have put them.
func TestAReconfiguredZoneIsAsOneThatWasConfiguredSo(t *testing.T) {
	of := func(h host.Host) (c zone.Config) {
		c, err := zone.ReadConfig(h.Files(), "web1")
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	h := installed(t, plainConfig())
	if err := (zone.Reconfigure{Name: "web1", Old: plainConfig(), New: fullConfig()}).Do(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(of(installed(t, fullConfig())), of(h)); diff != "" {
		t.Error(diff)
	}
}

func TestReconfigureIsStrict(t *testing.T) {
	other := fullConfig()
	other.Zonepath = "/zone/web2"
	for name, c := range map[string]struct {
		step zone.Reconfigure
		want error // nil: a *zone.ValueError
	}{
		"a zonepath cannot change":       {zone.Reconfigure{Name: "web1", Old: plainConfig(), New: other}, nil},
		"it is not configured like that": {zone.Reconfigure{Name: "web1", Old: fullConfig(), New: plainConfig()}, host.ErrState},
		"there is none":                  {zone.Reconfigure{Name: "web2", Old: plainConfig(), New: fullConfig()}, host.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			h := installed(t, plainConfig())
			before, _ := zone.ReadConfig(h.Files(), "web1")
			err := c.step.Do(t.Context(), h)
			if _, invalid := errors.AsType[*zone.ValueError](err); (c.want == nil) != invalid || !invalid && !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			if after, _ := zone.ReadConfig(h.Files(), "web1"); cmp.Diff(before, after) != "" {
				t.Errorf("it was changed: %s", cmp.Diff(before, after))
			}
		})
	}
}
