package plan_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
)

// A best-effort action that fails is reported; it blocks nothing, undoes nothing and is no
// failure of the run. While its command still runs, it is one.
func TestABestEffortActionBlocksNothing(t *testing.T) {
	for _, policy := range []plan.Policy{plan.Undo, plan.Stop, plan.Continue} {
		synctest.Test(t, func(t *testing.T) {
			book := &diary{}
			kind := action(fakeStep{name: "kind", book: book, fails: errors.New("no room")})
			kind.BestEffort = true
			var told []plan.EventKind
			outcome, err := plan.Apply(t.Context(), nil, plan.Plan{Policy: policy, Actions: []plan.Action{kind, action(fakeStep{name: "real", book: book}, "kind")}},
				plan.Options{Observe: func(e plan.Event) { told = append(told, e.Kind) }})
			if err != nil || outcome.Err() != nil || len(outcome.Undone) != 0 || len(outcome.Leftovers) != 0 {
				t.Errorf("%s: %v, %+v", policy, err, outcome)
			}
			if len(outcome.Passed) != 1 || outcome.Passed[0].Err.Error() != "no room" || len(outcome.Done) != 1 || outcome.Done[0].ID != "real" {
				t.Errorf("%s: %+v", policy, outcome)
			}
			if !slices.Contains(told, plan.Passed) || slices.Contains(told, plan.Failed) {
				t.Errorf("%s: %v", policy, told)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		book := &diary{}
		kind := action(fakeStep{name: "kind", book: book, fails: host.ErrStillRunning})
		kind.BestEffort = true
		outcome, err := plan.Apply(t.Context(), nil, plan.Plan{Policy: plan.Stop, Actions: []plan.Action{kind, action(fakeStep{name: "real", book: book}, "kind")}}, plan.Options{})
		if err != nil || !errors.Is(outcome.Err(), host.ErrStillRunning) || len(outcome.Done) != 0 {
			t.Errorf("%v, %+v", err, outcome)
		}
	})
}
