package host

import (
	"context"
	"slices"
	"sync"
)

// turnstile is a lock among the goroutines of one process that can be waited
// for with a context: shared or exclusive, first come first served. It waits
// on channels only, so it works in a testing/synctest bubble.
type turnstile struct {
	mu        sync.Mutex
	exclusive bool
	shared    int
	queue     []*waiter
}

type waiter struct {
	exclusive bool
	ready     chan struct{}
}

func (m LockMode) exclusive() bool { return m == LockExclusive || m == TryExclusive }
func (m LockMode) try() bool       { return m == TryExclusive || m == TryShared }

// acquire takes the lock; the caller releases it with release(mode).
func (t *turnstile) acquire(ctx context.Context, mode LockMode) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t.mu.Lock()
	if len(t.queue) == 0 && t.admits(mode.exclusive()) {
		t.enter(mode.exclusive())
		t.mu.Unlock()
		return nil
	}
	if mode.try() {
		t.mu.Unlock()
		return ErrLocked
	}
	w := &waiter{exclusive: mode.exclusive(), ready: make(chan struct{})}
	t.queue = append(t.queue, w)
	t.mu.Unlock()

	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
		return t.giveUp(w, ctx.Err())
	}
}

// giveUp leaves the queue. Who was let in at the same moment goes out again.
func (t *turnstile) giveUp(w *waiter, err error) error {
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

func (t *turnstile) release(mode LockMode) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leave(mode.exclusive())
	t.admit()
}

func (t *turnstile) admits(exclusive bool) bool {
	return !t.exclusive && (!exclusive || t.shared == 0)
}

func (t *turnstile) enter(exclusive bool) {
	if exclusive {
		t.exclusive = true
	} else {
		t.shared++
	}
}

func (t *turnstile) leave(exclusive bool) {
	if exclusive {
		t.exclusive = false
	} else {
		t.shared--
	}
}

func (t *turnstile) admit() {
	for len(t.queue) > 0 && t.admits(t.queue[0].exclusive) {
		w := t.queue[0]
		t.queue = t.queue[1:]
		t.enter(w.exclusive)
		close(w.ready)
	}
}
