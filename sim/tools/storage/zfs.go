package storage

import (
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// zfs(8): usr/src/cmd/zfs/zfs_main.c. What the datasets do is in package
// sim/world/zfs.

// zfsCall is one run of zfs.
type zfsCall struct{ session }

// Zfs is the command zfs.
func Zfs(tx *world.Tx, c cli.Call) cli.Reply {
	z := &zfsCall{session{tx: tx, call: c}}
	return z.dispatch(map[string]func([]string) int{
		"create": z.create, "destroy": z.destroy, "snapshot": z.snapshot, "clone": z.clone, "rollback": z.rollback, "rename": z.rename,
		"list": z.list, "set": z.set, "get": z.get, "inherit": z.inherit,
		"mount": z.mount, "unmount": z.unmount,
		"send": z.send, "receive": z.receive, "load-key": z.loadKey, "unload-key": z.unloadKey, "change-key": z.changeKey,
	})
}

// misnamed ends a command that was given a dataset which it cannot open: with the
// usage message, here without the texts of the other subcommands.
func (z *zfsCall) misnamed(err error, usage string) int {
	z.refused(err)
	z.say("usage:\n%s\n\nFor the property list, run: zfs set|get\n\nFor the delegated permission list, run: zfs allow|unallow", usage)
	return 2
}

// create is zfs_do_create.
func (z *zfsCall) create(args []string) int {
	props := map[string]string{}
	size, sparse, volume := uint64(0), false, false
	all, operands := cli.Getopt(args, "V:so:", nil)
	only(len(operands) == 1)
	name := operands[0]
	for _, o := range all {
		switch o.Letter {
		case 'V':
			n, err := zfs.ParseSize(o.Value)
			only(err == nil)
			size, volume = n, true
		case 's':
			sparse = true
		case 'o':
			setting(props, o.Value)
		default:
			only(false)
		}
	}
	key := zfs.KeyOptions{Stdin: z.call.Stdin}
	var err error
	if volume {
		only(zfs.FindPool(z.tx, zfs.PoolName(name)) != nil)
		block := uint64(zfs.BlockBytes)
		if asked, err := zfs.ParseSize(props["volblocksize"]); err == nil && asked > 0 {
			block = asked
		}
		size = (size + block - 1) / block * block
		err = zfs.CreateVolume(z.tx, name, size, sparse, props, key)
	} else {
		only(!sparse)
		err = zfs.CreateFilesystemWith(z.tx, name, props, key)
	}
	if err != nil {
		return z.refused(err)
	}
	return z.mountNew(name)
}

// mountNew mounts what was made (zfs_mount_and_share). A file system that could
// not be mounted is there all the same.
func (z *zfsCall) mountNew(name string) int {
	if err := zfs.MountAuto(z.tx, name); err != nil {
		z.refused(err)
		return z.fail("filesystem successfully created, but not mounted")
	}
	return 0
}

// clone is zfs_do_clone.
func (z *zfsCall) clone(args []string) int {
	props, _, operands := settings(args, "o:", 2, 2)
	if err := zfs.Clone(z.tx, operands[0], operands[1], props); err != nil {
		return z.refused(err)
	}
	return z.mountNew(operands[1])
}

// snapshot is zfs_do_snapshot.
func (z *zfsCall) snapshot(args []string) int {
	props, recursive, operands := settings(args, "ro:", 1, len(args))
	var names []string
	for _, word := range operands {
		head, short, ok := strings.Cut(word, "@")
		only(ok)
		if _, err := zfs.OpenDataset(z.tx, head, zfs.TypeFilesystem|zfs.TypeVolume); err != nil {
			return z.misnamed(err, "\tsnapshot [-r] [-o property=value] ... <filesystem|volume>@<snap> ...")
		}
		names = append(names, word)
		if recursive {
			for _, d := range zfs.Descendants(z.tx, head) {
				names = append(names, d.Name+"@"+short)
			}
		}
	}
	slices.Sort(names)
	exit := z.refused(zfs.SnapshotAll(z.tx, slices.Compact(names), props))
	if exit != 0 && (recursive || len(operands) > 1) {
		z.say("no snapshots were created")
	}
	return exit
}

// rollback is zfs_do_rollback, without options.
func (z *zfsCall) rollback(args []string) int {
	_, operands := options(args, "", 1, 1)
	only(strings.Contains(operands[0], "@"))
	return z.refused(zfs.Rollback(z.tx, operands[0]))
}

// send is zfs_do_send: of a snapshot of a volume, or of the rest of one (-t).
func (z *zfsCall) send(args []string) int {
	given, operands := options(args, "i:t:", 0, 1)
	since := given['i']
	token, resume := given['t']
	only(resume == (len(operands) == 0) && !(resume && since != ""))
	var stream []byte
	var err error
	if resume {
		stream, err = zfs.SendResume(z.tx, token)
	} else {
		only(strings.Contains(operands[0], "@"))
		stream, err = zfs.Send(z.tx, operands[0], since)
	}
	z.out.Write(stream)
	return z.refused(err)
}

// receive is zfs_do_receive: into one volume, whose snapshot has the name that the stream has.
func (z *zfsCall) receive(args []string) int {
	o := zfs.ReceiveOptions{Props: map[string]string{}}
	abort := false
	all, operands := cli.Getopt(args, "suAo:", nil)
	only(len(operands) == 1)
	for _, option := range all {
		switch option.Letter {
		case 's':
			o.Keep = true
		case 'u': // nothing of a volume is mounted
		case 'A':
			abort = true
		case 'o':
			setting(o.Props, option.Value)
		default:
			only(false)
		}
	}
	if abort {
		only(len(all) == 1)
		return z.refused(zfs.AbortReceive(z.tx, operands[0]))
	}
	only(z.call.Stdin != nil)
	return z.refused(zfs.Receive(z.tx, operands[0], z.call.Stdin, o))
}

// rename is zfs_do_rename, without options.
func (z *zfsCall) rename(args []string) int {
	_, operands := options(args, "", 2, 2)
	only(!strings.Contains(operands[0]+operands[1], "@"))
	return z.refused(zfs.Rename(z.tx, operands[0], operands[1]))
}

// destroy is zfs_do_destroy.
func (z *zfsCall) destroy(args []string) int {
	given, operands := options(args, "r", 1, 1)
	_, recursive := given['r']
	only(!strings.ContainsAny(operands[0], "#%,"))
	return z.refused(zfs.Destroy(z.tx, operands[0], zfs.DestroyOptions{Recursive: recursive}))
}

// set is zfs_do_set.
func (z *zfsCall) set(args []string) int {
	n := slices.IndexFunc(args, func(word string) bool { return !strings.Contains(word, "=") })
	only(n > 0)
	props := map[string]string{}
	for _, word := range args[:n] {
		setting(props, word)
	}
	_, found, exit := z.find(walk{depth: -1, types: zfs.TypeDataset}, args[n:])
	for _, d := range found {
		exit = max(exit, z.refused(zfs.SetProperties(z.tx, d.Name, props)))
	}
	return exit
}

// inherit is zfs_do_inherit.
func (z *zfsCall) inherit(args []string) int {
	_, operands := options(args, "", 2, len(args))
	p := zfs.FindDatasetProperty(operands[0])
	only(p == nil && zfs.UserProperty(operands[0]) || p != nil && p.Inheritable() && !p.ReadOnly())
	_, found, exit := z.find(walk{depth: -1, types: zfs.TypeDataset}, operands[1:])
	for _, d := range found {
		exit = max(exit, z.refused(zfs.Inherit(z.tx, d.Name, operands[0])))
	}
	return exit
}

// mount is share_mount.
func (z *zfsCall) mount(args []string) int {
	given, operands := options(args, "a", 0, 1)
	_, all := given['a']
	only(all == (len(operands) == 0))
	if all {
		return z.refused(zfs.MountAll(z.tx))
	}
	return z.refused(zfs.MountWith(z.tx, operands[0], false))
}

// unmount is unshare_unmount.
func (z *zfsCall) unmount(args []string) int {
	_, operands := options(args, "", 1, 1)
	only(!strings.HasPrefix(operands[0], "/"))
	return z.refused(zfs.UnmountTree(z.tx, operands[0]))
}

// loadKey is load_unload_keys, which returns -1 when a key fails.
func (z *zfsCall) loadKey(args []string) int {
	given, operands := options(args, "L:", 1, 1)
	return z.keyEnd(operands[0], zfs.LoadKey(z.tx, operands[0], zfs.KeyOptions{Stdin: z.call.Stdin, Location: given['L']}))
}

func (z *zfsCall) unloadKey(args []string) int {
	_, operands := options(args, "", 1, 1)
	return z.keyEnd(operands[0], zfs.UnloadKey(z.tx, operands[0]))
}

// Guess key-commands-exit-255: `load-key`, `unload-key` and `change-key` exit with 255 when they
// fail (zfs_main.c returns -1); sledctl only tells 0 from others.
// Check: `zfs load-key` with a wrong key
func (z *zfsCall) keyEnd(name string, err error) int {
	_, closed := zfs.OpenDataset(z.tx, name, zfs.TypeFilesystem|zfs.TypeVolume)
	if exit := z.refused(err); exit == 0 || closed != nil {
		return exit
	}
	return 255
}

// changeKey is zfs_do_change_key, which returns -1 when a key fails.
func (z *zfsCall) changeKey(args []string) int {
	props, _, operands := settings(args, "o:", 1, 1)
	if _, err := zfs.OpenDataset(z.tx, operands[0], zfs.TypeFilesystem|zfs.TypeVolume); err != nil {
		return z.misnamed(err, "\tchange-key [-l] [-o keyformat=<value>]\n\t    [-o keylocation=<value>] [-o pbkdf2iters=<value>]\n"+
			"\t    <filesystem|volume>\n\tchange-key -i [-l] <filesystem|volume>")
	}
	return z.keyEnd(operands[0], zfs.ChangeKey(z.tx, operands[0], props, zfs.KeyOptions{Stdin: z.call.Stdin}))
}
