package instance

import (
	"context"
	"errors"
	"path"
	"time"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/smf"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// openingTime bounds the wait for a zone that is being brought up, left so by a run that was
// killed: until its svc.configd answers, and its Propolis, one cannot tell how far
// it is.
const openingTime = 30 * time.Second

// lookWhenOpen is Look at an incarnation in which no machine is known to have been made,
// once it can be looked into, or that time has passed.
func lookWhenOpen(ctx context.Context, s Settings, h host.Host, view ledger.View, r record.Record, disks []record.Disk, boot string) (Observed, error) {
	waiting, release := context.WithTimeout(ctx, openingTime)
	defer release()
	for {
		seen, err := s.Look(ctx, h, view, r, disks, boot)
		if err != nil || r.Incarnation == nil || r.Incarnation.Ensured || r.Incarnation.Boot != boot || !seen.uninspected() || waiting.Err() != nil {
			return seen, err
		}
		if seen.Inside.Err == nil {
			err = propolis.AwaitHTTP{Target: layout.TargetOf(s.Blueprint(), r)}.Do(waiting, h)
		} else {
			err = smf.Await{Zone: r.Incarnation.Zone, Root: path.Join(r.Incarnation.Zonepath, "root"), FMRI: layout.Milestone, State: smf.Online}.Do(waiting, h)
		}
		if ctx.Err() != nil {
			return seen, context.Cause(ctx)
		}
		if err != nil {
			release() // it will not come: what is seen once more decides
		}
	}
}

// uninspected reports whether a running zone, or the Propolis in it, could not be asked.
func (s Observed) uninspected() bool {
	return s.Inside.Err != nil || s.Inside.VM.Err != nil && !IsNoInstance(s.Inside.VM.Err)
}

// why is what could not be asked.
func (s Observed) why() error { return errors.Join(s.Inside.Err, s.Inside.VM.Err) }
