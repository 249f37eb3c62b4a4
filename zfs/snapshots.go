package zfs

import (
	"context"
	"fmt"

	"github.com/sledctl/sledctl/host"
)

// DestroySnapshots removes the snapshots of one name from a dataset and all
// below it, where there are any; host.ErrNotFound if there are none. A snapshot
// that something was cloned from is host.ErrRefused, and then none is removed
// (zfs(8): destroy -r of a snapshot).
type DestroySnapshots struct {
	Dataset  string
	Snapshot string // the part behind the @
}

// Verb names the step.
func (DestroySnapshots) Verb() string { return "zfs.destroy-snapshots" }

// Undo is nil.
func (DestroySnapshots) Undo() any { return nil }

// Explain is the zfs destroy.
func (s DestroySnapshots) Explain() []host.Line {
	return []host.Line{host.CommandLine(destroySnapshotsCommand(s.name()))}
}

func (s DestroySnapshots) name() string { return s.Dataset + "@" + s.Snapshot }

// Do destroys them.
func (s DestroySnapshots) Do(ctx context.Context, h host.Host) error {
	// The name is checked although it is ours: without the @, this command
	// would destroy the dataset and all below it.
	err := ValidateSnapshotName(s.name())
	if err == nil {
		err = patiently(ctx, func(int) error { return run(ctx, h, destroySnapshotsCommand(s.name()), s.name(), s.Dataset) })
	}
	if err != nil {
		return fmt.Errorf("destroy snapshots %s: %w", s.name(), err)
	}
	return nil
}
