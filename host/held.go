package host

import (
	"context"
	"sync"
)

// held counts who needs a lock: its holder, and each command that runs under
// it. The lock is free when the last of them is done.
type held struct {
	mu       sync.Mutex
	users    int
	unlocked bool
	free     func() error
}

func newHeld(free func() error) *held { return &held{users: 1, free: free} }

func (h *held) unlock() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.unlocked {
		return nil
	}
	h.unlocked = true
	return h.drop()
}

// retain adds a user, and returns how it ends. A lock that is free stays so.
func (h *held) retain() (release func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.users == 0 {
		return func() {}
	}
	h.users++
	return sync.OnceFunc(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		_ = h.drop()
	})
}

func (h *held) drop() error {
	h.users--
	if h.users > 0 {
		return nil
	}
	return h.free()
}

func (h *held) isFree() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.users == 0
}

// Retain keeps the locks of ctx (see WithLock) from being freed, though their
// holder unlocks them, until release is called. A host does so for a command
// that goes on after its caller stopped waiting, where no descriptor can be
// inherited.
func Retain(ctx context.Context) (release func()) {
	var all []func()
	for _, l := range locksOf(ctx) {
		if r, ok := l.(interface{ retain() func() }); ok {
			all = append(all, r.retain())
		}
	}
	return func() {
		for _, release := range all {
			release()
		}
	}
}
