package system

import (
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// chmod(1) and ls(1), as far as modes in octal, the system attribute immutable of
// directories, and names go: usr/src/cmd/chmod/chmod.c, usr/src/cmd/ls/ls.c.

// Chmod is the command chmod.
//
// Guess: its words where a file system has no system attributes.
func Chmod(tx *world.Tx, c cli.Call) cli.Reply {
	if len(c.Args) < 2 {
		return cli.Reply{Stderr: "usage:\tchmod [-fR] <absolute-mode> file ...\n\tchmod [-fR] [-@ attribute] ... " +
			"S<attribute-operation> file ...\n", Exit: 255}
	}
	var reply cli.Reply
	for _, name := range c.Args[1:] {
		if why := chmod(tx, c, c.Args[0], name); why != "" {
			reply.Stderr += "chmod: " + why + "\n"
			reply.Exit = 1
		}
	}
	return reply
}

func chmod(tx *world.Tx, c cli.Call, mode, name string) (why string) {
	at := tx.ZonePathOf(c.Zone, path.Join("/", name))
	info, err := tx.Files.Stat(at)
	if err != nil {
		return fmt.Sprintf("WARNING: can't access %s", name)
	}
	if on, ok := immutableMode(mode); ok {
		switch {
		case !info.Mode.IsDir():
			return fmt.Sprintf("ERROR: attributes of files are not simulated: %s", name)
		case !zfs.SetImmutable(tx, at, on):
			return fmt.Sprintf("ERROR: extended system attributes not supported for %s", name)
		}
		return ""
	}
	bits, err := strconv.ParseUint(mode, 8, 12)
	if err != nil {
		return "ERROR: invalid mode"
	}
	if err := tx.Files.Chmod(at, fs.FileMode(bits)); err != nil {
		return fmt.Sprintf("WARNING: can't change %s", name)
	}
	return ""
}

// immutableMode reads an operation on attributes that is about immutable alone.
func immutableMode(mode string) (on, ok bool) {
	switch mode {
	case "S+ci", "S+vimmutable", "S+v{immutable}", "S+c{i}":
		return true, true
	case "S-ci", "S-vimmutable", "S-v{immutable}", "S-c{i}":
		return false, true
	}
	return false, false
}

// Ls is the command ls.
func Ls(tx *world.Tx, c cli.Call) cli.Reply {
	options, operands := cli.Getopt(c.Args, "1adlA/:", nil)
	var l list
	for _, o := range options {
		switch o.Letter {
		case 'd':
			l.itself = true
		case 'l':
			l.long = true
		case '/':
			l.long, l.attributes = true, o.Value
			if o.Value != "c" && o.Value != "v" {
				return lsUsage("illegal option -- " + o.Value)
			}
		case '?', ':':
			return lsUsage("illegal option -- " + o.Bad)
		}
	}
	if len(operands) == 0 {
		operands = []string{"."}
	}
	var reply cli.Reply
	for _, name := range operands {
		out, ok := l.show(tx, tx.ZonePathOf(c.Zone, path.Join("/", name)), name)
		if !ok {
			reply.Stderr += name + ": No such file or directory\n"
			reply.Exit = 2
		}
		reply.Stdout += out
	}
	return reply
}

func lsUsage(why string) cli.Reply {
	const usage = "usage: ls -aAbcCdeEfFghHiklLmnopqrRsStuUwxvV1@/%[c | v]%[atime | crtime | ctime | mtime | all] [files]\n"
	return cli.Reply{Stderr: "ls: " + why + "\n" + usage, Exit: 2}
}

// list is what ls was told.
type list struct {
	itself, long bool
	attributes   string // c or v; empty: none
}

func (l list) show(tx *world.Tx, at, name string) (out string, ok bool) {
	info, err := tx.Files.Stat(at)
	if err != nil {
		return "", false
	}
	if !info.Mode.IsDir() || l.itself {
		return l.line(tx, at, name, info), true
	}
	entries, err := tx.Files.ReadDir(at)
	if err != nil {
		return "", false
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name, ".") {
			out += l.line(tx, path.Join(at, e.Name), e.Name, e)
		}
	}
	return out, true
}

func (l list) line(tx *world.Tx, at, name string, info host.Info) string {
	if !l.long {
		return name + "\n"
	}
	kind := "-"
	if info.Mode.IsDir() {
		kind = "d"
	}
	line := fmt.Sprintf("%s%s   1 root     root     %7d %s %s\n", kind, info.Mode.Perm().String()[1:], info.Size,
		info.Time.UTC().Format("Jan _2 15:04"), name)
	is, known := zfs.Immutable(tx, at)
	if l.attributes == "" || !known {
		return line
	}
	if l.attributes == "c" {
		return line + "                {A-----" + map[bool]string{false: "-", true: "i"}[is] + "------}\n"
	}
	no := map[bool]string{false: "no"}[is]
	return line + "                {archive,nohidden,noreadonly,nosystem,noappendonly,nonodump," + no +
		"immutable,noav_modified,noav_quarantined,nonounlink,nooffline,nosparse}\n"
}
