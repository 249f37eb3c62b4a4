package instance

import (
	"errors"
	"slices"
	"testing"

	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/zone"
)

// What the control plane was promised, and has not got yet, the record tells.
func TestWhatIsOwed(t *testing.T) {
	const boot, earlier = "this boot", "an earlier boot"
	vmm := func(boot string) *record.VMM { return &record.VMM{PropolisID: "p", Boot: boot} }
	made, half := &record.Incarnation{PropolisID: "p", Ensured: true}, &record.Incarnation{PropolisID: "p"}
	for name, c := range map[string]struct {
		record record.Record
		want   record.Pending
	}{
		"an operator's that is to run":       {record.Record{Wanted: record.WantedRunning}, record.PendingNothing},
		"an operator's, half made":           {record.Record{Wanted: record.WantedRunning, Incarnation: half}, record.PendingNothing},
		"an operator's that is to end":       {record.Record{Wanted: record.WantedRunning, Incarnation: made, Ending: &record.Ending{}}, record.PendingDown},
		"registered":                         {record.Record{Wanted: record.WantedStopped, VMM: vmm(boot)}, record.PendingNothing},
		"registered, to run":                 {record.Record{Wanted: record.WantedRunning, VMM: vmm(boot)}, record.PendingUp},
		"half made":                          {record.Record{Wanted: record.WantedRunning, VMM: vmm(boot), Incarnation: half}, record.PendingUp},
		"running":                            {record.Record{Wanted: record.WantedRunning, VMM: vmm(boot), Incarnation: made}, record.PendingNothing},
		"running, to end":                    {record.Record{Wanted: record.WantedRunning, VMM: vmm(boot), Incarnation: made, Ending: &record.Ending{}}, record.PendingDown},
		"registered before the boot":         {record.Record{Wanted: record.WantedStopped, VMM: vmm(earlier)}, record.PendingLost},
		"to run before the boot":             {record.Record{Wanted: record.WantedRunning, VMM: vmm(earlier)}, record.PendingLost},
		"running before the boot":            {record.Record{Wanted: record.WantedRunning, VMM: vmm(earlier), Incarnation: made}, record.PendingLost},
		"running before the boot, to end":    {record.Record{Wanted: record.WantedRunning, VMM: vmm(earlier), Incarnation: made, Ending: &record.Ending{}}, record.PendingDown},
		"an operator's of before the boot":   {record.Record{Wanted: record.WantedRunning, Incarnation: made}, record.PendingNothing},
		"half made, which none is to run":    {record.Record{Wanted: record.WantedStopped, VMM: vmm(boot), Incarnation: half}, record.PendingNothing},
		"half made before the boot, and not": {record.Record{Wanted: record.WantedStopped, VMM: vmm(earlier), Incarnation: half}, record.PendingLost},
	} {
		if got := c.record.Pending(boot); got != c.want {
			t.Errorf("%s: %q is owed, want %q", name, got, c.want)
		}
	}
}

// A run whose making was cut short where it cannot be resumed is recreated
// next to what is left of it; the control plane's, whose id it has chosen, is
// cleared away first.
func TestARunThatCannotBeGoneOnWith(t *testing.T) {
	c := settings()
	mine := half(made(t, c, oneNIC()))
	theirs := mine
	theirs.VMM = &record.VMM{PropolisID: mine.Incarnation.PropolisID, Boot: "boot"}
	broken := func(r record.Record) *scene {
		here := prepared().bring(c, r, atInstalled)
		here.zone(r.Incarnation.Zone).State = zone.Incomplete
		return here
	}
	d, next, err := broken(mine).decide(t, c, operationtest.Book(t, kept(t, mine)...), EnsureRequest{Wanted: oneNIC()})
	if err != nil || next.Incarnation.PropolisID == mine.Incarnation.PropolisID || !slices.Contains(told(t, d, next.Incarnation, mine.Incarnation), "zone.discard Z'") {
		t.Errorf("an operator's: %v, %q", err, told(t, d, next.Incarnation, mine.Incarnation))
	}
	_, _, err = broken(theirs).decide(t, c, operationtest.Book(t, kept(t, theirs)...), EnsureRequest{Wanted: oneNIC()})
	if incomplete, ok := errors.AsType[*IncompleteBuildError](err); !ok || incomplete.Name != theirs.Name {
		t.Errorf("the control plane's: %v", err)
	}
	here := prepared().bring(c, theirs, atBooted)
	if _, next, err = here.decide(t, c, operationtest.Book(t, kept(t, theirs)...), EnsureRequest{Wanted: oneNIC()}); err != nil || next.Incarnation.PropolisID != theirs.Incarnation.PropolisID {
		t.Errorf("one that can be resumed: %v, %+v", err, next.Incarnation)
	}
}
