// Package storage holds zfs, zpool and fstyp.
package storage

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// zfs(8): usr/src/cmd/zfs/zfs_main.c. This file has what its subcommands share;
// they lie in zfs_*.go. What the datasets do is in package world.

// Zfs is the command zfs.
func Zfs(tx *world.Tx, c cli.Call) cli.Reply {
	z := &zfsCall{tx: tx, call: c}
	exit := z.run()
	return cli.Reply{Stdout: z.out.String(), Stderr: z.err.String(), Exit: exit}
}

// zfsCall is one run of the command.
type zfsCall struct {
	tx       *world.Tx
	call     cli.Call
	command  string // the subcommand, empty before it is known
	out, err strings.Builder
}

// zfsCommands are the subcommands that are simulated.
func (z *zfsCall) commands() map[string]func([]string) int {
	return map[string]func([]string) int{
		"create": z.create, "destroy": z.destroy, "snapshot": z.snapshot, "clone": z.clone,
		"list": z.list, "set": z.set, "get": z.get, "inherit": z.inherit,
		"mount": z.mount, "unmount": z.unmount,
		"load-key": z.loadKey, "unload-key": z.unloadKey, "change-key": z.changeKey,
	}
}

// zfsOthers are the subcommands of the real one that are not.
const zfsOthers = " promote rename rollback bookmark program upgrade userspace groupspace projectspace project share unshare send receive allow " +
	"unallow hold holds release diff remap "

func (z *zfsCall) run() int {
	if len(z.call.Args) == 0 {
		return z.usage("missing command")
	}
	name, args := z.call.Args[0], z.call.Args[1:]
	switch name {
	case "-?":
		z.printUsage(&z.out)
		return 0
	case "umount":
		name = "unmount"
	case "recv":
		name = "receive"
	case "snap":
		name = "snapshot"
	}
	if strings.Contains(name, "=") {
		name, args = "set", z.call.Args
	}
	run, ok := z.commands()[name]
	switch {
	case !ok && strings.Contains(zfsOthers, " "+name+" "):
		panic(world.Unsimulated{What: name})
	case !ok:
		return z.usage("unrecognized command '%s'", name)
	}
	z.command = name
	if z.call.Zone != world.GlobalZone && name != "list" && name != "get" {
		// Guess: no zone of this sled is given datasets that it manages itself.
		return z.fail("cannot %s: permission denied", name)
	}
	return run(args)
}

// say prints a line on standard error.
func (z *zfsCall) say(format string, args ...any) { fmt.Fprintf(&z.err, format+"\n", args...) }

// fail prints a line on standard error and is exit code 1.
func (z *zfsCall) fail(format string, args ...any) int {
	z.say(format, args...)
	return 1
}

// usage prints a line and the usage message on standard error, and is exit
// code 2. Without a format there is only the message.
func (z *zfsCall) usage(format string, args ...any) int {
	if format != "" {
		z.say(format, args...)
	}
	z.printUsage(&z.err)
	return 2
}

// refused prints what the world refuses, and is the exit code. Any other error
// is one of the simulation itself.
func (z *zfsCall) refused(err error) int {
	if err == nil {
		return 0
	}
	if r, ok := errors.AsType[*world.Refusal](err); ok {
		z.say("%s", r.Text)
		return r.Exit
	}
	return z.fail("internal error: %s", err)
}

// options splits the arguments of a subcommand. Bad is set, and the message and
// usage are printed, if they are faulty. Missing is what a missing value is
// called: "" where getopt(3C) is told to call it an invalid option.
func (z *zfsCall) options(args []string, spec, missing string) (options []cli.Option, operands []string, bad bool) {
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

// missingArgument is what most subcommands say of an option without its value.
const missingArgument = "missing argument for '%s' option"

// setting adds a "property=value" to props. It is not ok, and says so, if it is
// none or the second of its name (parseprop).
func (z *zfsCall) setting(props map[string]string, word string) bool {
	name, value, ok := strings.Cut(word, "=")
	if !ok {
		z.say("missing '=' for property=value argument")
		return false
	}
	if _, twice := props[name]; twice {
		z.say("property '%s' specified multiple times", name)
		return false
	}
	props[name] = value
	return true
}

// visible says whether the zone in which the command runs can see a dataset:
// what was given to it, with all above and below (zone_dataset_visible in
// usr/src/uts/common/os/zone.c).
func (z *zfsCall) visible(name string) bool {
	if z.call.Zone == world.GlobalZone {
		return true
	}
	zone := z.tx.FindZone(z.call.Zone)
	if zone == nil || zone.Kernel == nil {
		return false
	}
	return slices.ContainsFunc(zone.Kernel.Config.All("dataset"), func(r *world.Resource) bool {
		given := r.Get("name")
		return world.Below(given, strings.ReplaceAll(name, "@", "/")) || world.Below(name, given)
	})
}

// open finds a dataset by its name, or by a path that lies on it
// (zfs_path_to_zhandle).
func (z *zfsCall) open(word string, types zfs.DatasetTypes, paths bool) (*world.Dataset, error) {
	if paths && (strings.HasPrefix(word, "/") || strings.HasPrefix(word, "./")) {
		where := path.Join("/", word) // The working directory is "/".
		if _, err := z.tx.Files.Stat(where); err != nil {
			return nil, &world.Refusal{Text: word + ": No such file or directory", Exit: 1}
		}
		d := zfs.DatasetOf(z.tx, where)
		if d == nil || !z.visible(d.Name) {
			return nil, &world.Refusal{Text: "'" + word + "': not a ZFS filesystem", Exit: 1}
		}
		return d, nil
	}
	d, err := zfs.OpenDataset(z.tx, word, types)
	if err == nil && !z.visible(word) {
		return nil, &world.Refusal{Text: "cannot open '" + word + "': dataset does not exist", Exit: 1}
	}
	return d, err
}
