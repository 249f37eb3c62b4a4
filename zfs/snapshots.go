package zfs

import (
	"context"
	"fmt"
	"strings"
	"time"

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

// Limit is that of Destroy.
func (DestroySnapshots) Limit() (most time.Duration, waits bool) { return 10 * time.Minute, false }

// Undo is nil.
func (DestroySnapshots) Undo() any { return nil }

// Explain is the zfs destroy.
func (s DestroySnapshots) Explain() []host.Line {
	return []host.Line{host.CommandLine(destroySnapshotsCommand(s.name()))}
}

func (s DestroySnapshots) name() string { return s.Dataset + "@" + s.Snapshot }

// Do destroys them.
func (s DestroySnapshots) Do(ctx context.Context, h host.Host) error {
	// The name is checked although sledctl gave it: without the @, this command
	// would destroy the dataset and all below it.
	err := ValidateSnapshotName(s.name())
	if err == nil {
		err = patiently(ctx, func(int) error { return s.once(ctx, h) })
	}
	if err != nil {
		return fmt.Errorf("destroy snapshots %s: %w", s.name(), err)
	}
	return nil
}

func (s DestroySnapshots) once(ctx context.Context, h host.Host) error {
	c := destroySnapshotsCommand(s.name())
	r, err := h.Run(ctx, c)
	if err == nil && r.Exit != 0 {
		err = failureOf(c, r, s.covers)
	}
	return err
}

// covers says whether the command is about a name: zfs speaks of the snapshot
// of the dataset, or of one below it, that it cannot destroy.
func (s DestroySnapshots) covers(name string) bool {
	dataset, snapshot, found := strings.Cut(name, "@")
	inside := dataset == s.Dataset || strings.HasPrefix(dataset, s.Dataset+"/")
	return inside && snapshot == s.Snapshot || !found && name == s.Dataset
}
