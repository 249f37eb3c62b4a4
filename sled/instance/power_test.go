package instance

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/sled/instance/migration"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// A run of a verb that died is known by its intent: what it asked for is asked
// for again only if the machine is as it was.
func TestAPowerChangeThatDiedIsNotAskedForTwice(t *testing.T) {
	c := settings()
	r := made(t, c, oneNIC())
	reboot := powerChange{propolis.Reboot, "", propolis.StateRunning}
	off := powerChange{propolis.Stop, "", propolis.StateDestroyed}
	died := func(verb, propolisID, generation string) ledger.Fact {
		return intent(t, "dead", operation.Intent{Verb: verb, Subject: record.Subject(r.ID), Changes: []operation.Object{
			{Kind: "vm", Name: r.ID, Identity: propolisID, Old: generation},
		}})
	}
	const rebooting, stopping = "instance reboot", "propolis stop"
	mine := r.Incarnation.PropolisID
	whole := func(ask string) []string { return []string{ask, "propolis.await-state web1"} }
	wait := []string{"propolis.await-state web1"}
	for name, s := range map[string]struct {
		verb   string
		change powerChange
		before []ledger.Fact
		vm     migration.VM
		want   []string // nil: nothing to do
		fails  bool
	}{
		"reboot":                                     {rebooting, reboot, nil, migration.VM{State: "Running", Generation: 3}, whole("propolis.reboot web1"), false},
		"reboot, never asked for":                    {rebooting, reboot, []ledger.Fact{died(rebooting, mine, "3")}, migration.VM{State: "Running", Generation: 3}, whole("propolis.reboot web1"), false},
		"reboot, under way":                          {rebooting, reboot, []ledger.Fact{died(rebooting, mine, "3")}, migration.VM{State: "Rebooting", Generation: 4}, wait, false},
		"reboot, done":                               {rebooting, reboot, []ledger.Fact{died(rebooting, mine, "3")}, migration.VM{State: "Running", Generation: 5}, nil, false},
		"reboot, of the machine before":              {rebooting, reboot, []ledger.Fact{died(rebooting, "another", "3")}, migration.VM{State: "Running", Generation: 5}, whole("propolis.reboot web1"), false},
		"reboot, of a generation that is not known":  {rebooting, reboot, []ledger.Fact{died(rebooting, mine, "0")}, migration.VM{State: "Running", Generation: 5}, whole("propolis.reboot web1"), false},
		"reboot after another verb":                  {rebooting, reboot, []ledger.Fact{died(stopping, mine, "3")}, migration.VM{State: "Running", Generation: 5}, whole("propolis.reboot web1"), false},
		"reboot of what is rebooting by itself":      {rebooting, reboot, nil, migration.VM{State: "Rebooting", Generation: 4}, nil, true},
		"reboot of what was destroyed":               {rebooting, reboot, []ledger.Fact{died(rebooting, mine, "3")}, migration.VM{State: "Destroyed", Generation: 5}, nil, true},
		"power-off":                                  {stopping, off, nil, migration.VM{State: "Running", Generation: 3}, whole("propolis.stop web1"), false},
		"power-off, never asked for":                 {stopping, off, []ledger.Fact{died(stopping, mine, "3")}, migration.VM{State: "Running", Generation: 3}, whole("propolis.stop web1"), false},
		"power-off, under way":                       {stopping, off, []ledger.Fact{died(stopping, mine, "3")}, migration.VM{State: "Stopping", Generation: 4}, wait, false},
		"power-off of a VM that stops by itself":     {stopping, off, nil, migration.VM{State: "Stopped", Generation: 4}, wait, false},
		"power-off, done":                            {stopping, off, []ledger.Fact{died(stopping, mine, "3")}, migration.VM{State: "Destroyed", Generation: 6}, nil, false},
		"power-off of what is off":                   {stopping, off, nil, migration.VM{Err: propolis.ErrNoInstance}, nil, false},
		"power-off of what cannot be asked":          {stopping, off, nil, migration.VM{Err: errors.New("no route")}, nil, true},
		"power-off before the machine was ever made": {stopping, off, nil, migration.VM{}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			here := prepared().bring(c, r, atRunning)
			here.seen.Inside.VM = s.vm
			if s.vm.State != "" {
				here.seen.Inside.VM.ID = r.ID
			}
			d, next, err := powerDecision(c.Blueprint(), operationtest.Book(t, append(kept(t, r), s.before...)...), r, here.look(), moment("decided"), s.verb, s.change)
			if state, ok := errors.AsType[*StateError](err); ok != s.fails {
				t.Fatalf("error: %v, %v", err, state)
			}
			if s.fails {
				return
			}
			if diff := cmp.Diff(s.want, told(t, d, r.Incarnation)); diff != "" {
				t.Error(diff)
			}
			if changes := d.Intent.Changes; len(s.want) > 0 && (len(changes) != 1 || next.Generation != r.Generation+1) {
				t.Errorf("intent: %+v, generation %d", changes, next.Generation)
			}
			if len(s.before) > 0 && len(s.want) == 1 && d.Intent.Changes[0].Old != "3" {
				t.Errorf("a third run would wait for another generation: %+v", d.Intent.Changes)
			}
		})
	}
}
