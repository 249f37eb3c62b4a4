package world

import (
	"context"
	"reflect"
	"sync"
	"time"

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
	s.datasets = &datasetIndex{}
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

// Clone returns a copy of a sled in memory as it is now; later changes of one
// do not show in the other. In the clone no lock is held. It panics on a sled
// in a directory, which cp clones.
func (w *World) Clone() *World {
	store := w.store
	if c, is := store.(checked); is {
		store = c.store
	}
	source, ok := store.(*memory)
	if !ok {
		panic("world: only a sled in memory is cloned")
	}
	source.mu.RLock()
	defer source.mu.RUnlock()
	return &World{
		store:    &memory{state: source.state.clone(), changed: make(chan struct{})},
		files:    w.files.(copied).CloneFiles(),
		locks:    w.locks.(copied).CloneFiles(),
		handlers: w.handlers,
		decoded:  w.decoded,
	}
}

// copied are files in memory that can be copied.
type copied interface{ CloneFiles() host.Files }

func (s *State) clone() *State {
	c := deep(reflect.ValueOf(s)).Interface().(*State)
	c.datasets = &datasetIndex{}
	return c
}

// deep copies all that a value leads to. A State is one JSON document, so it
// leads nowhere twice and its fields are exported.
func deep(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		if v.IsNil() {
			return v
		}
	}
	switch v.Kind() {
	case reflect.Pointer:
		to := reflect.New(v.Type().Elem())
		to.Elem().Set(deep(v.Elem()))
		return to
	case reflect.Slice:
		to := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		deepElements(to, v)
		return to
	case reflect.Map:
		to := reflect.MakeMapWithSize(v.Type(), v.Len())
		for entries := v.MapRange(); entries.Next(); {
			to.SetMapIndex(entries.Key(), deep(entries.Value()))
		}
		return to
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return v
		}
		to := reflect.New(v.Type()).Elem()
		for i := range v.NumField() {
			if !v.Type().Field(i).IsExported() {
				continue
			}
			to.Field(i).Set(deep(v.Field(i)))
		}
		return to
	}
	return v
}

func deepElements(to, from reflect.Value) {
	switch from.Type().Elem().Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Struct:
		for i := range from.Len() {
			to.Index(i).Set(deep(from.Index(i)))
		}
	default:
		reflect.Copy(to, from)
	}
}
