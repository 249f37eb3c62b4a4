package storage

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

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

// imports is what zpool import was told.
type imports struct {
	all, noMount, keys, force bool
	props                     map[string]string
	dirs                      []string // where devices are looked for
}

func (z *zpool) importPool(args []string) int {
	options, operands, bad := z.options(args, "aCc:d:DEfFlmnNo:rR:tT:VX", missingArgument)
	if bad {
		return 2
	}
	m := imports{props: map[string]string{}}
	for _, o := range options {
		switch o.Letter {
		case 'a':
			m.all = true
		case 'N':
			m.noMount = true
		case 'l':
			m.keys = true
		case 'R':
			m.props["altroot"], m.props["cachefile"] = o.Value, "none"
		case 'o':
			if strings.Contains(o.Value, "=") && !z.setting(m.props, 'o', o.Value, true) {
				return 1
			}
		case 'f':
			m.force = true
		case 'd':
			m.dirs = append(m.dirs, o.Value)
		case 'm', 'F': // No pool here has logs or is damaged.
		default:
			return z.usage("'zpool import -%c' is not simulated", o.Letter)
		}
	}
	switch {
	case m.keys && m.noMount:
		return z.usage("-l is incompatible with -N")
	case m.keys && !m.all && len(operands) == 0:
		return z.usage("-l is only meaningful during an import")
	case m.all && len(operands) > 0, len(operands) > 2:
		return z.usage("too many arguments")
	}
	if m.dirs == nil {
		m.dirs = []string{"/dev/dsk"}
	}
	found, err := zfs.Importable(z.tx, m.dirs...)
	if err != nil {
		return z.refused(err)
	}
	if len(operands) > 0 {
		return z.importOne(m, found, operands)
	}
	if len(found) == 0 {
		// zpool_search_import finds nothing at all: no word, exit 1.
		return 1
	}
	exit := 0
	for i, p := range found {
		if m.all {
			exit |= z.doImport(m, p, p.Name)
			continue
		}
		if i > 0 {
			z.out.WriteByte('\n')
		}
		z.showImport(p)
	}
	return exit
}

// showImport is show_import.
func (z *zpool) showImport(p zfs.Candidate) {
	fmt.Fprintf(&z.out, "   pool: %s\n     id: %d\n  state: ONLINE\n", p.Name, p.GUID)
	if zfs.OtherHost(z.tx, p.Pool) {
		z.out.WriteString(" status: The pool was last accessed by another system.\n" +
			" action: The pool can be imported using its name or numeric identifier and\n\tthe '-f' flag.\n" +
			"   see: http://illumos.org/msg/ZFS-8000-EY\n")
	} else {
		z.out.WriteString(" action: The pool can be imported using its name or numeric identifier.\n")
	}
	z.out.WriteString(" config:\n\n")
	shown := *p.Pool
	shown.Vdevs, shown.Health = p.Found, "ONLINE"
	z.tree(&shown, z.width(&shown), func(state, _ string) string { return state })
}

// importOne imports a pool by its name or number, under another name if one is
// given.
func (z *zpool) importOne(m imports, all []zfs.Candidate, operands []string) int {
	word := operands[0]
	guid, err := strconv.ParseUint(word, 10, 64)
	is := func(p *world.Pool) bool { return p.Name == word || err == nil && p.GUID == guid }
	var found []zfs.Candidate
	for _, p := range all {
		if is(p.Pool) {
			found = append(found, p)
		}
	}
	there := false
	for _, p := range z.tx.State.Pools {
		there = there || p.Imported && is(p)
	}
	name := operands[len(operands)-1]
	switch {
	case len(found) > 0 && there && name == word:
		z.say("cannot import '%s': a pool with that name already exists", word)
		return z.fail("use the form 'zpool import [-t] <pool | id> <newpool>' to give it a new temporary or permanent name")
	case len(found) == 0 && there:
		z.say("cannot import '%s': a pool with that name is already created/imported,", word)
		return z.fail("and no additional pools with that name were found")
	case len(found) == 0:
		return z.fail("cannot import '%s': no such pool available", word)
	case len(found) > 1:
		z.say("cannot import '%s': more than one matching pool", word)
		return z.fail("import by numeric ID instead")
	case len(operands) == 1:
		name = found[0].Name
	}
	return z.doImport(m, found[0], name)
}

// doImport is do_import: the pool, then its keys, then its mounts.
func (z *zpool) doImport(m imports, p zfs.Candidate, name string) int {
	if zfs.OtherHost(z.tx, p.Pool) && !m.force {
		z.say("cannot import '%s': pool was previously in use from another system.", p.Name)
		return z.fail("Last accessed by %s (hostid=%x) at %s\nThe pool can be imported, use 'zpool import -f' to import the pool.",
			"sled", p.HostID, time.Unix(p.Accessed, 0).UTC().Format(time.ANSIC))
	}
	if err := zfs.ImportPool(z.tx, p, name, maps.Clone(m.props)); err != nil {
		return z.refused(err)
	}
	exit := 0
	if m.keys {
		exit = z.loadKeys(name)
	}
	if m.noMount {
		return exit
	}
	return max(exit, z.refused(zfs.MountPool(z.tx, name)))
}

// loadKeys loads the keys of a pool as far as it can (zfs_crypto_attempt_load_keys).
func (z *zpool) loadKeys(pool string) int {
	s := zfs.NewSurvey(z.tx)
	tried, failed := 0, 0
	for _, d := range s.Below(zfs.FindDataset(z.tx, pool)) {
		root, _, _ := s.Value(d, "encryptionroot", true)
		if status, _, _ := s.Value(d, "keystatus", true); root != d.Name || status == "available" {
			continue
		}
		tried++
		if z.refused(zfs.LoadKey(z.tx, d.Name, zfs.KeyOptions{Stdin: z.call.Stdin})) != 0 {
			failed++
		}
	}
	fmt.Fprintf(&z.out, "%d / %d keys successfully loaded\n", tried-failed, tried)
	return min(failed, 1)
}
