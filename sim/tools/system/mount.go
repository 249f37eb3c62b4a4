package system

import (
	"errors"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// Mount is mount(8) of file systems with a legacy mountpoint: mount -F zfs [-O]
// [-o OPTIONS] DATASET DIRECTORY (manual_mount in usr/src/cmd/zfs/zfs_main.c).
func Mount(tx *world.Tx, c cli.Call) cli.Reply {
	const usage = "Usage:\nmount [-v | -p]\nmount [-F FSType] [-V] [current_options] [-o specific_options]\n\t{special | mount_point}\n"
	fstype := ""
	options, operands := cli.Getopt(c.Args, "F:o:OmrgqvpVa", nil)
	for _, o := range options {
		switch o.Letter {
		case 'F':
			fstype = o.Value
		case 'O', 'o', 'r':
		case '?', ':':
			return cli.Reply{Stderr: cli.Complaint("mount", o) + usage, Exit: 1}
		default:
			return cli.Reply{Stderr: "mount: 'mount -" + string(o.Letter) + "' is not simulated\n", Exit: 1}
		}
	}
	if fstype != "zfs" || len(operands) != 2 {
		return cli.Reply{Stderr: "mount: only 'mount -F zfs DATASET DIRECTORY' is simulated\n", Exit: 1}
	}
	return mountReply(zfs.MountAt(tx, operands[0], operands[1]))
}

// Umount is umount(8) of a directory (usr/src/cmd/fs.d/umount.c).
func Umount(tx *world.Tx, c cli.Call) cli.Reply {
	if len(c.Args) != 1 || strings.HasPrefix(c.Args[0], "-") {
		return cli.Reply{Stderr: "umount: only 'umount DIRECTORY' is simulated\n", Exit: 1}
	}
	d := zfs.MountedAt(tx, c.Args[0])
	if d == nil {
		return cli.Reply{Stderr: "umount: warning: " + c.Args[0] + " not in mnttab\numount: " + c.Args[0] + " not mounted\n", Exit: 1}
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
