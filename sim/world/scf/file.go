package scf

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
)

// magic opens a repository file. A real one is an SQLite 2 database; this
// encoding is the simulation's own.
const magic = "** This file is a simulated SMF repository **\n"

// ErrNotRepository is what Decode returns for anything else.
var ErrNotRepository = errors.New("not a repository")

// Encode is the repository as a file.
func (r *Repository) Encode() ([]byte, error) {
	body, err := json.Marshal(r)
	return append([]byte(magic), append(body, '\n')...), err
}

// Decode reads a repository file.
func Decode(data []byte) (*Repository, error) {
	body, ok := bytes.CutPrefix(data, []byte(magic))
	if !ok {
		return nil, ErrNotRepository
	}
	r := &Repository{}
	if err := json.Unmarshal(body, r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotRepository, err)
	}
	return r, nil
}

// Cache keeps the repositories that were decoded last, by their contents: most
// commands read what the one before them has read. It is safe for concurrent
// use; a nil one keeps nothing.
type Cache struct {
	mu      sync.Mutex
	decoded map[string]*Repository
}

// cached is how many a Cache keeps at most.
const cached = 64

// Decode is as the function of this name, but others may have the same
// repository: a caller that changes it clones it.
func (c *Cache) Decode(data []byte) (*Repository, error) {
	if c == nil {
		return Decode(data)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.decoded[string(data)]; r != nil {
		return r, nil
	}
	r, err := Decode(data)
	if err != nil {
		return nil, err
	}
	if c.decoded == nil || len(c.decoded) >= cached {
		c.decoded = map[string]*Repository{}
	}
	c.decoded[string(data)] = r
	return r, nil
}

// Clone is a repository that shares nothing that anybody changes with this one.
func (r *Repository) Clone() *Repository {
	out := &Repository{Services: make([]*Service, len(r.Services))}
	for n, s := range r.Services {
		c := &Service{Name: s.Name, Groups: s.Groups.clone(), Instances: make([]*Instance, len(s.Instances))}
		for m, i := range s.Instances {
			ic := &Instance{Name: i.Name, Groups: i.Groups.clone()}
			if i.Running != nil {
				ic.Running = &Snapshot{Live: i.Running.Live, Groups: i.Running.Groups.clone()}
			}
			c.Instances[m] = ic
		}
		out.Services[n] = c
	}
	return out
}
