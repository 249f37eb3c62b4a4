package nicsync

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/peer/napi"
)

// Schedule says when a sled looks: after a while of its own, so that the sleds of a
// data centre that start together do not ask together; when something happened to
// a VM; every hour; and rarely where NAPI cannot tell what is this sled's.
type Schedule struct {
	Random func() float64 // from 0 to below 1
	// Within is how long after its start a sled first looks at the latest; 0: 10
	// minutes.
	Within time.Duration
}

// The times. The first delay is RFD 58's: 2 to 10 minutes.
const (
	firstMost  = 10 * time.Minute
	firstLeast = 5 // of the most, the fifth part
	debounce   = 5 * time.Second
	fullLook   = time.Hour
	longLeast  = time.Hour
	longMost   = 8 * time.Hour
)

// First is how long after its start a sled first looks: 2 to 10 minutes, or a
// fifth of Within to all of it.
func (p Schedule) First() time.Duration {
	most := cmp.Or(p.Within, firstMost)
	least := most / firstLeast
	return least + time.Duration(p.Random()*float64(most-least))
}

// Next is how long after a look the next one is, and whether what happens to VMs
// meanwhile brings it forward. err is how the look ended, and failures how many
// ended in error in a row, this one included. NAPI is asked for what it did not
// know after 1 to 2 hours, 2 to 4, 4 to 8: it may be another one by then.
func (p Schedule) Next(err error, failures int) (wait time.Duration, eager bool) {
	_, unsupported := errors.AsType[*UnsupportedError](err)
	switch {
	case unsupported:
		least := min(longLeast<<min(max(failures-1, 0), 8), longMost/2)
		return least + time.Duration(p.Random()*float64(least)), false
	case passing(err):
		return napi.Backoff(failures-1, p.Random), false
	}
	return time.Duration((0.9 + 0.2*p.Random()) * float64(fullLook)), true
}

// passing says whether the next look may go better although nothing happens to a
// VM: nobody answered, or not as a NAPI does, the sled could not be seen, or
// somebody else was changing a record.
func passing(err error) bool {
	_, unknown := errors.AsType[*UnknownError](err)
	return unknown || errors.Is(err, host.ErrTransient) || errors.Is(err, napi.ErrReply) || errors.Is(err, napi.ErrChanged)
}

// Run looks until the context ends. Something that happens to a VM is looked at 5
// s later, together with what happens meanwhile.
func (p Schedule) Run(ctx context.Context, happened <-chan struct{}, look func(context.Context) error) {
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
