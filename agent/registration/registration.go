// Package registration makes a sled known to its control plane, and keeps what that knows of it
// true: the agent's address, and the sled's board, processors and memory.
package registration

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/peer/nexus"
)

// Settings are those of one sled.
type Settings struct {
	ID     uuid.UUID // of the sled in the control plane
	Client nexus.Client
	// Sled is what the sled is now; generation and Decommissioned count for nothing.
	Sled func(context.Context) (nexus.Sled, error)
	Draw func() float64 // from 0 to below 1
	Log  func(text string, args ...any)
	Warn func(error)
}

// lookEvery is how often it is asked what the control plane knows: one that has forgotten the
// sled learns of it again, and one hears of another size of the reservoir.
const lookEvery = time.Minute

// attemptTime bounds one attempt.
const attemptTime = 30 * time.Second

// ErrDecommissioned is a sled that the control plane has taken out of service, for good.
var ErrDecommissioned = errors.New("the control plane has decommissioned this sled: it is not registered again")

// Registration is how far one is.
type Registration struct {
	Settings
	known atomic.Bool // the control plane knows the sled as it is
}

// Known reports whether the control plane knew the sled as it is when it was last asked.
func (r *Registration) Known() bool { return r.known.Load() }

// Run registers the sled, and again whenever what the control plane knows is not what it is,
// until ctx ends or the sled has been decommissioned. What fails is warned of, and tried again.
func (r *Registration) Run(ctx context.Context) {
	for failed := 0; ctx.Err() == nil; {
		attempt, cancel := context.WithTimeout(ctx, attemptTime)
		err := r.once(attempt)
		cancel()
		r.known.Store(err == nil)
		pause := lookEvery
		if failed++; err == nil {
			failed = 0
		} else if pause = nexus.Backoff(failed, r.Draw()); ctx.Err() == nil {
			r.Warn(fmt.Errorf("register the sled: %w", err))
		}
		if errors.Is(err, ErrDecommissioned) {
			return
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// once asks what is known, and says what is so if it differs.
func (r *Registration) once(ctx context.Context) error {
	is, err := r.Sled(ctx)
	if err != nil {
		return err
	}
	known, found, err := r.Client.Sled(ctx, r.ID)
	if err != nil {
		return err
	}
	next, differs, err := decide(known, found, is)
	if err != nil || !differs {
		return err
	}
	if err := r.Client.PutSled(ctx, r.ID, next); err != nil {
		return err
	}
	r.Log("registered with the control plane", "sled_id", r.ID, "address", next.Address, "generation", next.Generation)
	return nil
}

// decide says what is to be sent, if something is. Its generation is above the one that is
// known, for the control plane takes nothing else over (omicron sled-agent/src/nexus.rs).
func decide(known nexus.Sled, found bool, is nexus.Sled) (next nexus.Sled, differs bool, err error) {
	is.Generation, is.Decommissioned = 1, false
	if !found {
		return is, true, nil
	}
	if known.Decommissioned {
		return nexus.Sled{}, false, ErrDecommissioned
	}
	if is.Generation = known.Generation; is == known {
		return nexus.Sled{}, false, nil
	}
	is.Generation++
	return is, true, nil
}
