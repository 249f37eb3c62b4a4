package zone

import (
	"context"
	"errors"
	"path"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/steptest"
)

type step = steptest.Step

func steps() []step {
	return []step{
		Configure{Name: "web1", Config: instance()},
		Clone{Name: "web1", Source: "base", Zonepath: "/zone/web1"},
		Install{Name: "web1", Zonepath: "/zone/web1", Args: []string{"/image.tar.gz"}},
		Boot{Name: "web1"},
		Halt{Name: "web1"},
		Unmount{Name: "web1"},
		Uninstall{Name: "web1"},
		Delete{Name: "web1"},
		Discard{Name: "web1"},
	}
}

// before is the state in which each step finds its zone.
func before(verb string) State {
	return map[string]State{
		"zone.clone": Configured, "zone.install": Configured, "zone.boot": Installed, "zone.halt": Running,
		"zone.unmount": Mounted, "zone.uninstall": Installed, "zone.delete": Configured, "zone.discard": Incomplete,
	}[verb]
}

// ready is a fake on which the step succeeds.
func ready(t *testing.T, s step) *fake {
	f := newFake(t)
	if state := before(s.Verb()); state != "" {
		f.set("web1", state)
	}
	f.root("/zone/web1")
	if c, ok := s.(Configure); ok {
		f.answer("zonecfg create", answer{then: func(f *fake) {
			f.set(c.Name, Configured)
			f.writeConfig(c.Name, c.Config)
		}})
	}
	return f
}

func TestSteps(t *testing.T) {
	again := map[string]error{
		"zone.configure": host.ErrExists, "zone.clone": host.ErrState, "zone.install": host.ErrState, "zone.boot": host.ErrState,
	}
	for _, s := range steps() {
		steptest.Conform(t, steptest.Case{Step: s, Again: again[s.Verb()], NoFailure: s.Verb() == "zone.discard", Sled: func(t *testing.T) steptest.Sled {
			f := ready(t, s)
			return steptest.Sled{Host: f, State: func() any { return f.state("web1") }}
		}})
	}
}

func TestNoStepTouchesAZoneWithAnImpossibleName(t *testing.T) {
	for _, name := range []string{"global", "-F", "7", ""} {
		for _, s := range []step{
			Configure{Name: name, Config: instance()}, Clone{Name: name, Source: "base", Zonepath: "/zone/x"}, Clone{Name: "web1", Source: name},
			Install{Name: name}, Boot{Name: name}, Halt{Name: name}, Unmount{Name: name}, Uninstall{Name: name}, Delete{Name: name}, Discard{Name: name},
		} {
			f := newFake(t)
			err := s.Do(t.Context(), f)
			if _, ok := errors.AsType[*NameError](err); !ok || len(f.ran) > 0 {
				t.Errorf("%s of %q: %v, ran %q", s.Verb(), name, err, f.ran)
			}
		}
	}
}

func TestStepsAreStrictAboutTheStateTheyFind(t *testing.T) {
	for _, c := range []struct {
		step  step
		state State
		want  error
	}{
		{Configure{Name: "web1", Config: instance()}, Configured, host.ErrExists},
		{Configure{Name: "web1", Config: instance()}, Installed, host.ErrExists},
		{Clone{Name: "web1", Source: "base"}, "", host.ErrNotFound},
		{Clone{Name: "web1", Source: "base"}, Installed, host.ErrState},
		{Clone{Name: "web1", Source: "base"}, Incomplete, host.ErrState},
		{Install{Name: "web1", Zonepath: "/zone/web1"}, Running, host.ErrState},
		{Boot{Name: "web1"}, Running, host.ErrState},
		{Boot{Name: "web1"}, ShuttingDown, host.ErrTransient},
		{Boot{Name: "web1"}, Configured, host.ErrState},
	} {
		f := newFake(t)
		if c.state != "" {
			f.set("web1", c.state)
		}
		if err := c.step.Do(t.Context(), f); !errors.Is(err, c.want) || len(f.ran) > 0 {
			t.Errorf("%s of a zone that is %q: %v, ran %q", c.step.Verb(), c.state, err, f.ran)
		}
	}
}

func TestConfigureTakesAnyWordOnStderrForFailure(t *testing.T) {
	f := newFake(t).answer("zonecfg create", answer{stderr: "bad rctl name\n", then: func(f *fake) {
		f.set("web1", Configured)
		f.writeConfig("web1", instance())
	}})
	err := Configure{Name: "web1", Config: instance()}.Do(t.Context(), f)
	if err == nil || f.state("web1") != "" {
		t.Errorf("%v; the zone is %q", err, f.state("web1"))
	}
}

func TestConfigureReadsBackWhatWasWritten(t *testing.T) {
	f := newFake(t).answer("zonecfg create", answer{then: func(f *fake) {
		f.set("web1", Configured)
		c := instance()
		c.Devices = c.Devices[:1]
		f.writeConfig("web1", c)
	}})
	err := Configure{Name: "web1", Config: instance()}.Do(t.Context(), f)
	e, ok := errors.AsType[*MismatchError](err)
	if !ok || len(e.Differences) != 1 || e.Differences[0].Property != "device" {
		t.Errorf("%v", err)
	}
	if f.state("web1") != "" {
		t.Errorf("the zone is left %s", f.state("web1"))
	}
}

func TestConfigureLeavesAZoneAloneThatAnotherMadeMeanwhile(t *testing.T) {
	for _, text := range []string{
		"Zone web1 already installed; create not allowed.\n",
		"Zone exists, input not from terminal and -F not specified:\ncreate command ignored, exiting.\n",
	} {
		f := newFake(t).answer("zonecfg create", answer{stderr: text, then: to("web1", Installed)})
		err := Configure{Name: "web1", Config: instance()}.Do(t.Context(), f)
		if !errors.Is(err, host.ErrExists) || f.state("web1") != Installed {
			t.Errorf("%v; the zone is %q", err, f.state("web1"))
		}
	}
}

func TestConfigureTellsWhenItCouldNotCleanUp(t *testing.T) {
	f := newFake(t).
		answer("zonecfg create", answer{exit: 1, stderr: "syntax error at 'x'\n", then: to("web1", Configured)}).
		answer("zonecfg delete", answer{exit: 1, stderr: "web1: Permission denied\n"})
	err := Configure{Name: "web1", Config: instance()}.Do(t.Context(), f)
	e, ok := errors.AsType[*host.LeftoverError](err)
	if !ok || !strings.Contains(err.Error(), "syntax error") || !strings.Contains(err.Error(), "Permission denied") {
		t.Errorf("%v (%v)", err, e)
	}
}

func TestConfigureDoesNotCleanUpUnderACommandThatStillRuns(t *testing.T) {
	f := newFake(t).answer("zonecfg create", answer{err: host.ErrStillRunning, then: to("web1", Configured)})
	err := Configure{Name: "web1", Config: instance()}.Do(t.Context(), f)
	if !errors.Is(err, host.ErrStillRunning) || len(f.ran) != 1 {
		t.Errorf("%v, ran %q", err, f.ran)
	}
}

func TestCloneUninstallsAZoneThatItLeftIncomplete(t *testing.T) {
	f := newFake(t, inTheState("web1", Configured))
	f.answer("zoneadm clone", answer{exit: 1, stderr: "ERROR: snapshot exists\n", then: to("web1", Incomplete)})
	err := Clone{Name: "web1", Source: "base", Zonepath: "/zone/web1"}.Do(t.Context(), f)
	if err == nil || !strings.Contains(err.Error(), "snapshot exists") || f.state("web1") != Configured {
		t.Errorf("%v; the zone is %s", err, f.state("web1"))
	}
}

func TestCloneUninstallsAlsoIfTheHookRepeatedARefusal(t *testing.T) {
	f := newFake(t, inTheState("web1", Configured))
	f.answer("zoneadm clone", answer{
		exit: 1, stderr: "zoneadm: zone 'web1': must be installed before mount.\nERROR: unconfigure failed\n", then: to("web1", Incomplete),
	})
	if err := (Clone{Name: "web1", Source: "base", Zonepath: "/zone/web1"}).Do(t.Context(), f); err == nil || f.state("web1") != Configured {
		t.Errorf("%v; the zone is %s", err, f.state("web1"))
	}
}

func TestCloneLeavesTheIncompleteZoneOfAnotherAlone(t *testing.T) {
	f := newFake(t, inTheState("web1", Configured))
	f.answer("zoneadm clone", answer{
		exit: 1, stderr: "zoneadm: zone 'web1': zone is incomplete; uninstall required.\n", then: to("web1", Incomplete),
	})
	err := Clone{Name: "web1", Source: "base", Zonepath: "/zone/web1"}.Do(t.Context(), f)
	if !errors.Is(err, host.ErrState) || f.state("web1") != Incomplete {
		t.Errorf("%v; the zone is %s", err, f.state("web1"))
	}
}

func TestCloneDoesNotTrustExitCodeZero(t *testing.T) {
	f := newFake(t, inTheState("web1", Configured))
	f.answer("zoneadm clone", answer{then: to("web1", Incomplete)})
	f.root("/zone/web1")
	err := Clone{Name: "web1", Source: "base", Zonepath: "/zone/web1"}.Do(t.Context(), f)
	if _, ok := errors.AsType[*StateError](err); !ok || f.state("web1") != Configured {
		t.Errorf("%v; the zone is %s", err, f.state("web1"))
	}
}

func TestCloneProvesThatTheRootIsMounted(t *testing.T) {
	for name, spoil := range map[string]func(*fake) error{
		"no root": func(f *fake) error {
			return errors.Join(f.files.Remove("/zone/web1/root/etc"), f.files.SetDevice("/zone/web1/root", 0), f.files.Remove("/zone/web1/root"))
		},
		"an empty root": func(f *fake) error { return f.files.Remove("/zone/web1/root/etc") },
		"a root in a plain directory": func(f *fake) error {
			return errors.Join(f.files.SetDevice("/zone/web1/root", 0), f.files.SetDevice("/zone/web1", 0))
		},
	} {
		f := newFake(t, inTheState("web1", Configured))
		f.root("/zone/web1")
		if err := spoil(f); err != nil {
			t.Fatal(err)
		}
		err := Clone{Name: "web1", Source: "base", Zonepath: "/zone/web1"}.Do(t.Context(), f)
		if !errors.Is(err, ErrNoRoot) || f.state("web1") != Configured {
			t.Errorf("%s: %v; the zone is %s", name, err, f.state("web1"))
		}
	}
}

func TestCloneAcceptsTheCloneThatIsBuiltIntoZoneadm(t *testing.T) {
	f := newFake(t, inTheState("web1", Configured))
	f.root("/zone/web1")
	if err := f.files.SetDevice("/zone/web1/root", 0); err != nil { // one dataset, at the zonepath
		t.Fatal(err)
	}
	if err := (Clone{Name: "web1", Source: "base", Zonepath: "/zone/web1"}).Do(t.Context(), f); err != nil {
		t.Error(err)
	}
}

func TestBootRefusesAZoneThatAnotherBootedMeanwhile(t *testing.T) {
	f := newFake(t, installed("web1"))
	f.answer("zoneadm boot", answer{stderr: "zone 'web1': zone is already booted\n", then: to("web1", Running)})
	err := Boot{Name: "web1"}.Do(t.Context(), f)
	if !errors.Is(err, host.ErrState) || f.state("web1") != Running {
		t.Errorf("%v; the zone is %s", err, f.state("web1"))
	}
}

func TestBootWaitsUntilTheZoneRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, installed("web1"))
		f.answer("zoneadm boot", answer{then: to("web1", Ready)})
		f.answer("zoneadm list", answer{}, answer{}, answer{}, answer{then: to("web1", Running)})
		if err := (Boot{Name: "web1"}).Do(t.Context(), f); err != nil {
			t.Error(err)
		}
	})
}

func TestBootEndsAtOnceWhenTheZoneIsDownAgain(t *testing.T) {
	f := newFake(t, installed("web1")).answer("zoneadm boot", answer{then: to("web1", Installed)})
	err := Boot{Name: "web1"}.Do(t.Context(), f)
	if e, ok := errors.AsType[*StateError](err); !ok || e.State != Installed {
		t.Errorf("%v", err)
	}
}

func TestBootHaltsWhatAFailedBootLeft(t *testing.T) {
	f := newFake(t, installed("web1"))
	f.answer("zoneadm boot", answer{exit: 1, stderr: "zoneadm: zone 'web1': call to zoneadmd failed\n", then: to("web1", Down)})
	err := Boot{Name: "web1"}.Do(t.Context(), f)
	if err == nil || f.state("web1") != Installed {
		t.Errorf("%v; the zone is %s", err, f.state("web1"))
	}
}

func TestBootAtItsDeadlineHaltsTheZone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, installed("web1")).answer("zoneadm boot", answer{then: to("web1", Ready)})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := Boot{Name: "web1"}.Do(ctx, f)
		if !errors.Is(err, context.DeadlineExceeded) || f.state("web1") != Installed {
			t.Errorf("%v; the zone is %s", err, f.state("web1"))
		}
	})
}

func TestExplainOfAZoneThatCannotBeMadeIsEmpty(t *testing.T) {
	bad := Configure{Name: "web1", Config: Config{Brand: `"`, Zonepath: path.Join("/zone", "web1"), IPType: "exclusive"}}
	if l := bad.Explain(); l != nil {
		t.Errorf("%v", l)
	}
	if l := (Install{Name: "web1", Zonepath: "/zone/web1", Args: []string{";"}}).Explain(); l != nil {
		t.Errorf("%v", l)
	}
}
