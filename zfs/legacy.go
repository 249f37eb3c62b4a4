package zfs

import (
	"context"
	"fmt"
	"path"

	"github.com/sledctl/sledctl/host"
)

// MountLegacy mounts a file system whose mountpoint is "legacy", as a zone's root
// is, on a directory that is there (mount(8); manual_mount in
// usr/src/cmd/zfs/zfs_main.c). Nothing else may be mounted there.
type MountLegacy struct{ Dataset, Directory string }

// UnmountLegacy unmounts it.
type UnmountLegacy struct{ Dataset, Directory string }

func mountLegacyCommand(dataset, directory string) host.Command {
	return host.Command{Program: "mount", Args: []string{"-F", "zfs", dataset, directory}}
}

func unmountLegacyCommand(directory string) host.Command {
	return host.Command{Program: "umount", Args: []string{directory}}
}

// Verb names the step.
func (MountLegacy) Verb() string { return "zfs.mount-legacy" }

// Verb names the step.
func (UnmountLegacy) Verb() string { return "zfs.unmount-legacy" }

// Undo is UnmountLegacy.
func (s MountLegacy) Undo() any { return UnmountLegacy(s) }

// Undo is MountLegacy.
func (s UnmountLegacy) Undo() any { return MountLegacy(s) }

// Needs names what it looks with.
func (MountLegacy) Needs() []string { return []string{"zfs"} }

// Explain is the mount.
func (s MountLegacy) Explain() []host.Line {
	return []host.Line{host.CommandLine(mountLegacyCommand(s.Dataset, s.Directory))}
}

// Explain is the umount.
func (s UnmountLegacy) Explain() []host.Line {
	return []host.Line{host.CommandLine(unmountLegacyCommand(s.Directory))}
}

// Do mounts it. If the command fails, and has mounted it all the same, it is unmounted.
func (s MountLegacy) Do(ctx context.Context, h host.Host) error {
	before, known := Get(ctx, h, s.Dataset)
	err := legacy(ctx, h, "mount", s.Dataset, s.Directory, mountLegacyCommand(s.Dataset, s.Directory))
	if err == nil || known != nil || before.Mounted || !isCommandError(err) {
		return err
	}
	return cleanUp(ctx, err, func(ctx context.Context) error {
		if now, err := Get(ctx, h, s.Dataset); err != nil || !now.Mounted {
			return err
		}
		return UnmountLegacy(s).Do(ctx, h)
	})
}

// Do unmounts it.
func (s UnmountLegacy) Do(ctx context.Context, h host.Host) error {
	return legacy(ctx, h, "unmount", s.Dataset, s.Directory, unmountLegacyCommand(s.Directory))
}

func legacy(ctx context.Context, h host.Host, what, dataset, directory string, c host.Command) error {
	err := ValidateName(dataset)
	if err == nil && (!path.IsAbs(directory) || path.Clean(directory) != directory) {
		err = fmt.Errorf("directory %q is not a clean absolute path", directory)
	}
	if err == nil {
		err = run(ctx, h, c, dataset)
	}
	if err != nil {
		return fmt.Errorf("%s dataset %s on %s: %w", what, dataset, directory, err)
	}
	return nil
}
