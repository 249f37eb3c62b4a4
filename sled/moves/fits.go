package moves

import (
	"context"
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/sled/instance/migration"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/volume"
)

// FixedError is an instance that cannot be moved as it is, with all reasons.
type FixedError struct {
	Name string
	Why  []string
	Do   string // what to do instead
}

// Error lists them.
func (e *FixedError) Error() string {
	return fmt.Sprintf("instance %q cannot be moved: %s", e.Name, strings.Join(e.Why, "; "))
}

func (*FixedError) Kind() fault.Kind { return fault.Refused }

// Hint says what can be done instead.
func (e *FixedError) Hint() string { return e.Do }

// NotMovedError is a move that has failed: the instance is here as before, and what was sent is on the target.
type NotMovedError struct {
	Name string
	Err  error
}

// Error says what has failed.
func (e *NotMovedError) Error() string {
	return fmt.Sprintf("instance %q is here as before: %v", e.Name, e.Err)
}

func (*NotMovedError) Kind() fault.Kind { return fault.Failed }

// Unwrap gives the cause.
func (e *NotMovedError) Unwrap() error { return e.Err }

// Hint says what continues it, and what takes it back.
func (e *NotMovedError) Hint() string {
	return "to continue, run the same command again: it sends what has changed; to remove what was sent, and the snapshot of it, add --cancel"
}

// fits refuses what cannot be moved, before anything is begun.
func (m *moving) fits(ctx context.Context) error {
	r := m.done.Record
	is := r.Migration
	switch {
	case is.Arrives(), is != nil && !is.Offline:
		return &migration.MigratingError{Name: r.Name, Migration: *is}
	case is != nil && m.Target != nil && strings.Join(m.Target, "\x00") != strings.Join(is.Target, "\x00"):
		return &migration.MigratingError{Name: r.Name, Migration: *is}
	case is != nil || m.Cancel:
		return nil
	}
	e := &FixedError{Name: r.Name, Do: "to take it along in a file, run: sledctl instance export " + r.Name + " FILE"}
	switch {
	case r.VMM != nil || r.Ending != nil:
		e.Why = append(e.Why, "it is the control plane's, which moves its VMs itself")
	case r.Spec.Machine != nil:
		e.Why = append(e.Why, "its spec was written down whole, and names the disks of this sled")
	case len(r.Spec.Crucible) > 0: // the key would have to go along, and the count of generations
		e.Why, e.Do = append(e.Why, "it has a volume in a Crucible"), "to move it while it runs, leave out --offline; or delete it here, and create it on the other sled by its document"
	case r.Later != nil:
		e.Why, e.Do = append(e.Why, "its disks change with its next bring-up"), "stop it and start it first: sledctl instance stop "+r.Name
	}
	e.Why = append(e.Why, m.fixedDisks(ctx, r)...)
	if len(e.Why) > 0 {
		return e
	}
	return nil
}

// fixedDisks says which disks cannot go along, by name.
func (m *moving) fixedDisks(ctx context.Context, r record.Record) (why []string) {
	view, err := operation.Decided(ctx, m.env, true)
	if err != nil {
		return []string{err.Error()}
	}
	for _, d := range r.NextDisks() {
		dataset, isVolume := d.Volume()
		v, ours := volume.At(view, dataset)
		switch {
		case isVolume && !ours:
			why = append(why, fmt.Sprintf("its disk %q is a volume that sledctl did not create", d.Path))
		case isVolume && d.ReadOnly:
			why = append(why, fmt.Sprintf("its disk %q is read-only, and may be that of others, too", v.Name))
		case !isVolume && !m.Shared:
			why = append(why, fmt.Sprintf("its disk %q is a file: it needs --shared-disks if it is the same file on both sleds (NFS)", d.Path))
		}
	}
	return why
}
