package layers

import (
	"testing"
	"time"

	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/illumos/ipadm"
	"github.com/sledctl/sledctl/illumos/smf"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/vnic"
	"github.com/sledctl/sledctl/zfs"
	"github.com/sledctl/sledctl/zone"
)

// What is known to take long has the time for it; what only waits is given up when the
// run ends.
func TestHowLongStepsMayTake(t *testing.T) {
	for _, c := range []struct {
		step  plan.Step
		most  time.Duration
		waits bool
	}{
		{zone.Install{}, 10 * time.Minute, false},
		{zone.Clone{}, 5 * time.Minute, false},
		{zone.Uninstall{}, 5 * time.Minute, false},
		{zone.Discard{}, 5 * time.Minute, false},
		{zone.Boot{}, 3 * time.Minute, false},
		{zone.Halt{}, 3 * time.Minute, false},
		{smf.Seed{}, 5 * time.Minute, false},
		{smf.Await{}, 3 * time.Minute, true},
		{ipadm.AwaitAddress{}, 2 * time.Minute, true},
		{propolis.AwaitHTTP{}, 3 * time.Minute, true},
		{propolis.Ensure{}, 0, true},
		{propolis.Arrive{}, 0, true},
		{propolis.AwaitState{}, 0, true},
		{propolis.PowerOff{}, 0, true},
		{propolis.ChangeState{State: propolis.Run}, 0, true},
		{zfs.ImportPool{}, 10 * time.Minute, false},
		{zfs.Destroy{}, 10 * time.Minute, false},
		{zfs.DestroySnapshots{}, 10 * time.Minute, false},
	} {
		limited, ok := c.step.(plan.Limited)
		if !ok {
			t.Errorf("%s has but a minute", c.step.Verb())
			continue
		}
		if most, waits := limited.Limit(); most != c.most || waits != c.waits {
			t.Errorf("%s: %v, only waits %v; want %v, %v", c.step.Verb(), most, waits, c.most, c.waits)
		}
	}
	for _, step := range []plan.Step{vnic.Create{}, propolis.ChangeState{State: propolis.Stop}} {
		if limited, ok := step.(plan.Limited); ok {
			if most, waits := limited.Limit(); most != time.Minute || waits {
				t.Errorf("%s: %v, only waits %v", step.Verb(), most, waits)
			}
		}
	}
}
