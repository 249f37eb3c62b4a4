package network_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sled/network"
)

// Links of an earlier configuration are remembered until they are gone: no
// prefix in sledctl's form shows their owner.
func TestFormerLinksAreRemembered(t *testing.T) {
	env := newEnv(t)
	ensure := func(change func(*network.Settings)) network.Record {
		s := settings()
		change(&s)
		if _, err := s.Ensure(t.Context(), env, false); err != nil {
			t.Fatal(err)
		}
		return record(t, env)
	}
	first := ensure(func(*network.Settings) {})
	if len(first.Former) != 0 {
		t.Errorf("at first: %+v", first.Former)
	}
	want := []network.Former{{Kind: "etherstub", Name: "stub0"}, {Kind: "vnic", Name: "gz0", MAC: first.GZMAC}}
	for range 2 { // the second time nothing changes
		second := ensure(func(s *network.Settings) { s.Etherstub, s.GZVNIC, s.ControlLink = "", "", "net0" })
		if d := cmp.Diff(want, second.Former); d != "" {
			t.Error(d)
		}
		if !second.FormerVNIC("gz0", first.GZMAC) || second.FormerVNIC("gz0", "02:08:20:00:00:ff") || !second.FormerEtherstub("stub0") || second.FormerEtherstub("gz0") {
			t.Errorf("%+v", second)
		}
	}
	if again := ensure(func(*network.Settings) {}); len(again.Former) != 0 {
		t.Errorf("configured as at first, %+v are former", again.Former)
	}
}

// A VNIC is held before it is made: if its making is killed, it goes when its
// time is up, and its name is not given to another meanwhile.
func TestAVNICIsHeldBeforeItIsMade(t *testing.T) {
	env := newEnv(t)
	if _, err := settings().Ensure(t.Context(), env, false); err != nil {
		t.Fatal(err)
	}
	held := func() []network.Hold {
		holds, err := network.Holds(operationtest.View(t, env))
		if err != nil {
			t.Fatal(err)
		}
		return holds
	}
	want := network.VNIC{Name: "uplink7", Over: "stub0", Hold: time.Hour}
	made := 0
	for point := 1; ; point++ {
		dying := host.Crash(env.Host, point, host.CrashAfter)
		_, _, err := settings().CreateVNIC(t.Context(), operationtest.On(env, dying), want, false, false)
		dying.Wait()
		_, there := link(t, env.Host, "uplink7")
		if there && len(held()) != 1 {
			t.Fatalf("killed after point %d: it is there, and held: %v", point, held())
		}
		if there {
			made++
			if r, err := env.Host.Run(t.Context(), host.Command{Program: "dladm", Args: []string{"delete-vnic", "uplink7"}}); err != nil || r.Exit != 0 {
				t.Fatal(err, string(r.Stderr))
			}
		}
		if !dying.Crashed() {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	if made < 2 {
		t.Errorf("it was made %d times", made)
	}
}

// Run again, it finds what it has made: also where it was killed between the
// making and the MTU. One that is asked for otherwise is a conflict.
func TestAVNICThatIsMadeIsNotMadeAgain(t *testing.T) {
	env := newEnv(t)
	if _, err := settings().Ensure(t.Context(), env, false); err != nil {
		t.Fatal(err)
	}
	want := network.VNIC{Name: "uplink7", Over: "net0", VLAN: 7, MTU: 1400, Hold: time.Hour}
	for point := 1; ; point++ {
		dying := host.Crash(env.Host, point, host.CrashAfter)
		_, _, _ = settings().CreateVNIC(t.Context(), operationtest.On(env, dying), want, false, false)
		dying.Wait()
		made, _, err := settings().CreateVNIC(t.Context(), env, want, false, false)
		if err != nil {
			t.Fatalf("killed %s: %v", dying.Where(), err)
		}
		again, report, err := settings().CreateVNIC(t.Context(), env, want, false, false)
		if err != nil || report.ID != "" || again != made {
			t.Errorf("once more: %v, intent %q, %+v, want %+v", err, report.ID, again, made)
		}
		if l, there := link(t, env.Host, "uplink7"); !there || l.MTU != 1400 || l.MAC != made.MAC {
			t.Errorf("killed %s: %+v, want MAC %s", dying.Where(), l, made.MAC)
		}
		if open := operation.Open(operationtest.View(t, env)); len(open) > 0 {
			t.Errorf("killed %s: %+v is open", dying.Where(), open)
		}
		other := want
		other.VLAN = 8
		if _, _, err := settings().CreateVNIC(t.Context(), env, other, false, false); err == nil {
			t.Error("one with another VLAN is taken for it")
		}
		if _, _, err := settings().DeleteVNIC(t.Context(), env, "uplink7", func(ledger.View, string) error { return nil }, false); err != nil {
			t.Fatal(err)
		}
		if !dying.Crashed() {
			return
		}
	}
}
