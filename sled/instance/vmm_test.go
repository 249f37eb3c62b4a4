package instance

import (
	"errors"
	"slices"
	"testing"

	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/zone"
)

// What the control plane was promised, and has not got yet, the record tells.
func TestWhatIsOwed(t *testing.T) {
	const boot, earlier = "this boot", "an earlier boot"
	vmm := func(boot string) *VMM { return &VMM{PropolisID: "p", Boot: boot} }
	made, half := &Run{PropolisID: "p", Ensured: true}, &Run{PropolisID: "p"}
	for name, c := range map[string]struct {
		record Record
		want   Pending
	}{
		"an operator's that is to run":       {Record{Wanted: WantedRunning}, PendingNothing},
		"an operator's, half made":           {Record{Wanted: WantedRunning, Run: half}, PendingNothing},
		"an operator's that is to end":       {Record{Wanted: WantedRunning, Run: made, Ending: &Ending{}}, PendingDown},
		"registered":                         {Record{Wanted: WantedStopped, VMM: vmm(boot)}, PendingNothing},
		"registered, to run":                 {Record{Wanted: WantedRunning, VMM: vmm(boot)}, PendingUp},
		"half made":                          {Record{Wanted: WantedRunning, VMM: vmm(boot), Run: half}, PendingUp},
		"running":                            {Record{Wanted: WantedRunning, VMM: vmm(boot), Run: made}, PendingNothing},
		"running, to end":                    {Record{Wanted: WantedRunning, VMM: vmm(boot), Run: made, Ending: &Ending{}}, PendingDown},
		"registered before the boot":         {Record{Wanted: WantedStopped, VMM: vmm(earlier)}, PendingLost},
		"to run before the boot":             {Record{Wanted: WantedRunning, VMM: vmm(earlier)}, PendingLost},
		"running before the boot":            {Record{Wanted: WantedRunning, VMM: vmm(earlier), Run: made}, PendingLost},
		"running before the boot, to end":    {Record{Wanted: WantedRunning, VMM: vmm(earlier), Run: made, Ending: &Ending{}}, PendingDown},
		"an operator's of before the boot":   {Record{Wanted: WantedRunning, Run: made}, PendingNothing},
		"half made, which none is to run":    {Record{Wanted: WantedStopped, VMM: vmm(boot), Run: half}, PendingNothing},
		"half made before the boot, and not": {Record{Wanted: WantedStopped, VMM: vmm(earlier), Run: half}, PendingLost},
	} {
		if got := c.record.Pending(boot); got != c.want {
			t.Errorf("%s: %q is owed, want %q", name, got, c.want)
		}
	}
}

// A run whose making was cut short where it cannot be gone on with is made again
// next to what is left of it; the control plane's, whose id it has chosen, is
// cleared away first.
func TestARunThatCannotBeGoneOnWith(t *testing.T) {
	c := settings()
	mine := half(made(t, c, oneNIC()))
	theirs := mine
	theirs.VMM = &VMM{PropolisID: mine.Run.PropolisID, Boot: "boot"}
	broken := func(r Record) *scene {
		here := prepared().bring(c, r, atInstalled)
		here.zone(r.Run.Zone).State = zone.Incomplete
		return here
	}
	d, next, err := broken(mine).decide(t, c, operationtest.Book(t, kept(t, mine)...), EnsureRequest{Wanted: oneNIC()})
	if err != nil || next.Run.PropolisID == mine.Run.PropolisID || !slices.Contains(told(t, d, next.Run, mine.Run), "zone.discard Z'") {
		t.Errorf("an operator's: %v, %q", err, told(t, d, next.Run, mine.Run))
	}
	_, _, err = broken(theirs).decide(t, c, operationtest.Book(t, kept(t, theirs)...), EnsureRequest{Wanted: oneNIC()})
	if incomplete, ok := errors.AsType[*IncompleteBuildError](err); !ok || incomplete.Name != theirs.Name {
		t.Errorf("the control plane's: %v", err)
	}
	here := prepared().bring(c, theirs, atBooted)
	if _, next, err = here.decide(t, c, operationtest.Book(t, kept(t, theirs)...), EnsureRequest{Wanted: oneNIC()}); err != nil || next.Run.PropolisID != theirs.Run.PropolisID {
		t.Errorf("one that can be gone on with: %v, %+v", err, next.Run)
	}
}
