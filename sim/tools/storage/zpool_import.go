package storage

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

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
