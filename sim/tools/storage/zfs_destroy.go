package storage

import (
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/sim/world/zfs"
)

// zfs destroy, promote and rename: zfs_do_destroy, zfs_do_promote and
// zfs_do_rename in zfs_main.c.

func (z *zfsCall) destroy(args []string) int {
	options, operands, bad := z.options(args, "vpndfrR", "")
	if bad {
		return 2
	}
	var o zfs.DestroyOptions
	verbose, parsable := false, false
	for _, option := range options {
		switch option.Letter {
		case 'v':
			verbose = true
		case 'p':
			verbose, parsable = true, true
		case 'n':
			o.DryRun = true
		case 'd':
			o.Defer = true
		case 'f':
			o.Force = true
		case 'r':
			o.Recursive = true
		case 'R':
			o.Clones = true
		}
	}
	switch {
	case len(operands) == 0:
		return z.usage("missing dataset argument")
	case len(operands) > 1:
		return z.usage("too many arguments")
	case strings.Contains(operands[0], "#"):
		return z.fail("bookmark '%s' does not exist.", operands[0])
	}
	form, total := "will destroy %s\n", "will reclaim 0B\n"
	switch {
	case parsable:
		form, total = "destroy\t%s\n", "reclaim\t0\n"
	case o.DryRun:
		form, total = "would destroy %s\n", "would reclaim 0B\n"
	}
	if verbose {
		o.Each = func(name string) { fmt.Fprintf(&z.out, form, name) }
	}
	if err := zfs.Destroy(z.tx, operands[0], o); err != nil {
		return z.refused(err)
	}
	if verbose && strings.Contains(operands[0], "@") {
		z.out.WriteString(total) // Snapshots hold nothing that their file system does not.
	}
	return 0
}
