package storage

import (
	"strings"

	"github.com/sledctl/sledctl/sim/world/zfs"
)

// zpool list, set and status: zpool_do_list, zpool_do_set and zpool_do_status in zpool_main.c.

// properties reads a list of properties. It is not ok, and says why with the
// usage, if one is none.
func (z *zpool) properties(list string) (names []string, ok bool) {
	if list == "" {
		z.usage("bad property list: no properties specified")
		return nil, false
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(list, ","), ",") {
		p := zfs.FindPoolProperty(name)
		switch {
		case name == "":
			z.usage("bad property list: empty property name")
			return nil, false
		case p != nil:
			name = p.Name
		case !strings.HasPrefix(name, "feature@") && !strings.HasPrefix(name, "unsupported@"):
			z.usage("bad property list: invalid property '%s'", name)
			return nil, false
		}
		names = append(names, name)
	}
	return names, true
}

func (z *zpool) list(args []string) int {
	options, operands, bad := z.options(args, "gHLo:pPT:v", missingArgument)
	if bad {
		return 2
	}
	l := listing{fields: "name,size,allocated,free,checkpoint,expandsize,fragmentation,capacity,dedupratio,health,altroot"}
	for _, o := range options {
		switch o.Letter {
		case 'H':
			l.scripted = true
		case 'o':
			l.fields = o.Value
		case 'p':
			l.literal = true
		case 'v':
			l.verbose = true
		case 'T':
			return z.usage("'zpool list -T' is not simulated")
		default:
			z.naming |= naming(o.Letter)
		}
	}
	var ok bool
	if l.names, ok = z.properties(l.fields); !ok {
		return 2
	}
	pools, exit := z.pools(operands, false)
	z.table(pools, l)
	if len(operands) == 0 && len(pools) == 0 && !l.scripted {
		z.out.WriteString("no pools available\n")
	}
	return exit
}

func (z *zpool) set(args []string) int {
	switch {
	case len(args) > 0 && strings.HasPrefix(args[0], "-"):
		return z.usage("invalid option '%s'", (args[0] + " ")[1:2])
	case len(args) == 0:
		return z.usage("missing property=value argument")
	case len(args) == 1:
		return z.usage("missing pool name")
	case len(args) > 2:
		return z.usage("too many pool names")
	}
	name, value, ok := strings.Cut(args[0], "=")
	if !ok {
		return z.usage("missing value in property=value argument")
	}
	return z.refused(zfs.SetPoolProperty(z.tx, args[1], name, value))
}
