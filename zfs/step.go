package zfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
)

// The steps that make and change datasets. Each is strict, and when it fails it
// takes back what it may have half made, unless the host's command is still
// running.

// Create makes a file system and mounts it where its properties say. One of
// that name must not exist (host.ErrExists), its parent must.
type Create struct {
	Dataset    string
	Properties []Property // set in the same command
	// Key makes it an encryption root, with aes-256-gcm. Nil: it is encrypted if
	// its parent is, with the parent's key, which must then be loaded
	// (ErrKeyNotLoaded).
	Key Key
	// Mountpoint is where it must be mounted afterwards (*MountError), by an
	// inherited mountpoint. Empty: that of Properties, if any, and zfs's word
	// is taken for it.
	Mountpoint string
	Mode       fs.FileMode // of the mountpoint; 0: as zfs makes it
}

// SetMode gives the root of a mounted file system its permissions: of one whose
// Create was cut short before it did. It must be mounted there (*MountError).
type SetMode struct {
	Dataset, Mountpoint string
	Mode                fs.FileMode
}

// Set gives a property a value, on a dataset that exists.
type Set struct {
	Dataset, Name, Value string
	// Old is what Undo goes back to, and OldSource where that came from. Of a
	// user property, an empty Old without a source means that it was not set.
	Old, OldSource string
}

// Inherit removes a property's own value.
type Inherit struct {
	Dataset, Name string
	Old           string // what Undo sets again; empty: nothing
}

// Mount mounts a file system that is not mounted (host.ErrState). While it or
// its mountpoint is busy it is tried again, until the context ends.
type Mount struct{ Dataset string }

// Snapshot takes a snapshot of one dataset; Name is DATASET@SNAPSHOT.
type Snapshot struct {
	Name       string
	Properties []Property // user properties
}

// Verb names the step.
func (Create) Verb() string { return "zfs.create" }

// Verb names the step.
func (SetMode) Verb() string { return "zfs.set-mode" }

// Verb names the step.
func (Set) Verb() string { return "zfs.set" }

// Verb names the step.
func (Inherit) Verb() string { return "zfs.inherit" }

// Verb names the step.
func (Mount) Verb() string { return "zfs.mount" }

// Verb names the step.
func (Snapshot) Verb() string { return "zfs.snapshot" }

// Undo is Destroy.
func (s Create) Undo() any { return Destroy{Dataset: s.Dataset} }

// Undo is Inherit if the value was not the dataset's own, else Set; nil if the
// old value is not known.
func (s Set) Undo() any {
	own := s.OldSource == Local || s.OldSource == "" && s.Old != ""
	switch {
	case !own && inheritable(s.Name) && (s.OldSource != "" || userProperty(s.Name)):
		return Inherit{Dataset: s.Dataset, Name: s.Name}
	case !own && s.OldSource == "":
		return nil
	}
	return Set{Dataset: s.Dataset, Name: s.Name, Value: s.Old, Old: s.Value, OldSource: Local}
}

// inheritable is false for the native properties that zfs inherit refuses: for
// those, the default is set by its value (zfs_prop_init of
// usr/src/common/zfs/zfs_prop.c, PROP_DEFAULT).
//
// Guess seven-properties-not-inherited: `zfs inherit` restores a default; quota, refquota,
// reservation, refreservation, canmount, volsize and keylocation cannot be inherited, and are set
// to theirs.
// Check: `zfs inherit quota`
func inheritable(property string) bool {
	return !slices.Contains([]string{"quota", "refquota", "reservation", "refreservation", "canmount", "volsize", "keylocation"}, property)
}

// Undo is Set, or nil if the old value is not known.
func (s Inherit) Undo() any {
	if s.Old == "" {
		return nil
	}
	return Set{Dataset: s.Dataset, Name: s.Name, Value: s.Old}
}

// Undo is Unmount.
func (s Mount) Undo() any { return Unmount(s) }

// Undo is DestroySnapshot.
func (s Snapshot) Undo() any { return DestroySnapshot{Name: s.Name} }

// Explain is the zfs create, and the change of mode if one is asked for;
// nothing if Do would refuse the values.
func (s Create) Explain() []host.Line {
	if s.check() != nil {
		return nil
	}
	lines := with(s.Key, host.CommandLine(createCommand(s.Dataset, s.properties())))
	if s.Mode != 0 {
		lines = append(lines, host.ChmodLine(s.place(), s.Mode))
	}
	return lines
}

// Explain is the chmod.
func (s SetMode) Explain() []host.Line {
	return []host.Line{host.ChmodLine(s.Mountpoint, s.Mode)}
}

// Explain is the zfs set.
func (s Set) Explain() []host.Line {
	return []host.Line{host.CommandLine(setCommand(s.Dataset, s.property()))}
}

// Explain is the zfs inherit.
func (s Inherit) Explain() []host.Line {
	return []host.Line{host.CommandLine(inheritCommand(s.Dataset, s.Name))}
}

// Explain is the zfs mount.
func (s Mount) Explain() []host.Line { return []host.Line{host.CommandLine(mountCommand(s.Dataset))} }

// Explain is the zfs snapshot.
func (s Snapshot) Explain() []host.Line {
	return []host.Line{host.CommandLine(snapshotCommand(s.Name, s.Properties))}
}

// place is where the new dataset will be mounted, if that is known.
func (s Create) place() string {
	if s.Mountpoint != "" {
		return s.Mountpoint
	}
	for _, p := range s.Properties {
		if p.Name == "mountpoint" && path.IsAbs(p.Value) {
			return p.Value
		}
	}
	return ""
}

// properties are those of its encryption first, then the others.
func (s Create) properties() []Property {
	if s.Key == nil {
		return s.Properties
	}
	return append(encrypting(s.Key), s.Properties...)
}

func (s Create) check() error {
	if err := errors.Join(ValidateName(s.Dataset), validateProperties(s.properties())); err != nil {
		return err
	}
	switch {
	case s.Mountpoint != "" && (!path.IsAbs(s.Mountpoint) || path.Clean(s.Mountpoint) != s.Mountpoint):
		return fmt.Errorf("mountpoint %q is not a clean absolute path", s.Mountpoint)
	case s.Mode != s.Mode.Perm():
		return fmt.Errorf("mode %v is more than permissions", s.Mode)
	case s.Mode != 0 && s.place() == "":
		return errors.New("a mode, and no mountpoint to give it to")
	}
	return nil
}

// Do creates it. Only a dataset that did not exist before is removed again.
func (s Create) Do(ctx context.Context, h host.Host) error {
	if err := s.check(); err != nil {
		return fmt.Errorf("create dataset: %w", err)
	}
	_, err := Get(ctx, h, s.Dataset)
	if err == nil {
		err = fmt.Errorf("create dataset %s: %w", s.Dataset, host.ErrExists)
	}
	if !errors.Is(err, host.ErrNotFound) {
		return err
	}
	made := false
	err = lend(ctx, h, s.Key, func() error {
		err := run(ctx, h, createCommand(s.Dataset, s.properties()), s.Dataset, s.place())
		made = err == nil || isCommandError(err) && !errors.Is(err, host.ErrExists) // ErrExists: somebody else's since we looked
		return err
	})
	if err == nil {
		err = s.finish(ctx, h)
	}
	switch {
	case err == nil:
		return nil
	case !made:
		return fmt.Errorf("create dataset %s: %w", s.Dataset, err)
	}
	return cleanUp(ctx, fmt.Errorf("create dataset %s: %w", s.Dataset, err), func(ctx context.Context) error {
		d, err := Get(ctx, h, s.Dataset)
		if err != nil {
			return err
		}
		return Destroy{Dataset: s.Dataset, GUID: d.GUID}.Do(ctx, h)
	})
}

// finish sees that the new dataset is mounted, before its mountpoint gets its
// mode: else it would be the directory below.
func (s Create) finish(ctx context.Context, h host.Host) error {
	if s.Mountpoint == "" && s.Mode == 0 {
		return nil
	}
	d, err := Get(ctx, h, s.Dataset)
	if err != nil {
		return err
	}
	if !d.Mounted || d.Mountpoint != s.place() {
		return &MountError{Name: s.Dataset, Mountpoint: d.Mountpoint, Mounted: d.Mounted, Want: s.place()}
	}
	if s.Mode == 0 {
		return nil
	}
	return h.Files().Chmod(s.place(), s.Mode)
}

// Do sets it.
func (s SetMode) Do(ctx context.Context, h host.Host) error {
	c := Create{Dataset: s.Dataset, Mountpoint: s.Mountpoint, Mode: s.Mode}
	err := c.check()
	if err == nil {
		err = c.finish(ctx, h)
	}
	if err != nil {
		return fmt.Errorf("set the mode of dataset %s: %w", s.Dataset, err)
	}
	return nil
}

// Undo is nil: the mode goes with the dataset.
func (SetMode) Undo() any { return nil }

func (s Set) property() Property { return Property{Name: s.Name, Value: s.Value} }

// Do sets the property. A mountpoint can be set although the file system could
// then not be mounted there (zfs_prop_set_list of libzfs_dataset.c).
func (s Set) Do(ctx context.Context, h host.Host) error {
	err := errors.Join(validateEither(s.Dataset), s.property().validate())
	if err == nil {
		err = run(ctx, h, setCommand(s.Dataset, s.property()), s.Dataset)
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("set %s of dataset %s: %w", s.Name, s.Dataset, err)
	if !said(err, "property may be set but unable to remount filesystem") {
		return unlessDone(ctx, err, func(ctx context.Context) bool { return s.isSet(ctx, h) })
	}
	undo, known := s.Undo().(interface {
		Do(context.Context, host.Host) error
	})
	if !known {
		return err
	}
	return cleanUp(ctx, err, func(ctx context.Context) error { return undo.Do(ctx, h) })
}

// isSet reports whether the dataset has the value itself, as it was written.
func (s Set) isSet(ctx context.Context, h host.Host) bool {
	r, err := h.Run(ctx, get(nil, []string{s.Name}, []string{s.Dataset}))
	return err == nil && r.Exit == 0 && strings.TrimSuffix(string(r.Stdout), "\n") == strings.Join([]string{s.Dataset, s.Name, s.Value, string(Local)}, "\t")
}

// alreadyMounted tells that from other states in which nothing can be mounted.
func alreadyMounted(err error) bool {
	e, ok := errors.AsType[*host.CommandError](err)
	return ok && strings.Contains(string(e.Result.Stderr), "filesystem already mounted")
}

// said finds a whole line in what a command said.
func said(err error, line string) bool {
	e, ok := errors.AsType[*host.CommandError](err)
	return ok && slices.Contains(strings.Split(string(e.Result.Stderr), "\n"), line)
}

// Do removes the value. It is no failure if there is none.
func (s Inherit) Do(ctx context.Context, h host.Host) error {
	err := errors.Join(validateEither(s.Dataset), validateProperty(s.Name))
	if err == nil {
		err = run(ctx, h, inheritCommand(s.Dataset, s.Name), s.Dataset)
	}
	if err != nil {
		return fmt.Errorf("inherit %s of dataset %s: %w", s.Name, s.Dataset, err)
	}
	return nil
}

// Do mounts it.
func (s Mount) Do(ctx context.Context, h host.Host) error {
	d, err := Get(ctx, h, s.Dataset)
	if err == nil {
		err = patiently(ctx, func(attempt int) error {
			err := run(ctx, h, mountCommand(s.Dataset), s.Dataset, d.Mountpoint)
			if attempt > 0 && errors.Is(err, host.ErrState) && alreadyMounted(err) {
				return nil // somebody else did meanwhile
			}
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("mount dataset %s: %w", s.Dataset, err)
	}
	return nil
}

// Do takes the snapshot.
func (s Snapshot) Do(ctx context.Context, h host.Host) error {
	err := errors.Join(ValidateSnapshotName(s.Name), validateProperties(s.Properties))
	if err == nil {
		dataset, _, _ := strings.Cut(s.Name, "@")
		err = run(ctx, h, snapshotCommand(s.Name, s.Properties), s.Name, dataset)
	}
	if err != nil {
		return fmt.Errorf("take snapshot %s: %w", s.Name, err)
	}
	return nil
}
