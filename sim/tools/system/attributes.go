package system

import (
	"fmt"
	"path"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// chmod(1) and ls(1), as far as the system attribute immutable of directories:
// usr/src/cmd/chmod/chmod.c, usr/src/cmd/ls/ls.c.

// Chmod is the command chmod with S+ci or S-ci.
//
// Guess columns-of-ls: what chmod prints where a file system has no system attributes; the column
// widths of `ls -/v`.
// Check: `chmod S+ci /tmp`; `ls -d/v /var`
func Chmod(tx *world.Tx, c cli.Call) cli.Reply {
	cli.Simulated(len(c.Args) > 1 && (c.Args[0] == "S+ci" || c.Args[0] == "S-ci"))
	for _, name := range c.Args[1:] {
		at := tx.ZonePathOf(c.Zone, path.Join("/", name))
		info, err := tx.Files.Stat(at)
		cli.Simulated(err == nil && info.Mode.IsDir())
		has := zfs.SetImmutable(tx, at, c.Args[0] == "S+ci")
		cli.Simulated(has) // not where a file system has no system attributes
	}
	return cli.Reply{}
}

// Ls is the command ls with -d/v.
func Ls(tx *world.Tx, c cli.Call) cli.Reply {
	given, operands := cli.Options(c.Args, "d/:", nil)
	cli.Simulated(given.Has('d') && given.One('/') == "v" && len(operands) > 0)
	var reply cli.Reply
	for _, name := range operands {
		at := tx.ZonePathOf(c.Zone, path.Join("/", name))
		info, err := tx.Files.Stat(at)
		if err != nil {
			reply.Stderr += name + ": No such file or directory\n"
			reply.Exit = 2
			continue
		}
		kind := map[bool]string{false: "-", true: "d"}[info.Mode.IsDir()]
		reply.Stdout += fmt.Sprintf("%s%s   1 root     root     %7d %s %s\n", kind, info.Mode.Perm().String()[1:], info.Size,
			info.Time.UTC().Format("Jan _2 15:04"), name)
		if is, known := zfs.Immutable(tx, at); known {
			no := map[bool]string{false: "no"}[is]
			reply.Stdout += "                {archive,nohidden,noreadonly,nosystem,noappendonly,nonodump," + no +
				"immutable,noav_modified,noav_quarantined,nonounlink,nooffline,nosparse}\n"
		}
	}
	return reply
}
