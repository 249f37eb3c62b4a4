package system

import (
	"errors"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// Mount is mount(8) of file systems with a legacy mountpoint: mount -F zfs
// DATASET DIRECTORY (manual_mount in usr/src/cmd/zfs/zfs_main.c).
func Mount(tx *world.Tx, c cli.Call) cli.Reply {
	given, operands := cli.Options(c.Args, "F:", nil)
	cli.Simulated(given.One('F') == "zfs" && len(operands) == 2)
	return mountReply(zfs.MountAt(tx, operands[0], operands[1]))
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
