package storage

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// zpool(8): usr/src/cmd/zpool/zpool_main.c. Pools here have disks, files and
// groups of them; logs, caches and spares are not simulated.

// Zpool is the command zpool.
func Zpool(tx *world.Tx, c cli.Call) cli.Reply {
	z := &zpool{tx: tx, call: c}
	exit := z.run()
	return cli.Reply{Stdout: z.out.String(), Stderr: z.err.String(), Exit: exit, Next: z.next}
}

// zpool is one run of the command.
type zpool struct {
	tx       *world.Tx
	call     cli.Call
	command  string
	naming   vdevNaming
	out, err strings.Builder
	next     *cli.Next
}

func (z *zpool) commands() map[string]func([]string) int {
	return map[string]func([]string) int{
		"create": z.create, "destroy": z.destroy, "list": z.list, "status": z.status,
		"import": z.importPool, "export": z.export, "set": z.set, "clear": z.clear, "labelclear": z.labelClear,
	}
}

// zpoolOthers are the subcommands of the real one that are not simulated.
const zpoolOthers = " get add remove checkpoint iostat online offline reopen attach detach replace split initialize " +
	"resilver scrub trim upgrade reguid history sync wait "

func (z *zpool) run() int {
	if len(z.call.Args) == 0 {
		return z.usage("missing command")
	}
	name := z.call.Args[0]
	if name == "-?" {
		z.printUsage(&z.out)
		return 0
	}
	run, ok := z.commands()[name]
	switch {
	case !ok && strings.Contains(zpoolOthers, " "+name+" "):
		panic(world.Unsimulated{What: name})
	case !ok:
		return z.usage("unrecognized command '%s'", name)
	}
	z.command = name
	if z.call.Zone != world.GlobalZone && name != "list" && name != "status" {
		return z.fail("cannot %s: permission denied", name)
	}
	return run(z.call.Args[1:])
}

// say, fail, usage, refused and options are those of zfs.

func (z *zpool) say(format string, args ...any) { fmt.Fprintf(&z.err, format+"\n", args...) }

func (z *zpool) fail(format string, args ...any) int {
	z.say(format, args...)
	return 1
}

func (z *zpool) usage(format string, args ...any) int {
	if format != "" {
		z.say(format, args...)
	}
	z.printUsage(&z.err)
	return 2
}

func (z *zpool) refused(err error) int {
	if err == nil {
		return 0
	}
	if r, ok := errors.AsType[*world.Refusal](err); ok {
		z.say("%s", r.Text)
		return r.Exit
	}
	return z.fail("internal error: %s", err)
}

func (z *zpool) options(args []string, spec, missing string) (options []cli.Option, operands []string, bad bool) {
	options, operands = cli.Getopt(args, spec, nil)
	if len(options) == 0 {
		return options, operands, false
	}
	switch last := options[len(options)-1]; {
	case last.Letter == ':' && missing != "":
		z.usage("%s", strings.ReplaceAll(missing, "%s", last.Bad))
		return nil, nil, true
	case last.Letter == ':' || last.Letter == '?':
		z.usage("invalid option '%s'", last.Bad)
		return nil, nil, true
	}
	return options, operands, false
}

// pools are the imported pools of these names, or all, by name. What is not
// there is told on standard error, and makes exit 1. A zone sees none. With
// open, a pool that could not be opened counts as not there.
func (z *zpool) pools(names []string, open bool) (pools []*world.Pool, exit int) {
	if z.call.Zone != world.GlobalZone {
		for _, name := range names {
			exit = z.fail("cannot open '%s': no such pool", name)
		}
		return nil, exit
	}
	for _, name := range names {
		p, err := zfs.OpenPool(z.tx, name)
		if found := zfs.FindPool(z.tx, name); found != nil && !open {
			p, err = found, nil
		}
		if err != nil {
			exit = z.refused(err)
			continue
		}
		pools = append(pools, p)
	}
	if len(names) == 0 {
		for _, p := range z.tx.State.Pools {
			if p.Imported {
				pools = append(pools, p)
			}
		}
	}
	slices.SortFunc(pools, func(a, b *world.Pool) int { return strings.Compare(a.Name, b.Name) })
	return slices.Compact(pools), exit
}

// zpoolUsage are the usage messages (get_usage in zpool_main.c).
func zpoolUsage() [][2]string {
	return [][2]string{
		{"create", "\tcreate [-fnd] [-B] [-o property=value] ... \n\t    [-O file-system-property=value] ...\n" +
			"\t    [-m mountpoint] [-R root] [-t tempname] <pool> <vdev> ...\n"},
		{"destroy", "\tdestroy [-f] <pool>\n"},
		{},
		{"labelclear", "\tlabelclear [-f] <vdev>\n"},
		{},
		{"list", "\tlist [-gHLpPv] [-o property[,...]] [-T d|u] [pool] ... [interval [count]]\n"},
		{"status", "\tstatus [-igLpPsvxD] [-T d|u] [pool] ... [interval [count]]\n"},
		{},
		{"import", "\timport [-d dir] [-D]\n\timport [-d dir | -c cachefile] [-F [-n]] [-l] <pool | id>\n" +
			"\timport [-o mntopts] [-o property=value] ... \n" +
			"\t    [-d dir | -c cachefile] [-D] [-l] [-f] [-m] [-N] [-R root] [-F [-n]] -a\n" +
			"\timport [-o mntopts] [-o property=value] ... \n" +
			"\t    [-d dir | -c cachefile] [-D] [-l] [-f] [-m] [-N] [-R root] [-F [-n]] [-t]\n" +
			"\t    [--rewind-to-checkpoint] <pool | id> [newpool]\n"},
		{"export", "\texport [-f] <pool> ...\n"},
		{"clear", "\tclear [-nF] <pool> [device]\n"},
		{},
		{"set", "\tset <property=value> <pool> \n"},
	}
}

func (z *zpool) printUsage(to *strings.Builder) {
	if z.command == "" {
		to.WriteString("usage: zpool command args ...\nwhere 'command' is one of the following:\n\n")
	} else {
		to.WriteString("usage:\n")
	}
	for _, u := range zpoolUsage() {
		switch {
		case z.command == "" && u[0] == "":
			to.WriteString("\n")
		case z.command == "" || u[0] == z.command:
			to.WriteString(u[1])
		}
	}
	if z.command != "set" && z.command != "list" {
		return
	}
	to.WriteString("\nthe following properties are supported:\n")
	fmt.Fprintf(to, "\n\t%-19s  %s   %s\n\n", "PROPERTY", "EDIT", "VALUES")
	all := zfs.PoolProperties()
	slices.SortFunc(all, func(a, b *zfs.PoolProperty) int { return strings.Compare(a.Name, b.Name) })
	for _, p := range all {
		edit := " YES   "
		if p.ReadOnly {
			edit = "  NO   "
		}
		fmt.Fprintf(to, "\t%-19s  %s%s\n", p.Name, edit, p.Values)
	}
	fmt.Fprintf(to, "\t%-19s   YES   disabled | enabled | active\n", "feature@...")
	to.WriteString("\nThe feature@ properties must be appended with a feature name.\nSee zpool-features(7).\n")
}
