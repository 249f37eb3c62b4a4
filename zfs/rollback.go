package zfs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
)

// SnapshotTree takes a snapshot of a dataset and of all below it, in one moment
// (zfs(8): snapshot -r). None of them may have one of that name (host.ErrExists).
type SnapshotTree struct {
	Dataset  string
	Snapshot string // the part behind the @
	// Found, if set, gets what lies at and below the dataset behind that: the
	// snapshots with their GUIDs, which a later one of the same name does not have.
	Found *[]Dataset
}

// SnapshotAll takes snapshots of several datasets of one pool, in one moment: all or none (zfs(8)).
// None of them may exist (host.ErrExists). ErrSpace: what is kept back for a volume must be free again.
type SnapshotAll struct {
	Names      []string   // DATASET@SNAPSHOT
	Properties []Property // user properties
}

// DestroyAll removes snapshots, one after the other, those that are there (as of DestroySnapshot).
type DestroyAll struct{ Names []string }

// Rollback takes a file system or volume back to a snapshot, DATASET@SNAPSHOT, which must be the
// latest (host.ErrRefused): no snapshot is destroyed for it. GUID must be the
// snapshot's (*OtherError). A file system that is mounted stays so
// (zfs_ioc_rollback of usr/src/uts/common/fs/zfs/zfs_ioctl.c); nothing may be at
// work in it. Its properties stay as they are.
type Rollback struct{ Name, GUID string }

// Verb names the step.
func (SnapshotTree) Verb() string { return "zfs.snapshot-tree" }

// Verb names the step.
func (SnapshotAll) Verb() string { return "zfs.snapshot-all" }

// Verb names the step.
func (DestroyAll) Verb() string { return "zfs.destroy-all" }

// Verb names the step.
func (Rollback) Verb() string { return "zfs.rollback" }

// Undo is DestroySnapshots.
func (s SnapshotTree) Undo() any {
	return DestroySnapshots{Dataset: s.Dataset, Snapshot: s.Snapshot}
}

// Undo is DestroyAll.
func (s SnapshotAll) Undo() any { return DestroyAll{Names: s.Names} }

// Undo is nil.
func (DestroyAll) Undo() any { return nil }

// Undo is nil: what was there before is gone.
func (Rollback) Undo() any { return nil }

// Explain is the zfs snapshot.
func (s SnapshotTree) Explain() []host.Line {
	return []host.Line{host.CommandLine(snapshotTreeCommand(s.name()))}
}

// Explain is the zfs snapshot.
func (s SnapshotAll) Explain() []host.Line {
	return []host.Line{host.CommandLine(snapshotAllCommand(s))}
}

// Explain is a zfs destroy for each.
func (s DestroyAll) Explain() (lines []host.Line) {
	for _, name := range s.Names {
		lines = append(lines, host.CommandLine(destroyCommand(name)))
	}
	return lines
}

// Explain is the zfs rollback.
func (s Rollback) Explain() []host.Line {
	return []host.Line{host.CommandLine(rollbackCommand(s.Name))}
}

func (s SnapshotTree) name() string { return s.Dataset + "@" + s.Snapshot }

// Do takes the snapshots, and looks at what is there then.
func (s SnapshotTree) Do(ctx context.Context, h host.Host) error {
	err := ValidateSnapshotName(s.name())
	if err == nil {
		err = s.take(ctx, h)
	}
	if err == nil && s.Found != nil {
		if *s.Found, err = List(ctx, h, []string{s.Dataset}, nil); err != nil {
			undo := DestroySnapshots{Dataset: s.Dataset, Snapshot: s.Snapshot}
			err = cleanUp(ctx, err, func(ctx context.Context) error { return undo.Do(ctx, h) })
		}
	}
	if err != nil {
		return fmt.Errorf("take snapshots %s: %w", s.name(), err)
	}
	return nil
}

func (s SnapshotTree) take(ctx context.Context, h host.Host) error {
	c := snapshotTreeCommand(s.name())
	r, err := h.Run(ctx, c)
	if err == nil && r.Exit != 0 {
		err = failureOf(c, r, DestroySnapshots{Dataset: s.Dataset, Snapshot: s.Snapshot}.covers)
	}
	return err
}

// Do rolls it back.
func (s Rollback) Do(ctx context.Context, h host.Host) error {
	err := ValidateSnapshotName(s.Name)
	if err == nil {
		err = s.once(ctx, h)
	}
	if err != nil {
		return fmt.Errorf("roll back to snapshot %s: %w", s.Name, err)
	}
	return nil
}

func (s Rollback) once(ctx context.Context, h host.Host) error {
	d, err := Get(ctx, h, s.Name)
	switch {
	case err != nil:
		return err
	case d.GUID != s.GUID:
		return &OtherError{Name: s.Name, Is: d.GUID, Want: s.GUID}
	}
	head, _, _ := strings.Cut(s.Name, "@")
	return run(ctx, h, rollbackCommand(s.Name), s.Name, head)
}

// Do takes them. Only snapshots that did not exist before are removed again.
func (s SnapshotAll) Do(ctx context.Context, h host.Host) error {
	if err := errors.Join(s.check(), validateProperties(s.Properties)); err != nil {
		return fmt.Errorf("take snapshots: %w", err)
	}
	said := "take snapshots " + strings.Join(s.Names, ", ")
	var heads []string
	for _, name := range s.Names {
		head, _, _ := strings.Cut(name, "@")
		heads = append(heads, head)
	}
	there, err := Sizeless(ctx, h, heads, 1, nil)
	if err == nil && slices.ContainsFunc(there, func(d Dataset) bool { return slices.Contains(s.Names, d.Name) }) {
		err = host.ErrExists
	}
	if err != nil {
		return fmt.Errorf("%s: %w", said, err)
	}
	err = run(ctx, h, snapshotAllCommand(s), slices.Concat(s.Names, heads)...)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s: %w", said, err)
	if !isCommandError(err) || errors.Is(err, host.ErrExists) { // another program's, since we looked
		return err
	}
	return cleanUp(ctx, err, func(ctx context.Context) error { return DestroyAll{Names: s.Names}.Do(ctx, h) })
}

func (s SnapshotAll) check() (err error) {
	for _, name := range s.Names {
		err = errors.Join(err, ValidateSnapshotName(name))
	}
	return err
}

// Do destroys them.
func (s DestroyAll) Do(ctx context.Context, h host.Host) (err error) {
	for _, name := range s.Names {
		if gone := (DestroySnapshot{Name: name}).Do(ctx, h); !errors.Is(gone, host.ErrNotFound) {
			err = errors.Join(err, gone)
		}
	}
	return err
}
