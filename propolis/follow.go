package propolis

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// ErrLost is a VM that vanished without having come to its end: its server died, and
// the one that was started in its place has none.
var ErrLost = errors.New("its server was restarted, without it")

// How Follow connects again. What a server that is gone for longer was running
// is gone, too.
const (
	againPause    = 10 * time.Millisecond
	againLongest  = time.Second
	againPatience = 30 * time.Second
)

// Follow tells each state that the machine comes to, the present one first,
// until the final one: nothing is asked twice, and of states that follow each
// other quickly some may not be seen. A connection that breaks is made again.
// Errors: ErrNoInstance where there is no machine to begin with, ErrLost, those
// of tell, and of a server that stays away.
func (c Client) Follow(ctx context.Context, tell func(Status) error) error {
	target, err := c.Target.at(ctx, c.Host)
	if err != nil {
		return err
	}
	c.Target = target
	var last Status
	ask, pause, heard := uint64(0), againPause, time.Now()
	for {
		s, err := c.Monitor(ctx, ask)
		switch {
		case err == nil:
			pause, heard, ask = againPause, time.Now(), s.Generation+1
			if s.Generation != last.Generation || s.State != last.State {
				if err := tell(s); err != nil {
					return err
				}
			}
			if last = s; Final(s.State) {
				return nil
			}
			continue
		case last.State == "" || ctx.Err() != nil:
			return err
		case isGone(err):
			return tell(Status{Generation: last.Generation + 1, State: StateDestroyed, Migration: last.Migration})
		case isNoInstance(err):
			return fmt.Errorf("%w: %w", ErrLost, err)
		case !passing(err) || time.Since(heard) > againPatience:
			return err
		}
		ask = 0 // the next server that answers may count again
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
		pause = min(2*pause, againLongest)
	}
}

// isGone says whether a server has said that the generation will not come: its
// machine has been taken apart.
func isGone(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Status == http.StatusGone && errors.Is(err, ErrNoInstance)
}
