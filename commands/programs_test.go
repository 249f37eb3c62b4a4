package commands_test

import (
	"slices"
	"strings"

	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/test/sledtest"
)

// needs holds the programs that an action ran against those that it is known to
// need: they are looked for before anything is changed.
func needs(s *sledtest.Operator, line string, a plan.Action, r tracedRun) {
	s.T.Helper()
	if a.BestEffort {
		return // what it lacks, it does without
	}
	known := plan.Plan{Actions: []plan.Action{a}}.Programs()
	for _, t := range r.traces {
		for _, e := range t.Events {
			p := e.Line.Program()
			request := p == strings.ToUpper(p) // GET
			if e.Action == a.ID && !request && !slices.Contains(known, p) {
				s.T.Errorf("sledctl %s: %s ran %s, and is known to need %q", line, a.ID, p, known)
			}
		}
	}
}
