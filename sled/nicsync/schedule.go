package nicsync

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/peer/napi"
)

// Schedule says when a sled looks: at all records after a while of its own, so that
// the sleds of a data centre that start together do not ask together, every hour, and
// rarely where NAPI cannot tell what is this sled's; and at those of a VM when
// something happened to it, from the start on.
type Schedule struct {
	Random func() float64 // from 0 to below 1
	// Within is how long after its start a sled first looks at the latest; 0: 10
	// minutes.
	Within time.Duration
}

// The times. The first delay is RFD 58's: 2 to 10 minutes.
const (
	firstMost  = 10 * time.Minute
	firstLeast = 5               // of the most, the fifth part
	debounce   = 4 * time.Second // a beat more, and what happens is followed within 6 s
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

// Next is how long after a look at all the next one is, and whether what happens to
// all meanwhile brings it forward. err is how the look ended, and failures how many
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

// Run looks until the context ends. What something happened to is looked at 4 s
// later, together with what happens meanwhile, and kept until that went well.
func (p Schedule) Run(ctx context.Context, news *News, look func(context.Context, Touched) error) {
	r := rota{Schedule: p, due: time.Now().Add(p.First())} // the first look at all waits, whatever happens
	for {
		next := r.due
		if !r.soon.IsZero() && r.soon.Before(next) {
			next = r.soon
		}
		timer := time.NewTimer(time.Until(next))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-news.Some():
			timer.Stop()
			r.happened(news.Take())
		case <-timer.C:
			r.pending.add(news.Take())
			r.turn(ctx, look)
		}
	}
}

// rota is what a sled is to look at, and when.
type rota struct {
	Schedule
	due      time.Time // all
	eager    bool      // what happens to all brings that forward
	failures int       // of looks at all, in a row
	pending  Touched
	soon     time.Time // what is pending; zero: it waits for the next event
	missed   int       // looks at it that failed, in a row
}

func (r *rota) happened(t Touched) {
	r.pending.add(t)
	at := time.Now().Add(debounce)
	if t.All && r.eager && at.Before(r.due) {
		r.due = at
	}
	if r.pending.named() && r.soon.IsZero() {
		r.soon = at
	}
}

func (r *rota) turn(ctx context.Context, look func(context.Context, Touched) error) {
	t := r.pending
	t.All = !time.Now().Before(r.due)
	err := look(ctx, t)
	r.soon = time.Time{}
	switch {
	case err == nil:
		r.pending, r.missed = Touched{}, 0
	case t.All && r.pending.named() && !passing(err): // NAPI cannot list, and can be asked for these
		r.soon = time.Now().Add(debounce)
	case !t.All && passing(err):
		r.missed++
		r.soon = time.Now().Add(napi.Backoff(r.missed-1, r.Random))
	}
	if !t.All {
		return
	}
	r.failures++
	if err == nil {
		r.failures = 0
	}
	var wait time.Duration
	wait, r.eager = r.Next(err, r.failures)
	r.due = time.Now().Add(wait)
}
