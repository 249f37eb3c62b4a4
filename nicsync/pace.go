package nicsync

import (
	"context"
	"errors"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/napi"
)

// Pace says when a sled looks: after a while of its own, so that the sleds of a
// data centre that start together do not ask together; when something happened to
// a VM; every hour; and rarely where NAPI cannot tell what is this sled's.
type Pace struct {
	Random func() float64 // from 0 to below 1
}

// The times. The first delay is RFD 58's.
const (
	firstLeast = 2 * time.Minute
	firstMost  = 10 * time.Minute
	debounce   = 5 * time.Second
	fullLook   = time.Hour
	longLeast  = time.Hour
	longMost   = 8 * time.Hour
)

// First is how long after its start a sled first looks: 2 to 10 minutes.
func (p Pace) First() time.Duration {
	return firstLeast + time.Duration(p.Random()*float64(firstMost-firstLeast))
}

// Next is how long after a look the next one is, and whether what happens to VMs
// meanwhile brings it forward. err is how the look ended, and failures how many
// ended in error in a row, this one included. NAPI is asked for what it did not
// know after 1 to 2 hours, 2 to 4, 4 to 8: it may be another one by then.
func (p Pace) Next(err error, failures int) (wait time.Duration, eager bool) {
	_, unsupported := errors.AsType[*UnsupportedError](err)
	switch {
	case unsupported:
		least := min(longLeast<<min(max(failures-1, 0), 8), longMost/2)
		return least + time.Duration(p.Random()*float64(least)), false
	case errors.Is(err, host.ErrTransient):
		return napi.Backoff(failures-1, p.Random), false
	}
	return time.Duration((0.9 + 0.2*p.Random()) * float64(fullLook)), true
}

// Run looks until the context ends. Something that happens to a VM is looked at 5
// s later, together with what happens meanwhile.
func (p Pace) Run(ctx context.Context, happened <-chan struct{}, look func(context.Context) error) {
	due := time.Now().Add(p.First())
	eager, failures := false, 0 // the first look waits, whatever happens
	for {
		timer := time.NewTimer(time.Until(due))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-happened:
			timer.Stop()
			if soon := time.Now().Add(debounce); eager && soon.Before(due) {
				due = soon
			}
			continue
		case <-timer.C:
		}
		err := look(ctx)
		failures++
		if err == nil {
			failures = 0
		}
		var wait time.Duration
		wait, eager = p.Next(err, failures)
		due = time.Now().Add(wait)
	}
}
