package zfs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sledctl/sledctl/host"
)

// The steps that remove datasets. A busy dataset is tried again until the context
// ends: zfs gives EBUSY for as long as anything holds a dataset, and a
// listing is enough (omicron does the same with volumes,
// illumos-utils/src/zfs.rs).

// Unmount unmounts a file system that is mounted (host.ErrState).
type Unmount struct{ Dataset string }

// Destroy removes a file system or volume that has neither children nor
// snapshots (*ChildrenError). GUID must be the dataset's (*OtherError); empty:
// any. A file system is unmounted first, so that one in use is not touched, and
// mounted again if it cannot be destroyed.
type Destroy struct {
	Dataset string
	GUID    string
	// Type is TypeVolume for a volume, which is not unmounted. Do looks at what
	// is there; Explain needs to be told.
	Type string
}

// DestroySnapshot removes one snapshot, DATASET@SNAPSHOT, of which there are no
// clones (host.ErrRefused). GUID must be the snapshot's (*OtherError); empty:
// any.
type DestroySnapshot struct{ Name, GUID string }

// Verb names the step.
func (Unmount) Verb() string { return "zfs.unmount" }

// Verb names the step.
func (Destroy) Verb() string { return "zfs.destroy" }

// Limit leaves room for volumes, and for pools without async_destroy: there zfs frees every block before it returns.
func (Destroy) Limit() (most time.Duration, waits bool) { return 10 * time.Minute, false }

// Verb names the step.
func (DestroySnapshot) Verb() string { return "zfs.destroy-snapshot" }

// Limit is that of Destroy.
func (DestroySnapshot) Limit() (most time.Duration, waits bool) { return 10 * time.Minute, false }

// Undo is Mount.
func (s Unmount) Undo() any { return Mount(s) }

// Undo is nil.
func (Destroy) Undo() any { return nil }

// Undo is nil.
func (DestroySnapshot) Undo() any { return nil }

// Explain is the zfs unmount.
func (s Unmount) Explain() []host.Line {
	return []host.Line{host.CommandLine(unmountCommand(s.Dataset))}
}

// Explain is the zfs unmount, but for a volume, and the zfs destroy.
func (s Destroy) Explain() []host.Line {
	var lines []host.Line
	if s.Type != TypeVolume {
		lines = append(lines, host.CommandLine(unmountCommand(s.Dataset)))
	}
	return append(lines, host.CommandLine(destroyCommand(s.Dataset)))
}

// Explain is the zfs destroy.
func (s DestroySnapshot) Explain() []host.Line {
	return []host.Line{host.CommandLine(destroyCommand(s.Name))}
}

// Do unmounts it.
func (s Unmount) Do(ctx context.Context, h host.Host) error {
	d, err := Get(ctx, h, s.Dataset)
	if err == nil {
		err = patiently(ctx, func(attempt int) error {
			err := run(ctx, h, unmountCommand(s.Dataset), s.Dataset, d.Mountpoint)
			if attempt > 0 && errors.Is(err, host.ErrState) {
				return nil // somebody else did meanwhile
			}
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("unmount dataset %s: %w", s.Dataset, err)
	}
	return nil
}

// Do destroys it. One that vanishes while it is busy is gone as wanted; one
// that did not exist at first is host.ErrNotFound.
func (s Destroy) Do(ctx context.Context, h host.Host) error {
	if err := ValidateName(s.Dataset); err != nil {
		return fmt.Errorf("destroy dataset: %w", err)
	}
	wasMounted := false
	err := patiently(ctx, func(attempt int) error {
		d, err := s.once(ctx, h)
		wasMounted = wasMounted || d.Mounted && d.Mountpoint != "legacy" // which zfs cannot mount again
		if attempt > 0 && errors.Is(err, host.ErrNotFound) {
			return nil
		}
		return err
	})
	if err == nil {
		return nil
	}
	err = fmt.Errorf("destroy dataset %s: %w", s.Dataset, err)
	if !wasMounted || errors.Is(err, host.ErrStillRunning) {
		return err
	}
	return cleanUp(ctx, err, func(ctx context.Context) error { return s.remount(ctx, h) })
}

// once looks whether it may be destroyed, and tries to.
func (s Destroy) once(ctx context.Context, h host.Host) (Dataset, error) {
	d, children, err := near(ctx, h, s.Dataset)
	switch {
	case err != nil:
		return d, err
	case s.GUID != "" && d.GUID != s.GUID:
		return d, &OtherError{Name: s.Dataset, Is: d.GUID, Want: s.GUID}
	case len(children) > 0:
		return d, &ChildrenError{Name: s.Dataset, Children: children}
	}
	if d.Type != TypeVolume {
		if err := unmountIfMounted(ctx, h, d); err != nil {
			return d, err
		}
	}
	return d, run(ctx, h, destroyCommand(s.Dataset), s.Dataset, d.Mountpoint)
}

// unmountIfMounted always runs the command, whatever was seen: what a step
// does must not hang on a moment. A legacy mount is left to zfs destroy, which
// ends any mount, without force: what is in use stays
// (destroy_callback of usr/src/cmd/zfs/zfs_main.c).
func unmountIfMounted(ctx context.Context, h host.Host, d Dataset) error {
	err := run(ctx, h, unmountCommand(d.Name), d.Name, d.Mountpoint)
	if errors.Is(err, host.ErrState) {
		return nil
	}
	return err
}

// remount mounts what the step has unmounted. The attempt that failed may not
// have come that far.
func (s Destroy) remount(ctx context.Context, h host.Host) error {
	d, err := Get(ctx, h, s.Dataset)
	if err != nil || d.Mounted || s.GUID != "" && d.GUID != s.GUID {
		return err
	}
	return Mount{Dataset: s.Dataset}.Do(ctx, h)
}

// Do destroys it, with the same patience as Destroy.
func (s DestroySnapshot) Do(ctx context.Context, h host.Host) error {
	if err := ValidateSnapshotName(s.Name); err != nil {
		return fmt.Errorf("destroy snapshot: %w", err)
	}
	err := patiently(ctx, func(attempt int) error {
		err := s.once(ctx, h)
		if attempt > 0 && errors.Is(err, host.ErrNotFound) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("destroy snapshot %s: %w", s.Name, err)
	}
	return nil
}

func (s DestroySnapshot) once(ctx context.Context, h host.Host) error {
	d, err := Get(ctx, h, s.Name)
	switch {
	case err != nil:
		return err
	case s.GUID != "" && d.GUID != s.GUID:
		return &OtherError{Name: s.Name, Is: d.GUID, Want: s.GUID}
	}
	return run(ctx, h, destroyCommand(s.Name), s.Name)
}
