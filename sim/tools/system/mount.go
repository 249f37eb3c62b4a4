package system

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// Mount is mount(8) of file systems with a legacy mountpoint: mount -F zfs
// DATASET DIRECTORY (manual_mount in usr/src/cmd/zfs/zfs_main.c), and the list of all
// with -p.
func Mount(tx *world.Tx, c cli.Call) cli.Reply {
	given, operands := cli.Options(c.Args, "pF:", nil)
	if given.Has('p') {
		cli.Simulated(len(c.Args) == 1 && c.Zone == world.GlobalZone)
		return cli.Reply{Stdout: mounted(tx)}
	}
	cli.Simulated(given.One('F') == "zfs" && len(operands) == 2)
	return mountReply(zfs.MountAt(tx, operands[0], operands[1]))
}

// mounted is what mount -p prints: mnttab(5), without the file systems of zones, in the
// form of vfstab(5) (print_mnttab in usr/src/cmd/fs.d/mount.c).
func mounted(tx *world.Tx) string {
	var datasets []*world.Dataset
	for _, d := range tx.State.Datasets {
		if d.Mounted != "" {
			datasets = append(datasets, d)
		}
	}
	slices.SortFunc(datasets, func(a, b *world.Dataset) int { return strings.Compare(a.Mounted, b.Mounted) })
	var b strings.Builder
	line := func(special, dir, kind string) { fmt.Fprintf(&b, "%s - %s %s - no rw\n", special, dir, kind) }
	for _, d := range datasets {
		line(d.Name, d.Mounted, "zfs")
		if d.Mounted == "/" {
			line("/devices", "/devices", "devfs")
			line("swap", "/etc/svc/volatile", "tmpfs")
			line("swap", "/tmp", "tmpfs")
			line("swap", "/var/run", "tmpfs")
		}
	}
	return b.String()
}

// Umount is umount(8) of a directory (usr/src/cmd/fs.d/umount.c).
func Umount(tx *world.Tx, c cli.Call) cli.Reply {
	_, operands := cli.Options(c.Args, "", nil)
	directory := cli.Operand(operands)
	d := zfs.MountedAt(tx, directory)
	if d == nil {
		return cli.Reply{Stderr: "umount: warning: " + directory + " not in mnttab\numount: " + directory + " not mounted\n", Exit: 1}
	}
	return mountReply(zfs.Unmount(tx, d.Name, false))
}

func mountReply(err error) cli.Reply {
	if err == nil {
		return cli.Reply{}
	}
	if r, ok := errors.AsType[*world.Refusal](err); ok {
		return cli.Reply{Stderr: strings.TrimSuffix(r.Text, "\n") + "\n", Exit: max(1, r.Exit)}
	}
	return cli.Reply{Stderr: "internal error: " + err.Error() + "\n", Exit: 1}
}
