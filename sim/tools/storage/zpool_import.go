package storage

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// importPool is zpool_do_import: of one pool, or a list of those that are found.
func (z *zpool) importPool(args []string) int {
	given, operands := options(args, "fd:", 0, 1)
	_, force := given['f']
	dir, chosen := given['d'] // where devices are looked for
	if !chosen {
		dir = "/dev/dsk"
	}
	found, err := zfs.Importable(z.tx, dir)
	switch {
	case err != nil:
		return z.refused(err)
	case len(operands) > 0:
		return z.importOne(found, operands[0], force)
	case len(found) == 0:
		// zpool_search_import finds nothing at all: no word, exit 1.
		return 1
	}
	for i, p := range found {
		if i > 0 {
			z.out.WriteByte('\n')
		}
		z.showImport(p)
	}
	return 0
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
	z.tree(&shown, func(state, _ string) string { return state })
}

// importOne is do_import of a pool by its name or number: the pool, then its
// mounts.
func (z *zpool) importOne(all []zfs.Candidate, word string, force bool) int {
	guid, err := strconv.ParseUint(word, 10, 64)
	is := func(p *world.Pool) bool { return p.Name == word || err == nil && p.GUID == guid }
	found := slices.DeleteFunc(all, func(p zfs.Candidate) bool { return !is(p.Pool) })
	there := slices.ContainsFunc(z.tx.State.Pools, func(p *world.Pool) bool { return p.Imported && is(p) })
	switch {
	case len(found) == 0 && there:
		z.say("cannot import '%s': a pool with that name is already created/imported,", word)
		return z.fail("and no additional pools with that name were found")
	case len(found) == 0:
		return z.fail("cannot import '%s': no such pool available", word)
	case there:
		z.say("cannot import '%s': a pool with that name already exists", word)
		return z.fail("use the form 'zpool import [-t] <pool | id> <newpool>' to give it a new temporary or permanent name")
	case len(found) > 1:
		z.say("cannot import '%s': more than one matching pool", word)
		return z.fail("import by numeric ID instead")
	}
	p := found[0]
	if zfs.OtherHost(z.tx, p.Pool) && !force {
		z.say("cannot import '%s': pool was previously in use from another system.", p.Name)
		return z.fail("Last accessed by %s (hostid=%x) at %s\nThe pool can be imported, use 'zpool import -f' to import the pool.",
			"sled", p.HostID, time.Unix(p.Accessed, 0).UTC().Format(time.ANSIC))
	}
	if err := zfs.ImportPool(z.tx, p); err != nil {
		return z.refused(err)
	}
	return z.refused(zfs.MountPool(z.tx, p.Name))
}
