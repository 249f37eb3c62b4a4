package lock

import "sync"

// Held counts the users of a lock: its holder, and each command that runs
// under it. The lock is free when the last of them is done.
type Held struct {
	mu       sync.Mutex
	users    int
	unlocked bool
	free     func() error
}

// NewHeld returns a lock with one user, its holder. It calls free when the
// last user is done.
func NewHeld(free func() error) *Held { return &Held{users: 1, free: free} }

// Unlock ends the holder's use. Unlocking twice is harmless.
func (h *Held) Unlock() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.unlocked {
		return nil
	}
	h.unlocked = true
	return h.drop()
}

// Retain adds a user, and returns what ends its use. A lock that is free stays
// free.
func (h *Held) Retain() (release func()) {
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

func (h *Held) drop() error {
	h.users--
	if h.users > 0 {
		return nil
	}
	return h.free()
}

// Free reports whether all users are done.
func (h *Held) Free() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.users == 0
}
