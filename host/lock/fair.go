// Package lock has the parts of a file's lock that lie in one process: a fair
// queue among its goroutines, and a count of the users that keep a lock held.
package lock

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// ErrTaken means that another goroutine holds the lock.
var ErrTaken = errors.New("locked")

// Fair is a lock among the goroutines of one process, shared or exclusive,
// first come first served. Waiting for it ends with a context. It blocks on
// channels only, so it works in a testing/synctest bubble. The zero Fair is
// free.
type Fair struct {
	mu        sync.Mutex
	exclusive bool
	shared    int
	queue     []*waiter
}

type waiter struct {
	exclusive bool
	ready     chan struct{}
}

// Acquire takes the lock; the caller releases it with Release. The errors are
// ErrTaken, if try is set and the lock is taken, and the context's.
func (t *Fair) Acquire(ctx context.Context, exclusive, try bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t.mu.Lock()
	if len(t.queue) == 0 && t.admits(exclusive) {
		t.enter(exclusive)
		t.mu.Unlock()
		return nil
	}
	if try {
		t.mu.Unlock()
		return ErrTaken
	}
	w := &waiter{exclusive: exclusive, ready: make(chan struct{})}
	t.queue = append(t.queue, w)
	t.mu.Unlock()

	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
		return t.giveUp(w, ctx.Err())
	}
}

// giveUp leaves the queue. If the lock was granted in the meantime, giveUp
// releases it.
func (t *Fair) giveUp(w *waiter, err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.queue, w); i >= 0 {
		t.queue = slices.Delete(t.queue, i, i+1)
	} else {
		t.leave(w.exclusive)
	}
	t.admit()
	return err
}

// Release gives the lock back.
func (t *Fair) Release(exclusive bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leave(exclusive)
	t.admit()
}

func (t *Fair) admits(exclusive bool) bool {
	return !t.exclusive && (!exclusive || t.shared == 0)
}

func (t *Fair) enter(exclusive bool) {
	if exclusive {
		t.exclusive = true
	} else {
		t.shared++
	}
}

func (t *Fair) leave(exclusive bool) {
	if exclusive {
		t.exclusive = false
	} else {
		t.shared--
	}
}

func (t *Fair) admit() {
	for len(t.queue) > 0 && t.admits(t.queue[0].exclusive) {
		w := t.queue[0]
		t.queue = t.queue[1:]
		t.enter(w.exclusive)
		close(w.ready)
	}
}
