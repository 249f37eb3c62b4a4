package zone

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
)

func TestHaltIsRepeatedWhileTheZoneGoesDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, inTheState("web1", Running))
		remains := answer{exit: 1, stderr: "zone 'web1': datalinks remain in zone after shutdown\n", then: to("web1", Down)}
		f.answer("zoneadm halt", remains, remains, answer{then: to("web1", ShuttingDown)})
		if err := (Halt{Name: "web1"}).Do(t.Context(), f); err != nil {
			t.Error(err)
		}
		if len(f.ran) != 4 {
			t.Errorf("ran %q", f.ran)
		}
	})
}

func TestHaltGivesUpAtItsDeadlineWithTheHostsWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, inTheState("web1", Down))
		for range 1000 {
			f.answer("zoneadm halt", answer{exit: 1, stderr: "zone 'web1': unable to destroy zone\n"})
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := Halt{Name: "web1"}.Do(ctx, f)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "unable to destroy zone") {
			t.Error(err)
		}
		if n := len(f.ran); n < 60 || n > 90 {
			t.Errorf("%d halts in a minute", n)
		}
	})
}

func TestHaltBelievesTheListingAndNotTheExitCode(t *testing.T) {
	f := newFake(t, inTheState("web1", Running))
	f.answer("zoneadm halt", answer{exit: 1, stderr: "zone 'web1': post-statechange hook failed\n", then: to("web1", Installed)})
	if err := (Halt{Name: "web1"}).Do(t.Context(), f); err != nil {
		t.Error(err)
	}
	f = newFake(t, inTheState("web1", Running)).answer("zoneadm halt", answer{})
	if err := (Halt{Name: "web1"}).Do(t.Context(), f); err == nil {
		t.Error("halted, though it runs")
	}
}

func TestWhatIsDownAlreadyIsNoFailure(t *testing.T) {
	f := newFake(t, installed("web1")).answer("zoneadm halt", answer{stderr: "zone 'web1': zone is already halted\n"})
	if err := (Halt{Name: "web1"}).Do(t.Context(), f); err != nil {
		t.Error(err)
	}
	f = newFake(t, inTheState("web1", Configured))
	f.answer("zoneadm uninstall", answer{exit: 1, stderr: "zoneadm: zone 'web1': is already in state 'configured'.\n"})
	if err := (Uninstall{Name: "web1"}).Do(t.Context(), f); err != nil {
		t.Error(err)
	}
}

func TestRemovingAZoneThatIsNotThereIsNotFound(t *testing.T) {
	absent := answer{exit: 1, stderr: "zoneadm: web1: No such zone configured\n"}
	for _, s := range []step{Halt{Name: "web1"}, Unmount{Name: "web1"}, Uninstall{Name: "web1"}, Delete{Name: "web1"}, Discard{Name: "web1"}} {
		f := newFake(t).answer("zoneadm halt", absent).answer("zoneadm unmount", absent).answer("zoneadm uninstall", absent)
		f.answer("zonecfg delete", answer{exit: 1, stderr: "web1: No such zone configured\nweb1: No such zone configured\n"})
		if err := s.Do(t.Context(), f); !errors.Is(err, host.ErrNotFound) {
			t.Errorf("%s: %v", s.Verb(), err)
		}
	}
}

func TestUninstallTriesOnceMoreWhenTheHookFailed(t *testing.T) {
	hook := answer{exit: 1, stderr: "Error: user snapshot(s) detected.\n", then: to("web1", Incomplete)}
	f := newFake(t, installed("web1")).answer("zoneadm uninstall", hook)
	if err := (Uninstall{Name: "web1"}).Do(t.Context(), f); err != nil {
		t.Error(err)
	}
	f = newFake(t, installed("web1")).answer("zoneadm uninstall", hook, hook, hook)
	err := Uninstall{Name: "web1"}.Do(t.Context(), f)
	if err == nil || !strings.Contains(err.Error(), "user snapshot(s) detected") || len(f.ran) != 2 {
		t.Errorf("%v, ran %q", err, f.ran)
	}
}

func TestUninstallDoesNotRepeatARefusal(t *testing.T) {
	f := newFake(t, installed("web1")).answer("zoneadm uninstall", answer{
		exit: 1, stderr: "zoneadm: zone 'web1': These file systems are mounted on subdirectories of /zone/web1.\n  /zone/web1/root/mnt\n",
	})
	err := Uninstall{Name: "web1"}.Do(t.Context(), f)
	if !errors.Is(err, host.ErrBusy) || len(f.ran) != 1 {
		t.Errorf("%v, ran %q", err, f.ran)
	}
}

func TestUninstallBelievesTheListingAndNotTheExitCode(t *testing.T) {
	f := newFake(t, installed("web1")).answer("zoneadm uninstall", answer{exit: 25, then: to("web1", Configured)})
	if err := (Uninstall{Name: "web1"}).Do(t.Context(), f); err != nil {
		t.Error(err)
	}
	f = newFake(t, installed("web1")).answer("zoneadm uninstall", answer{})
	if err := (Uninstall{Name: "web1"}).Do(t.Context(), f); !errors.Is(err, host.ErrState) {
		t.Errorf("%v, though the zone is installed", err)
	}
}

func TestDeleteIsDoneWhenTwoListingsLackTheZone(t *testing.T) {
	f := newFake(t, inTheState("web1", Configured)).answer("zonecfg delete", answer{})
	if err := (Delete{Name: "web1"}).Do(t.Context(), f); !errors.Is(err, host.ErrState) {
		t.Errorf("%v, though the zone is there", err)
	}
	f = newFake(t, inTheState("web1", Configured))
	f.answer("zonecfg delete", answer{stderr: "Zone web1 not in configured state; delete not allowed.  Use -F to force delete.\n"})
	if err := (Delete{Name: "web1"}).Do(t.Context(), f); err == nil {
		t.Error("deleted, though zonecfg complained")
	}
}

func TestDiscardDeletesAZoneThatItsBrandCannotUninstall(t *testing.T) {
	hook := answer{exit: 1, stderr: "Error: Found 0 top-level filesystems.\n"}
	f := newFake(t, inTheState("web1", Incomplete)).answer("zoneadm uninstall", hook, hook)
	if err := (Discard{Name: "web1"}).Do(t.Context(), f); err != nil || f.state("web1") != "" {
		t.Errorf("%v; the zone is %s", err, f.state("web1"))
	}
}

func TestDiscardLeavesAZoneAloneThatIsNotIncompleteAnyMore(t *testing.T) {
	refusal := answer{exit: 1, stderr: "zoneadm: zone 'web1': uninstall operation is invalid for running zones.\n", then: to("web1", Running)}
	f := newFake(t, inTheState("web1", Incomplete)).answer("zoneadm uninstall", refusal)
	if err := (Discard{Name: "web1"}).Do(t.Context(), f); !errors.Is(err, host.ErrState) || f.state("web1") != Running {
		t.Errorf("%v; the zone is %s", err, f.state("web1"))
	}
}

func TestRemovalFollowsTheState(t *testing.T) {
	halt, unmount, uninstall, remove, discard := "zone.halt", "zone.unmount", "zone.uninstall", "zone.delete", "zone.discard"
	for state, want := range map[State][]string{
		Configured:   {remove},
		Incomplete:   {discard},
		Installed:    {uninstall, remove},
		Ready:        {halt, uninstall, remove},
		Running:      {halt, uninstall, remove},
		ShuttingDown: {halt, uninstall, remove},
		Down:         {halt, uninstall, remove},
		Mounted:      {unmount, uninstall, remove},
		"unheard-of": {uninstall, remove},
	} {
		f := newFake(t, inTheState("web1", state))
		var verbs []string
		for _, s := range Removal(inTheState("web1", state)) {
			verbs = append(verbs, s.(step).Verb())
			if err := s.(step).Do(t.Context(), f); err != nil {
				t.Errorf("%s: %v", state, err)
			}
		}
		if diff := cmp.Diff(want, verbs); diff != "" {
			t.Errorf("%s: %s", state, diff)
		}
		if left := f.state("web1"); left != "" {
			t.Errorf("%s: left %s", state, left)
		}
	}
	if got := Removal(Zone{Name: Global, State: Running}); got != nil {
		t.Errorf("the global zone would be removed by %v", got)
	}
}

func TestOmicron1LeavesItsDataset(t *testing.T) {
	for brand, want := range map[string]bool{"sparse": true, "ipkg": true, "lipkg": true, "omicron1": false} {
		if got := UninstallDestroys(brand); got != want {
			t.Errorf("%s: %v", brand, got)
		}
	}
}
