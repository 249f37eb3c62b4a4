package storage

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
)

// Difference is one thing that is different from what it must be. Either Repair lists
// the actions that make it right, or Err says why nothing does; a disk that
// waits to be named has neither.
type Difference struct {
	Object   string // "disk c1t0d0", "pool oxp_…", "dataset oxp_…/crypt"
	Property string // what of it
	Is       string
	Wanted   string
	Why      string
	Repair   []plan.Action
	Err      error
	Disk     *Record // of the disk that it is about; nil: it has none
}

// PartialError is storage that is not as it must be, though all that could be
// done was done: disks that are locked, faulted or foreign do not stop the others.
type PartialError struct{ Differences []Difference }

// Error names each object and its reason.
func (e *PartialError) Error() string {
	var all []string
	for _, d := range e.Differences {
		all = append(all, fmt.Sprintf("%s: %v", d.Object, d.Err))
	}
	return strings.Join(all, "; ")
}

func (*PartialError) Kind() fault.Kind { return fault.Partial }

// Unwrap gives the reasons.
func (e *PartialError) Unwrap() []error {
	var all []error
	for _, d := range e.Differences {
		all = append(all, d.Err)
	}
	return all
}

// Hint is the first that a reason has.
func (e *PartialError) Hint() string {
	for _, d := range e.Differences {
		if h, ok := d.Err.(interface{ Hint() string }); ok {
			return h.Hint()
		}
	}
	return "to see what differs and why, run: sledctl storage check"
}

// ConflictError is a thing that is there and is different from what it must be, in a
// way that is never changed: nothing that holds data is overwritten.
type ConflictError struct{ Object, Property, Is, Wanted string }

// Error shows both values.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("%s: %s is %s, wanted %s", e.Object, e.Property, e.Is, e.Wanted)
}

func (*ConflictError) Kind() fault.Kind { return fault.Conflict }

// LockedError is what is encrypted, and whose key is not available.
type LockedError struct{ Err error }

// Error says why.
func (e *LockedError) Error() string { return fmt.Sprintf("stays locked: %v", e.Err) }

func (*LockedError) Kind() fault.Kind { return fault.Refused }

// Unwrap gives the reason.
func (e *LockedError) Unwrap() error { return e.Err }

// Hint names the setting.
func (e *LockedError) Hint() string {
	if c, ok := errors.AsType[*ConflictError](e.Err); ok {
		return fmt.Sprintf("to make bootstrap try the key of each epoch, run: zfs inherit %s %s", c.Property, strings.TrimPrefix(c.Object, "dataset "))
	}
	if errors.Is(e.Err, errNoSource) {
		return "set storage.key to where the sled's secrets are: file:/NAME, command:WORDS, or development"
	}
	return "wait until the key source answers, then run: sledctl bootstrap"
}

// FaultedError is a disk or pool that does not work as it should.
type FaultedError struct {
	Is    string
	Clear string // the pool that goes on when it is cleared
}

// Error says how it is.
func (e *FaultedError) Error() string { return e.Is }

func (*FaultedError) Kind() fault.Kind { return fault.Failed }

// Hint says what may help.
func (e *FaultedError) Hint() string {
	if e.Clear == "" {
		return "to see the disks, run: sledctl storage list; if one will not return, run: sledctl storage forget DISK"
	}
	return "reboot the sled if the disk was replaced; if the same disk answers again, run: zpool clear " + e.Clear
}

// Unwrap says what kind of fault that is.
func (e *FaultedError) Unwrap() error { return host.ErrState }
