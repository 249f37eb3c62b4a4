package system

import (
	"context"
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/host"
)

// Mount is a mounted file system.
type Mount struct {
	Special   string // of ZFS the dataset
	Directory string
	Type      string // zfs, tmpfs, …
}

func mountsCommand() host.Command {
	return host.Command{Program: "mount", Args: []string{"-p"}, ReadOnly: true}
}

// QueryMounts lists the mounted file systems. Errors: ErrSyntax, a *host.CommandError.
func QueryMounts(ctx context.Context, h host.Host) ([]Mount, error) {
	out, err := run(ctx, h, mountsCommand())
	if err != nil {
		return nil, err
	}
	return ParseMounts(out)
}

// ParseMounts reads the output of mount -p, which has the fields of vfstab(5): special,
// device to fsck, mount point, type, fsck pass, mount at boot, options. Errors: ErrSyntax.
func ParseMounts(out string) ([]Mount, error) {
	var all []Mount
	for line := range strings.Lines(out) {
		words := strings.Fields(line)
		if len(words) < 6 {
			return nil, fmt.Errorf("mount: %w: %q", ErrSyntax, line)
		}
		all = append(all, Mount{Special: words[0], Directory: words[2], Type: words[3]})
	}
	return all, nil
}

// MountOf is the file system that a directory lies in, or will lie in; false: none is known.
func MountOf(all []Mount, dir string) (found Mount, ok bool) {
	for _, m := range all {
		in := m.Directory == "/" || dir == m.Directory || strings.HasPrefix(dir, m.Directory+"/")
		if in && (!ok || len(m.Directory) >= len(found.Directory)) {
			found, ok = m, true
		}
	}
	return found, ok
}
