// Package plan turns a decision into data and data into changes. A plan is a
// list of actions with their reasons and their order; it can be printed
// (--dry-run, --explain), compared in tests, and applied. Making one runs no
// command and reads no clock.
package plan

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/sledctl/sledctl/host"
)

// Step is one strict change of one host resource: "exists" is an error, so success
// means that this run made it, and a step that fails leaves nothing half done of its
// own. The packages of host resources meet this interface without importing it.
type Step interface {
	// Verb names the change, resource first: "vnic.create".
	Verb() string
	// Explain lists what Do will do to the host, in order.
	Explain() []host.Line
	// Do does it. The context carries the step's deadline.
	Do(ctx context.Context, h host.Host) error
	// Undo is the step that takes this one back, or nil when there is nothing
	// to take back. It is a Step of the same package.
	Undo() any
}

// Change says what an action does to its object, as it is printed.
type Change string

// The changes.
const (
	Create Change = "+"
	Modify Change = "~"
	Remove Change = "-"
	Wait   Change = " "
)

// Action is a step with its place in a plan.
type Action struct {
	ID     string   // unique in its plan; starts with the verb
	Object string   // what it is about, as "zone propolis_instance_…"
	Why    string   // one reason, for the operator
	Change Change   // what happens to the object
	After  []string // ids of the actions that must be done first
	Step   Step
	// BestEffort is an action whose failure is reported and stops nothing: those
	// after it are done all the same.
	BestEffort bool
	// Irrevocable is a change that continues by itself once it was asked for: if a
	// later action fails, its object counts as left.
	Irrevocable bool
	// Cleanup removes what the step makes next to its object: after its undo,
	// and also when it fails.
	Cleanup []Action
	// Evidence shows why the step failed, if it does; may be nil.
	Evidence *Evidence
}

// rollback lists the actions that take this one back. A step whose Undo is nil has
// none.
func (a Action) rollback() []Action {
	s, ok := a.Step.Undo().(Step)
	if !ok {
		return nil
	}
	return append([]Action{{ID: "undo " + a.ID, Object: a.Object, Why: "undo", Change: Remove, Step: s}}, a.Cleanup...)
}

// Policy says what a failed action means for the rest of its plan.
type Policy string

// The policies.
const (
	// Undo takes back what this run made, newest first: ensure, single steps.
	Undo Policy = "undo"
	// Stop leaves what is done and does no more: bootstrap, delete, stop. It
	// never destroys to tidy up.
	Stop Policy = "stop"
	// Continue tries every action whose own predecessors succeeded: reap.
	Continue Policy = "continue"
)

// Plan is a set of actions and what to do when one of them fails.
type Plan struct {
	Actions []Action
	Policy  Policy
	// Why is the reason for the plan as a whole, in a dry run's words; may be empty.
	Why string
	// Drawn are the values that were drawn for this plan alone, with the words that
	// stand for them where it is only shown: a plan that is made again has others.
	Drawn map[string]string
}

// Empty says whether there is nothing to do.
func (p Plan) Empty() bool { return len(p.Actions) == 0 }

// Sorted returns the plan with its actions in an order in which they can be
// done: each behind those it comes after, otherwise as they stand. It fails on
// a cycle, on an id that occurs twice, and on one that no action has.
func (p Plan) Sorted() (Plan, error) {
	behind, err := p.behind()
	if err != nil {
		return Plan{}, err
	}
	open := make([]int, len(p.Actions))  // how many actions must still be done before
	round := make([]int, len(p.Actions)) // of reading the actions in order, the one in which it can be done
	var ready []int
	for i, a := range p.Actions {
		if open[i] = len(a.After); open[i] == 0 {
			ready = append(ready, i)
		}
	}
	for next := 0; next < len(ready); next++ {
		i := ready[next]
		for _, j := range behind[i] {
			after := round[i]
			if j < i {
				after++
			}
			round[j] = max(round[j], after)
			if open[j]--; open[j] == 0 {
				ready = append(ready, j)
			}
		}
	}
	if len(ready) < len(p.Actions) {
		stuck := slices.IndexFunc(open, func(n int) bool { return n > 0 })
		return Plan{}, fmt.Errorf("plan: %q waits for itself", p.Actions[stuck].ID)
	}
	slices.SortFunc(ready, func(a, b int) int { return cmp.Or(cmp.Compare(round[a], round[b]), cmp.Compare(a, b)) })
	sorted := make([]Action, len(ready))
	for n, i := range ready {
		sorted[n] = p.Actions[i]
	}
	return Plan{Actions: sorted, Policy: p.Policy, Drawn: p.Drawn, Why: p.Why}, nil
}

// behind lists for each action those that come after it, all by their place.
func (p Plan) behind() ([][]int, error) {
	at := make(map[string]int, len(p.Actions))
	for i, a := range p.Actions {
		if _, twice := at[a.ID]; twice {
			return nil, fmt.Errorf("plan: two actions are called %q", a.ID)
		}
		at[a.ID] = i
	}
	behind := make([][]int, len(p.Actions))
	for i, a := range p.Actions {
		for _, id := range a.After {
			before, ok := at[id]
			if !ok {
				return nil, fmt.Errorf("plan: %q comes after %q, which is not in the plan", a.ID, id)
			}
			behind[before] = append(behind[before], i)
		}
	}
	return behind, nil
}

// Chain returns the actions with each one made to follow the one before it.
func Chain(actions ...Action) []Action {
	for i := 1; i < len(actions); i++ {
		actions[i].After = append(slices.Clip(actions[i].After), actions[i-1].ID)
	}
	return actions
}

// IDs lists the ids of the actions, for another action's After.
func IDs(actions []Action) []string {
	ids := make([]string, len(actions))
	for i, a := range actions {
		ids[i] = a.ID
	}
	return ids
}
