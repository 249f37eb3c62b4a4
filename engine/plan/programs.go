package plan

import (
	"maps"
	"slices"
)

// Needing is a Step that runs programs which its Explain does not show: what it
// looks at, or waits on.
type Needing interface {
	Step
	// Needs names them.
	Needs() []string
}

// Programs lists the programs of the host that the plan may run, also to take
// its actions back.
func (p Plan) Programs() []string {
	all := map[string]bool{}
	for _, a := range p.Actions {
		addPrograms(all, a.Step)
		for _, b := range append(a.rollback(), a.Cleanup...) {
			addPrograms(all, b.Step)
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func addPrograms(all map[string]bool, s Step) {
	for _, l := range s.Explain() {
		if program := l.Program(); program != "" {
			all[program] = true
		}
	}
	if n, ok := s.(Needing); ok {
		for _, program := range n.Needs() {
			all[program] = true
		}
	}
}
