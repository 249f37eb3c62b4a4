package commands_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/sledtest"
)

// shortages are what makes a sled give up its spares, and the reason that is told.
func shortages() map[string]struct {
	begin, end func(tx *world.Tx)
	why        string
} {
	return map[string]struct {
		begin, end func(tx *world.Tx)
		why        string
	}{
		"space": {full, func(tx *world.Tx) { tx.State.Pools[len(tx.State.Pools)-1].Ballast = 0 }, "less than 10 % of its pool is free"},
		"memory": {
			func(tx *world.Tx) { tx.Arm(world.Fault{Name: world.FaultLowSwap, Match: "swap", Times: 1000}) },
			func(tx *world.Tx) { tx.State.Faults = nil }, "less than 2 GiB of virtual memory is left",
		},
	}
}

// full leaves 6 % of the pool for zones.
func full(tx *world.Tx) {
	p := tx.State.Pools[len(tx.State.Pools)-1]
	p.Ballast = p.Size / 100 * 94
}

// spares counts those that reap keeps.
func spares(s *sledtest.Operator) int { return strings.Count(s.Run("reap -n -H"), "\tspare\t") }

// What is short is not spent on what no VM has: bootstrap removes the spares as it said, says
// why, makes none, and makes them again once there is enough.
func TestSparesAreGivenUpUnderPressure(t *testing.T) {
	t.Parallel()
	for name, c := range shortages() {
		t.Run(name, func(t *testing.T) {
			s := aSpare(t, sledtest.Small())
			faults(s.Operator, c.begin)
			if out := s.Run("reap -n -H"); !strings.Contains(out, "\torphan\tto remove\ta spare of pool ") || !strings.Contains(out, c.why) {
				t.Errorf("reap: %s", out)
			}
			explains(s.Operator, "bootstrap")
			left := s.Comparable()
			if out := s.Run("bootstrap -H"); !strings.Contains(out, "\tready\t0\t1 wanted; "+c.why+"\n") || strings.Contains(s.Run("zone list -H -o name"), "instance") {
				t.Error(out)
			}
			if name == "space" { // a fault counts down
				s.Same(left, "a bootstrap under pressure")
			}
			faults(s.Operator, c.end)
			if out := s.Run("bootstrap -H"); !strings.Contains(out, "1 wanted, created 1\n") || spares(s.Operator) != 1 {
				t.Error(out)
			}
		})
	}
}

// The agent gives up spares within a minute, and makes none as long as it lasts.
func TestTheAgentGivesUpSparesUnderPressure(t *testing.T) {
	t.Parallel()
	for name, c := range shortages() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := aSpare(t, sledtest.Small())
				s.Lobby = &sledtest.Lobby{}
				defer s.StartAgent(t, s.Host()).Stop()
				faults(s.Operator, c.begin)
				time.Sleep(75 * time.Second)
				if zones := s.Run("zone list -H -o name"); strings.Contains(zones, "instance") {
					t.Errorf("there is one still: %s", zones)
				}
				faults(s.Operator, c.end)
				if time.Sleep(11 * time.Minute); spares(s.Operator) != 1 {
					t.Error("there is none although there is room again")
				}
			})
		})
	}
}

// A VM on a pool without room takes the spare's; one whose id the control plane gives has
// the spare removed.
func TestAVMWithoutRoomHasTheSpares(t *testing.T) {
	t.Parallel()
	s := aSpare(t, sledtest.Small())
	faults(s.Operator, full)
	spare := s.zone
	s.Run("instance ensure web1")
	if s.find(); s.zone != spare {
		t.Errorf("in zone %s, the spare was %s", s.zone, spare)
	}
}

func TestAVMOfTheControlPlaneHasTheSparesRemovedForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sledtest.NearNexus(t, sim.NexusOptions{Era: "both"}, "[agent]\nflat_network = true\n[instance]\nspares = 1\n")
		a := s.StartAgent(t, s.Host())
		defer a.Stop()
		if n := spares(s); n != 1 {
			t.Fatalf("%d spares", n)
		}
		faults(s, full)
		a.Starts(1)
		if zones := s.Zones(); spares(s) != 0 || len(zones) != 2 {
			t.Errorf("zones %v", zones)
		}
	})
}
