package tools

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

func (z *zfsCall) promote(args []string) int {
	switch {
	case len(args) > 0 && strings.HasPrefix(args[0], "-"):
		return z.usage("invalid option '%s'", (args[0] + " ")[1:2])
	case len(args) == 0:
		return z.usage("missing clone filesystem argument")
	case len(args) > 1:
		return z.usage("too many arguments")
	}
	return z.refused(zfs.Promote(z.tx, args[0]))
}

func (z *zfsCall) rename(args []string) int {
	options, operands, bad := z.options(args, "prf", "")
	if bad {
		return 2
	}
	recursive, parents, force := false, false, false
	for _, o := range options {
		switch o.Letter {
		case 'p':
			parents = true
		case 'r':
			recursive = true
		case 'f':
			force = true
		}
	}
	switch len(operands) {
	case 0:
		return z.usage("missing source dataset argument")
	case 1:
		return z.usage("missing target dataset argument")
	case 2:
	default:
		return z.usage("too many arguments")
	}
	from, to := operands[0], operands[1]
	switch {
	case recursive && parents:
		return z.usage("-p and -r options are mutually exclusive")
	case recursive && !strings.Contains(from, "@"):
		return z.usage("source dataset for recursive rename must be a snapshot")
	}
	types := zfs.TypeDataset
	if parents {
		types = zfs.TypeFilesystem | zfs.TypeVolume
	}
	if _, err := zfs.OpenDataset(z.tx, from, types); err != nil {
		return z.refused(err)
	}
	if parents {
		if err := zfs.CreateAncestors(z.tx, to); err != nil {
			return z.refused(err)
		}
	}
	return z.refused(zfs.Rename(z.tx, from, to, recursive, force))
}
