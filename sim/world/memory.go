package world

import (
	"context"
	"sync"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world/scf"
)

// InMemory makes a sled that lives in this process, without files yet. Its two
// file systems are what empty returns.
func InMemory(s *State, empty func() host.Files) *World {
	locks := empty()
	if err := locks.Mkdir("/locks", 0o755); err != nil {
		panic(err) // Nothing is there that could be in the way.
	}
	return &World{
		store: &memory{state: s, changed: make(chan struct{})},
		files: empty(), locks: locks, decoded: &scf.Cache{},
	}
}

// memory is a store of pointers.
type memory struct {
	mu      sync.RWMutex
	state   *State
	changed chan struct{} // closed and replaced by every update
}

func (m *memory) update(_ context.Context, fn func(*State, *Touched) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer func() {
		m.state.Version++
		close(m.changed)
		m.changed = make(chan struct{})
	}()
	return fn(m.state, nil)
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
