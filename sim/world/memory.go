package world

import (
	"context"
	"errors"
	"sync"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world/scf"
)

// Memory makes a fresh sled that lives in this process. It works inside a
// testing/synctest bubble. It panics on options that Check refuses.
func Memory(o Options) *World {
	s := Fresh(o)
	w := &World{
		store: &memory{state: s, changed: make(chan struct{})},
		files: host.Memory(),
		locks: host.Memory(),

		decoded: &scf.Cache{},
	}
	if err := errors.Join(o.Check(), w.locks.Mkdir("/locks", 0o755), LayRoot(w.files, o), layMountpoints(w.files, s)); err != nil {
		panic(err)
	}
	return w
}

// memory is a store of pointers.
type memory struct {
	mu      sync.RWMutex
	state   *State
	changed chan struct{} // closed and replaced by every update
}

func (m *memory) update(_ context.Context, fn func(*State) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer func() {
		m.state.Version++
		close(m.changed)
		m.changed = make(chan struct{})
	}()
	return fn(m.state)
}

func (m *memory) view(_ context.Context, fn func(*State) error) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return fn(m.state)
}

func (m *memory) watch() (<-chan struct{}, func()) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.changed, func() {}
}
