package host_test

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/hosttest/expect"
)

func TestLockExcludes(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		first, err := f.Lock(t.Context(), "/lock", host.LockExclusive)
		expect.OK(t, err)
		for _, mode := range []host.LockMode{host.TryExclusive, host.TryShared} {
			_, err := f.Lock(t.Context(), "/lock", mode)
			expect.Fails(t, err, host.ErrLocked)
		}
		expect.OK(t, first.Unlock())
		expect.OK(t, first.Unlock())
		info, err := f.Stat("/lock")
		expect.OK(t, err)
		if info.Mode != 0o600 {
			t.Errorf("the lock's file has mode %v", info.Mode)
		}

		one, err := f.Lock(t.Context(), "/lock", host.LockShared)
		expect.OK(t, err)
		two, err := f.Lock(t.Context(), "/lock", host.TryShared)
		expect.OK(t, err)
		expect.OK(t, one.Unlock())
		_, err = f.Lock(t.Context(), "/lock", host.TryExclusive)
		expect.Fails(t, err, host.ErrLocked)
		expect.OK(t, two.Unlock())
		three, err := f.Lock(t.Context(), "/lock", host.TryExclusive)
		expect.OK(t, err)
		expect.OK(t, three.Unlock())
	})
}

func TestLockTellsItsHolder(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		l, err := f.Lock(t.Context(), "/lock", host.LockExclusive)
		expect.OK(t, err)
		defer l.Unlock()
		expect.OK(t, l.Write([]byte("process 4711 since yesterday")))
		expect.OK(t, l.Write([]byte("process 12")))
		expect.Holds(t, f, "/lock", "process 12")
	})
}

func TestLockWaitsInTurn(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) { inTurn(t, f, host.Lock.Unlock) })
}

func TestLockIsOfTheFileThatHasTheName(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		inTurn(t, f, func(l host.Lock) error { return errors.Join(f.Remove("/lock"), l.Unlock()) })
		_, err := f.Stat("/lock")
		expect.Fails(t, err, fs.ErrNotExist)
	})
}

// inTurn has many take a lock, each alone, and end it so.
func inTurn(t *testing.T, f host.Files, end func(host.Lock) error) {
	t.Helper()
	inside := 0 // the race detector sees it too
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				l, err := f.Lock(t.Context(), "/lock", host.LockExclusive)
				if err != nil {
					t.Error(err)
					return
				}
				inside++
				if err := end(l); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if inside != 160 {
		t.Errorf("%d were inside, want 160", inside)
	}
}

func TestLockGivesUpWithItsContext(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		l, err := f.Lock(t.Context(), "/lock", host.LockExclusive)
		expect.OK(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() {
			_, err := f.Lock(ctx, "/lock", host.LockExclusive)
			gone <- err
		}()
		cancel()
		expect.Fails(t, <-gone, context.Canceled)
		expect.OK(t, l.Unlock())
		l, err = f.Lock(t.Context(), "/lock", host.TryExclusive)
		expect.OK(t, err)
		expect.OK(t, l.Unlock())
		_, err = f.Lock(ctx, "/lock", host.LockExclusive)
		expect.Fails(t, err, context.Canceled)
	})
}

func TestLockLastsWhileACommandRetainsIt(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		l, err := f.Lock(t.Context(), "/lock", host.LockExclusive)
		expect.OK(t, err)
		release := host.Retain(host.WithLock(t.Context(), l))
		expect.OK(t, l.Unlock())
		_, err = f.Lock(t.Context(), "/lock", host.TryExclusive)
		expect.Fails(t, err, host.ErrLocked)
		release()
		release()
		l, err = f.Lock(t.Context(), "/lock", host.TryExclusive)
		expect.OK(t, err)
		expect.OK(t, l.Unlock())
	})
}
