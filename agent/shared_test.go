package agent

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// However many ask, the sled is looked at once, and not again before the time is up. Who
// leaves ends no look that others wait for.
func TestALookIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var group sync.WaitGroup
		looks := 0
		broken := errors.New("broken")
		s := shared[int]{every: 2 * time.Second, ctx: t.Context(), group: &group, look: func(ctx context.Context) (int, error) {
			looks++
			time.Sleep(5 * time.Second)
			if looks == 3 {
				return 0, broken
			}
			return looks, ctx.Err()
		}}
		gone, leave := context.WithCancel(t.Context())
		var asking sync.WaitGroup
		asking.Go(func() {
			if _, err := s.get(gone); !errors.Is(err, context.Canceled) {
				t.Errorf("who left: %v", err)
			}
		})
		synctest.Wait()
		for range 10 {
			asking.Go(func() {
				if seen, err := s.get(t.Context()); seen != 1 || err != nil {
					t.Errorf("look %d, %v", seen, err)
				}
			})
		}
		synctest.Wait()
		leave()
		asking.Wait()
		time.Sleep(1900 * time.Millisecond)
		if seen, err := s.get(t.Context()); seen != 1 || err != nil {
			t.Errorf("soon after: look %d, %v", seen, err)
		}
		time.Sleep(100 * time.Millisecond)
		if seen, err := s.get(t.Context()); seen != 2 || err != nil {
			t.Errorf("later: look %d, %v", seen, err)
		}
		time.Sleep(2 * time.Second)
		if _, err := s.get(t.Context()); !errors.Is(err, broken) {
			t.Errorf("a look that fails: %v", err)
		}
		s.outdate()
		if seen, err := s.get(t.Context()); seen != 4 || err != nil {
			t.Errorf("after a change: look %d, %v", seen, err)
		}
		group.Wait()
	})
}
