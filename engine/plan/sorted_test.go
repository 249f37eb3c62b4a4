package plan_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sledctl/sledctl/engine/plan"
)

// The order is the one of which the definition is plain and slow: read the
// actions as they stand, do each that can be done, and begin again.
func TestSortedIsTheOrderOfReadingAgainAndAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := plan.Plan{Policy: plan.Continue}
		ids := rapid.Permutation([]string{"a", "b", "c", "d", "e", "f", "g"}).Draw(t, "ids")
		for i, id := range ids {
			before := rapid.SliceOfN(rapid.SampledFrom(ids), 0, 2).Draw(t, fmt.Sprintf("before %d", i))
			p.Actions = append(p.Actions, action(fakeStep{name: id}, before...))
		}
		want, possible := readAgain(p.Actions)
		sorted, err := p.Sorted()
		if possible != (err == nil) {
			t.Fatalf("possible is %t; Sorted says %v", possible, err)
		}
		if diff := cmp.Diff(want, plan.IDs(sorted.Actions)); possible && diff != "" {
			t.Fatal(diff)
		}
	})
}

func readAgain(actions []plan.Action) (order []string, possible bool) {
	done := map[string]bool{}
	for more := true; more; {
		more = false
		for _, a := range actions {
			ready := !done[a.ID]
			for _, id := range a.After {
				ready = ready && done[id]
			}
			if ready {
				order, done[a.ID], more = append(order, a.ID), true, true
			}
		}
	}
	return order, len(order) == len(actions)
}
