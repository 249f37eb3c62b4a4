package controller

import (
	"testing"
	"time"

	"github.com/sledctl/sledctl/fleet/api"
	"github.com/sledctl/sledctl/fleet/eviction"
	"github.com/sledctl/sledctl/fleet/fence"
)

func TestWhatIsDoneAboutAMove(t *testing.T) {
	m, cancelled := Move{Generation: 4, Wanted: true}, Move{Generation: 4}
	here, left := &Pod{Sled: "sled1"}, &Pod{Sled: "sled1", Ended: true}
	target := func(change func(*Target)) *Target {
		to := &Target{Pod: Pod{Sled: "sled2"}}
		change(to)
		return to
	}
	placed := target(func(*Target) {})
	silent := target(func(to *Target) { to.Silent = true })
	arrived := target(func(to *Target) { to.Arrived = true })
	failed := target(func(to *Target) { to.Ended = true })
	unplaced := target(func(to *Target) { to.Sled = "" })
	hold := fence.Run{Generation: 4, Sled: "sled2", Policy: fence.Hold, Started: true}
	lease := fence.Run{Generation: 4, Sled: "sled2", Policy: fence.Lease, Terms: terms(), Started: true}
	claimed := fence.Run{Generation: 4, Sled: "sled2", Policy: fence.Lease, Terms: terms()}
	over := fence.Evidence{Silent: time.Hour}
	for _, c := range []struct {
		name   string
		m      Move
		source *Pod
		target *Target
		run    fence.Run
		e      fence.Evidence
		want   Act
		proof  fence.Proof
	}{
		{"raised", m, here, nil, hold, fence.Evidence{}, Claim, ""},
		{"raised, and sleds are not counted", m, here, nil, hold, fence.Evidence{Uncounted: []string{"sled3"}}, Wait, ""},
		{"raised, and not wanted any longer", cancelled, here, nil, hold, fence.Evidence{}, GiveUp, fence.NeverRan},
		{"raised, and the VM has ended", m, left, nil, hold, fence.Evidence{}, GiveUp, fence.NeverRan},
		{"no sled yet", m, here, unplaced, hold, fence.Evidence{}, Nothing, ""},
		{"no sled for long", Move{Generation: 4, Wanted: true, Pending: maxPending}, here, unplaced, hold, fence.Evidence{}, Cancel, ""},
		{"no sled, and not wanted any longer", cancelled, here, unplaced, hold, fence.Evidence{}, Cancel, ""},
		{"no sled, and the VM has ended", m, left, unplaced, hold, fence.Evidence{}, Cancel, ""},
		{"cancelled", m, here, target(func(to *Target) { to.Sled, to.Deleting = "", true }), hold, fence.Evidence{}, GiveUp, fence.NeverRan},
		{"it comes", m, here, placed, hold, fence.Evidence{}, Nothing, ""},
		{"it comes, and is not wanted any longer", cancelled, here, placed, hold, fence.Evidence{}, Nothing, ""},
		{"it has left, and has not come", m, left, placed, hold, fence.Evidence{}, Nothing, ""},
		{"it is there", m, here, arrived, hold, fence.Evidence{}, Arrive, fence.Confirmed},
		{"it is there, and has ended there", m, left, target(func(to *Target) { to.Arrived, to.Ended = true, true }), hold, fence.Evidence{}, Arrive, fence.Confirmed},
		{"it is there, and sleds are not counted", m, here, arrived, hold, fence.Evidence{Uncounted: []string{"sled3"}}, Arrive, fence.Confirmed},
		{"it has not come", m, here, failed, hold, fence.Evidence{}, GiveUp, fence.Confirmed},
		{"it has not come, and has ended", m, left, failed, hold, fence.Evidence{}, GiveUp, fence.Confirmed},
		{"hold, and the target is silent", m, here, silent, hold, over, Wait, ""},
		{"hold, the target is silent, it has left", m, left, silent, hold, over, Wait, ""},
		{"lease, and the target is silent: its source may let it go yet", m, here, silent, lease, over, Wait, ""},
		{"lease, the target is silent, it has left", m, left, silent, lease, fence.Evidence{Silent: 29 * time.Second}, Wait, ""},
		{"lease, it has left, and it is over", m, left, silent, lease, over, GiveUp, fence.Expired},
		{"lease, it has left, the target had not begun", m, left, silent, claimed, over, Evict, ""},
	} {
		got := DecideMove(c.m, c.source, c.target, c.run, c.e)
		if got.Act != c.want || got.Proof != c.proof {
			t.Errorf("%s: %+v, want %s %s", c.name, got, c.want, c.proof)
		}
	}
}

// Whatever else is so: a move ends as its target reports, or, if that is silent, only once its
// source reports that it has the VM no longer.
func TestAMoveEndsByWhatIsReported(t *testing.T) {
	yes := []bool{false, true}
	for _, wanted := range yes {
		for _, left := range yes {
			for _, silent := range yes {
				for _, deleting := range yes {
					for _, policy := range []fence.Policy{fence.Hold, fence.Power, fence.Storage, fence.Lease} {
						run := fence.Run{Generation: 4, Sled: "sled2", Policy: policy, Terms: terms(), Started: true}
						e := fence.Evidence{Silent: time.Hour, Off: "sled2"}
						target := &Target{Pod: Pod{Sled: "sled2", Silent: silent, Deleting: deleting}}
						got := DecideMove(Move{4, wanted, time.Hour}, &Pod{Sled: "sled1", Ended: left}, target, run, e)
						if got.Act == Arrive || got.Act == Cancel || got.Act == GiveUp && !(left && silent) {
							t.Errorf("wanted %v, left %v, silent %v, deleting %v, %s: %+v", wanted, left, silent, deleting, policy, got)
						}
					}
				}
			}
		}
	}
}

func TestWhatIsDoneAboutAMigration(t *testing.T) {
	ready := Asked{There: true, Wanted: true, Running: true, Source: "sled1"}
	with := func(change func(*Asked)) Asked {
		a := ready
		change(&a)
		return a
	}
	for name, c := range map[string]struct {
		a    Asked
		want Act
	}{
		"it runs":              {ready, Begin},
		"to a sled":            {with(func(a *Asked) { a.Target, a.Coming = "sled2", 1 }), Begin},
		"one leaves already":   {with(func(a *Asked) { a.Leaving = 1 }), Begin},
		"it is over":           {with(func(a *Asked) { a.Phase = api.MigrationSucceeded }), Nothing},
		"it has failed":        {with(func(a *Asked) { a.Phase = api.MigrationFailed }), Nothing},
		"it moves":             {with(func(a *Asked) { a.Mine, a.Running = true, false }), Follow},
		"it moves otherwise":   {with(func(a *Asked) { a.Moving = true }), Wait},
		"no VM":                {Asked{}, Fail},
		"it is to stop":        {with(func(a *Asked) { a.Wanted = false }), Fail},
		"a volume":             {with(func(a *Asked) { a.Volumes = true }), Fail},
		"it is there":          {with(func(a *Asked) { a.Target = "sled1" }), Fail},
		"it does not run":      {with(func(a *Asked) { a.Running = false }), Wait},
		"its sled is silent":   {with(func(a *Asked) { a.Silent = true }), Wait},
		"uncounted":            {with(func(a *Asked) { a.Uncounted = "sled3" }), Wait},
		"two leave already":    {with(func(a *Asked) { a.Leaving = 2 }), Wait},
		"it has run again":     {with(func(a *Asked) { a.Stale = true }), Fail},
		"two come already":     {with(func(a *Asked) { a.Target, a.Coming = "sled2", 2 }), Wait},
		"two come to no sled":  {with(func(a *Asked) { a.Coming = 2 }), Begin},
		"it moved, and is off": {with(func(a *Asked) { a.Phase, a.There = api.MigrationSucceeded, false }), Nothing},
	} {
		if got := DecideMigration(c.a); got.Act != c.want || got.Act == Wait && got.Reason == "" {
			t.Errorf("%s: %+v, want %s", name, got, c.want)
		}
	}
}

func TestHowFarASledIsEmptied(t *testing.T) {
	moves := Left{VM: "a", Verdict: eviction.Verdict{Act: eviction.Move}}
	stays := Left{VM: "b", Verdict: eviction.Verdict{Act: eviction.Refuse, Reason: "VM b has evict: block"}}
	stuck := moves
	stuck.Stuck = "no sled has taken it"
	for name, c := range map[string]struct {
		there bool
		left  []Left
		want  Emptied
	}{
		"no sled":      {false, nil, Emptied{api.MaintenanceBlocked, 0, "there is no such sled"}},
		"none is left": {true, nil, Emptied{Phase: api.MaintenanceReady}},
		"one moves":    {true, []Left{moves}, Emptied{api.MaintenanceDraining, 1, ""}},
		"one stays":    {true, []Left{moves, stays}, Emptied{api.MaintenanceBlocked, 2, "VM b has evict: block"}},
		"one is stuck": {true, []Left{stuck}, Emptied{api.MaintenanceBlocked, 1, "VM a: no sled has taken it"}},
		"many stay":    {true, []Left{stays, stuck, stays, stays, stays}, Emptied{api.MaintenanceBlocked, 5, "VM b has evict: block; VM a: no sled has taken it; VM b has evict: block; and 2 more"}},
	} {
		if got := Empties(c.there, c.left); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
