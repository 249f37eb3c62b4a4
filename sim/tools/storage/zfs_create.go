package storage

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// zfs create, clone and snapshot: zfs_do_create, zfs_do_clone, zfs_do_snapshot
// in zfs_main.c.

// creation is what zfs create was told.
type creation struct {
	name     string
	props    map[string]string
	volume   bool
	size     uint64
	sparse   bool
	parents  bool
	dry      bool
	verbose  bool
	parsable bool
}

func (z *zfsCall) create(args []string) int {
	options, operands, bad := z.options(args, "PV:b:nso:pv", "missing size argument")
	if bad {
		return 2
	}
	c := creation{props: map[string]string{}}
	block := ""
	for _, o := range options {
		switch o.Letter {
		case 'V', 'b':
			n, err := zfs.ParseSize(o.Value)
			switch {
			case err != nil && o.Letter == 'V':
				return z.fail("bad volume size '%s': %s", o.Value, err)
			case err != nil:
				return z.fail("bad volume block size '%s': %s", o.Value, err)
			case o.Letter == 'V':
				c.volume, c.size = true, n
			default:
				block = fmt.Sprint(n)
			}
		case 'P':
			c.verbose, c.parsable = true, true
		case 'p':
			c.parents = true
		case 'n':
			c.dry = true
		case 'v':
			c.verbose = true
		case 's':
			c.sparse = true
		case 'o':
			if !z.setting(c.props, o.Value) {
				return 1
			}
		}
	}
	switch {
	case (block != "" || c.sparse) && !c.volume:
		return z.usage("'-s' and '-b' can only be used when creating a volume")
	case len(operands) == 0 && c.volume:
		return z.usage("missing volume argument")
	case len(operands) == 0:
		return z.usage("missing filesystem argument")
	case len(operands) > 1:
		return z.usage("too many arguments")
	}
	if block != "" {
		c.props["volblocksize"] = block
	}
	c.name = operands[0]
	return z.make(c)
}

// make carries out a creation.
func (z *zfsCall) make(c creation) int {
	if pool, _, _ := strings.Cut(c.name, "/"); (c.dry || c.volume && !c.sparse) && zfs.FindPool(z.tx, pool) == nil {
		return z.fail("cannot open '%s': no such pool", pool)
	}
	if c.volume {
		block := uint64(8192)
		if b, err := zfs.ParseSize(c.props["volblocksize"]); err == nil && b > 0 {
			block = b
		}
		c.size = (c.size + block - 1) / block * block
	}
	if c.parents {
		if d := zfs.FindDataset(z.tx, c.name); d != nil && zfs.Kind(d) == c.kind() {
			return 0 // Whatever -o says.
		}
		z.tell(c, "create_ancestors\t%s\n", "would create ancestors of %s\n", "create ancestors of %s\n")
		if !c.dry {
			return z.refused(world.NotSimulated("zfs create -p"))
		}
	}
	z.tell(c, "create\t%s\n", "would create %s\n", "create %s\n")
	z.tellSettings(c)
	if c.dry {
		return 0
	}
	key := zfs.KeyOptions{Stdin: z.call.Stdin}
	var err error
	if c.volume {
		err = zfs.CreateVolume(z.tx, c.name, c.size, c.sparse, c.props, key)
	} else {
		err = zfs.CreateFilesystemWith(z.tx, c.name, c.props, key)
	}
	if err != nil {
		return z.refused(err)
	}
	return z.mountNew(c.name)
}

func (c creation) kind() zfs.DatasetTypes {
	if c.volume {
		return zfs.TypeVolume
	}
	return zfs.TypeFilesystem
}

// tell is -v: one of three forms with the name.
func (z *zfsCall) tell(c creation, parsable, dry, done string) {
	switch {
	case !c.verbose:
	case c.parsable:
		fmt.Fprintf(&z.out, parsable, c.name)
	case c.dry:
		fmt.Fprintf(&z.out, dry, c.name)
	default:
		fmt.Fprintf(&z.out, done, c.name)
	}
}

func (z *zfsCall) tellSettings(c creation) {
	if !c.verbose {
		return
	}
	form := "\t%s=%s\n"
	if c.parsable {
		form = "property\t%s\t%s\n"
	}
	names := make([]string, 0, len(c.props))
	for name := range c.props {
		names = append(names, name)
	}
	slices.Sort(names)
	if c.volume {
		fmt.Fprintf(&z.out, form, "volsize", fmt.Sprint(c.size))
	}
	for _, name := range names {
		fmt.Fprintf(&z.out, form, name, c.props[name])
	}
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

func (z *zfsCall) clone(args []string) int {
	options, operands, bad := z.options(args, "o:p", "")
	if bad {
		return 2
	}
	props, parents := map[string]string{}, false
	for _, o := range options {
		switch {
		case o.Letter == 'p':
			parents = true
		case !z.setting(props, o.Value):
			return 1
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
	source, target := operands[0], operands[1]
	if _, err := zfs.OpenDataset(z.tx, source, zfs.TypeSnapshot); err != nil {
		return z.refused(err)
	}
	if parents {
		if zfs.FindDataset(z.tx, target) != nil {
			return 0
		}
		return z.refused(world.NotSimulated("zfs clone -p"))
	}
	if err := zfs.Clone(z.tx, source, target, props); err != nil {
		return z.refused(err)
	}
	return z.mountNew(target)
}

func (z *zfsCall) snapshot(args []string) int {
	options, operands, bad := z.options(args, "ro:", "")
	if bad {
		return 2
	}
	props, recursive := map[string]string{}, false
	for _, o := range options {
		switch {
		case o.Letter == 'r':
			recursive = true
		case !z.setting(props, o.Value):
			return 1
		}
	}
	if len(operands) == 0 {
		return z.usage("missing snapshot argument")
	}
	var names []string
	for _, word := range operands {
		head, short, ok := strings.Cut(word, "@")
		if !ok {
			return z.usage("")
		}
		if _, err := zfs.OpenDataset(z.tx, head, zfs.TypeFilesystem|zfs.TypeVolume); err != nil {
			z.refused(err)
			return z.usage("")
		}
		names = append(names, word)
		if recursive {
			for _, d := range zfs.Descendants(z.tx, head) {
				names = append(names, d.Name+"@"+short)
			}
		}
	}
	slices.Sort(names)
	if err := zfs.SnapshotAll(z.tx, slices.Compact(names), props); err != nil {
		exit := z.refused(err)
		if recursive || len(operands) > 1 {
			z.say("no snapshots were created")
		}
		return exit
	}
	return 0
}
