// Package crucible is a simulated Crucible that sleds share: the downstairs of its volumes, as far
// as they tell upstairs apart by their generations. What they keep is not simulated.
//
// By downstairs/src/lib.rs of oxidecomputer/crucible (promote_to_active), one upstairs at a time is
// active that may write. A higher generation takes over, and the other one hears that it is no
// longer active, by which it disables itself for good (on_no_longer_active in
// upstairs/src/upstairs.rs). A lower one is refused, and the same one of another upstairs. An
// upstairs that nobody is active against refuses to activate with a generation that is not above
// the one that the region was last flushed with (check_region_metadata in
// upstairs/src/downstairs.rs).
//
// Guess an-upstairs-learns-of-it: an upstairs that is cut off is connected then, so that it learns of it, and
// disables itself. One that is not connects again, and no downstairs compares it with what was flushed:
// it writes once no other is active.
// Check: disconnect a Propolis from its downstairs, activate the volume elsewhere with a higher
// generation, end that one, connect the first one again, and see whether its guest writes
//
// Guess a-guest-flushes-at-once: a guest is taken to flush as soon as its volume is active, so that
// the last generation is the one that was active last.
// Check: activate a volume, end its Propolis before the guest has written, and activate it with the
// same generation
package crucible

import (
	"fmt"
	"maps"
	"sync"
)

// Crucible has the volumes that sleds share; each begins when it is opened first. It is safe for concurrent use.
type Crucible struct {
	mu       sync.Mutex
	careless bool
	volumes  map[string]*volume
}

type volume struct {
	last   uint64          // generation
	active map[string]bool // upstairs that may write: one, if the downstairs compare generations
}

// Clone is a copy of it with its volumes as they are.
func (c *Crucible) Clone() *Crucible {
	c.mu.Lock()
	defer c.mu.Unlock()
	to := &Crucible{careless: c.careless, volumes: map[string]*volume{}}
	for id, v := range c.volumes {
		to.volumes[id] = &volume{last: v.last, active: maps.Clone(v.active)}
	}
	return to
}

// Lie makes the downstairs compare nothing, and disconnect nobody, or ends that.
func (c *Crucible) Lie(is bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.careless = is
}

// GenerationError is a volume that is not opened.
type GenerationError struct{ Requested, Last uint64 }

// Error is what the downstairs says.
func (e *GenerationError) Error() string {
	return fmt.Sprintf("generation number is too low: requested %d, found %d", e.Requested, e.Last)
}

// Activate has an upstairs open a volume to write. The error is a *GenerationError.
func (c *Crucible) Activate(id, upstairs string, generation uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.volumes[id]
	if v == nil {
		v = &volume{active: map[string]bool{}}
		if c.volumes == nil {
			c.volumes = map[string]*volume{}
		}
		c.volumes[id] = v
	}
	switch {
	case c.careless:
	case generation <= v.last:
		return &GenerationError{Requested: generation, Last: v.last}
	default:
		clear(v.active)
	}
	v.last, v.active[upstairs] = max(v.last, generation), true
	return nil
}

// InactiveError is an upstairs that may not write any longer.
type InactiveError struct{ ID string }

// Error names the volume.
func (e *InactiveError) Error() string {
	return fmt.Sprintf("volume %s: another upstairs is active", e.ID)
}

// Write has an upstairs write to a volume. The error is a *InactiveError.
func (c *Crucible) Write(id, upstairs string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v := c.volumes[id]; v == nil || !v.active[upstairs] {
		return &InactiveError{ID: id}
	}
	return nil
}

// Last is the generation with which a volume was active last; 0: it never was.
func (c *Crucible) Last(id string) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v := c.volumes[id]; v != nil {
		return v.last
	}
	return 0
}
