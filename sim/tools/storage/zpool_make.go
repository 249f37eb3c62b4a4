package storage

import (
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// zpool create, destroy, export and import: zpool_do_create, zpool_do_destroy,
// zpool_do_export and zpool_do_import in zpool_main.c.

// setting adds a "property=value" of an option to props.
func (z *zpool) setting(props map[string]string, letter byte, word string, pool bool) bool {
	name, value, ok := strings.Cut(word, "=")
	if !ok {
		z.say("missing '=' for -%c option", letter)
		return false
	}
	if pool && zfs.FindPoolProperty(name) == nil && !strings.HasPrefix(name, "feature@") {
		z.say("property '%s' is not a valid pool property", name)
		return false
	}
	if _, twice := props[name]; twice {
		z.say("property '%s' specified multiple times", name)
		return false
	}
	props[name] = value
	return true
}

func (z *zpool) create(args []string) int {
	options, operands, bad := z.options(args, "fndBR:m:o:O:t:", missingArgument)
	if bad {
		return 2
	}
	o := zfs.PoolOptions{Properties: map[string]string{}, Root: map[string]string{}}
	dry, mountpoint := false, ""
	for _, option := range options {
		ok := true
		switch option.Letter {
		case 'f':
			o.Force = true
		case 'n':
			dry = true
		case 'd': // Without features: encryption is the one that is simulated.
			o.Properties["feature@encryption"] = "disabled"
		case 'R':
			o.Properties["altroot"] = option.Value
			o.Properties["cachefile"] = "none"
		case 'm':
			mountpoint = option.Value
		case 'o':
			ok = z.setting(o.Properties, 'o', option.Value, true)
		case 'O':
			if v, is := strings.CutPrefix(option.Value, "mountpoint="); is {
				mountpoint = v
			} else {
				ok = z.setting(o.Root, 'O', option.Value, false)
			}
		case 'B', 't':
			return z.usage("'zpool create -%c' is not simulated", option.Letter)
		}
		if !ok {
			return 1
		}
	}
	switch {
	case len(operands) == 0:
		return z.usage("missing pool name argument")
	case len(operands) == 1:
		return z.usage("missing vdev specification")
	}
	name, vdevs := operands[0], operands[1:]
	if strings.Contains(name, "/") {
		z.say("cannot create '%s': invalid character '/' in pool name", name)
		return z.fail("use 'zfs create' to create a dataset")
	}
	if root := o.Properties["altroot"]; root != "" && !strings.HasPrefix(root, "/") {
		return z.fail("invalid alternate root '%s': must be an absolute path", root)
	}
	if exit := z.checkMountpoint(name, mountpoint, o.Properties["altroot"]); exit != 0 {
		return exit
	}
	if mountpoint != "" {
		o.Root["mountpoint"] = mountpoint
	}
	if dry {
		fmt.Fprintf(&z.out, "would create '%s' with the following layout:\n\n\t%s\n", name, name)
		for _, v := range vdevs {
			fmt.Fprintf(&z.out, "\t  %s\n", v)
		}
		return 0
	}
	if err := zfs.CreatePool(z.tx, name, vdevs, o); err != nil {
		return z.refused(err)
	}
	return z.refused(zfs.MountAuto(z.tx, name))
}

// checkMountpoint refuses a directory that has something in it.
func (z *zpool) checkMountpoint(pool, mountpoint, root string) int {
	switch {
	case mountpoint == "legacy" || mountpoint == "none":
		return 0
	case mountpoint == "":
		mountpoint = "/" + pool
	case !strings.HasPrefix(mountpoint, "/"):
		return z.fail("invalid mountpoint '%s': must be an absolute path, 'legacy', or 'none'", mountpoint)
	}
	dir := root + mountpoint
	if entries, err := z.tx.Files.ReadDir(dir); err == nil && len(entries) > 0 {
		z.say("mountpoint '%s' exists and is not empty", dir)
		return z.fail("use '-m' option to provide a different default")
	}
	return 0
}

func (z *zpool) destroy(args []string) int {
	options, operands, bad := z.options(args, "f", "")
	switch {
	case bad:
		return 2
	case len(operands) == 0:
		return z.usage("missing pool argument")
	case len(operands) > 1:
		return z.usage("too many arguments")
	}
	if z.stuck(operands) {
		return 0
	}
	exit := z.refused(zfs.DestroyPool(z.tx, operands[0], len(options) > 0))
	if exit != 0 && strings.Contains(operands[0], "/") {
		z.say("use 'zfs destroy' to destroy a dataset")
	}
	return exit
}

func (z *zpool) export(args []string) int {
	options, operands, bad := z.options(args, "fF", "")
	switch {
	case bad:
		return 2
	case len(operands) == 0:
		return z.usage("missing pool argument")
	}
	if z.stuck(operands) {
		return 0
	}
	exit := 0
	for _, name := range operands {
		if z.refused(zfs.ExportPool(z.tx, name, len(options) > 0)) != 0 {
			exit = 1
		}
	}
	return exit
}

// stuck says whether the command waits: what has to be written to a suspended
// pool before it can go is not written until zpool clear, whatever failmode says
// (txg_wait_synced in usr/src/uts/common/fs/zfs/txg.c).
func (z *zpool) stuck(pools []string) bool {
	suspended := func(tx *world.Tx) bool {
		for _, name := range pools {
			if p := zfs.FindPool(tx, name); p != nil && zfs.Lost(p) && !p.Unloaded {
				return true
			}
		}
		return false
	}
	if !suspended(z.tx) {
		return false
	}
	call := z.call
	z.next = &cli.Next{
		Until: func(tx *world.Tx) bool { return !suspended(tx) },
		Do:    func(tx *world.Tx) cli.Reply { return Zpool(tx, call) },
	}
	return true
}

// labelClear wipes the label of a device that no active pool has
// (zpool_do_labelclear).
func (z *zpool) labelClear(args []string) int {
	options, operands, bad := z.options(args, "f", "")
	switch {
	case bad:
		return 2
	case len(operands) == 0:
		return z.usage("missing vdev name")
	case len(operands) > 1:
		return z.usage("too many arguments")
	}
	name := operands[0]
	if !strings.HasPrefix(name, "/") {
		name = "/dev/dsk/" + name
	}
	device, err := zfs.OpenDevice(z.tx, name)
	if err != nil {
		return z.fail("failed to open %s: %s", name, cli.ErrnoText(err))
	}
	pool, _ := zfs.ReadLabel(z.tx, device)
	switch {
	case pool == nil && !zfs.Scrap(z.tx, device):
		return z.fail("failed to read label from %s", name)
	case pool == nil:
	case pool.Imported:
		return z.fail("%s is a member (ACTIVE) of pool \"%s\"", name, pool.Name)
	case len(options) == 0:
		state := "potentially active"
		if pool.Exported {
			state = "exported"
		}
		z.say("use '-f' to override the following error:")
		return z.fail("%s is a member of %s pool \"%s\"", name, state, pool.Name)
	}
	if err := zfs.ClearLabel(z.tx, device); err != nil {
		return z.fail("failed to clear label for %s", name)
	}
	return 0
}
