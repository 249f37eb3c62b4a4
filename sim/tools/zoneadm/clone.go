package zoneadm

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/tools/zonecfg"
	"github.com/sledctl/sledctl/sim/world"
)

// This file clones a zone (clone_func): by the brand's hook if it has one, which
// then decides alone.

type cloneOptions struct {
	source string
	help   bool
}

// parseClone reads zoneadm's own options, of which -m and -s are not simulated; those
// that it does not know may be the brand's.
func (z *zoneadm) parseClone(args []string) (o cloneOptions, ok bool) {
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		if strings.ContainsAny(args[0], "ms") {
			panic(world.Unsimulated{What: "clone " + args[0]})
		}
		o.help = o.help || strings.Contains(args[0], "?")
		args = args[1:]
	}
	if len(args) != 1 {
		return o, false
	}
	o.source = args[0]
	return o, true
}

func (z *zoneadm) clone(args []string) cli.Reply {
	o, ok := z.parseClone(args)
	if !ok {
		return z.subUsage("clone")
	}
	if o.help {
		z.printSubUsage("clone")
		return z.reply(0)
	}
	if !z.sane(zoneCheck{command: "clone", exclusive: true}) || !z.verify("clone") || !z.saneSource(o.source) {
		return z.reply(1)
	}
	return z.locked(z.reply(0), func(z *zoneadm) cli.Reply {
		if z.tx.FindZone(o.source) == nil {
			z.errf("zoneadm: %s: could not get zone path: %s", o.source, zonecfg.NoZone)
			return z.reply(1)
		}
		if !z.setState(world.ZoneIncomplete) {
			return z.reply(1)
		}
		if z.brand.clone != nil {
			return z.hooked(z.cloning(args), z.brand.clone, z.brand.cloned, args, z.cloneMounted)
		}
		panic(world.Unsimulated{What: "clone of a zone of brand " + z.zone.Config.Brand})
	})
}

// cloning is how long the hook works on datasets.
func (z *zoneadm) cloning(args []string) time.Duration {
	all := z.tx.Latency(world.StepClone)
	if _, works := z.brand.unconfigures(args); works {
		all -= z.tx.Latency(world.StepUnconfigure)
	}
	return all
}

// cloneMounted goes on when the hook has done its work in the zone that it has
// mounted. It does that, and unmounts the zone, also if zoneadm is killed meanwhile.
func (*zoneadm) cloneMounted(z *zoneadm, code int) cli.Reply {
	if code != hookOK || z.zone.Kernel == nil {
		return z.cloneEnd(z, code)
	}
	id := mountedID(z.zone)
	works := func(tx *world.Tx) bool { return tx.Scheduled(eventUnconfigure, z.name, id) }
	so := z.reply(0)
	so.Next = &cli.Next{At: world.ZoneMounted, Until: func(tx *world.Tx) bool { return !works(tx) }, Do: func(tx *world.Tx) cli.Reply {
		next := z.at(tx)
		if next.zone == nil {
			return next.reply(1)
		}
		return next.cloneEnd(next, hookOK)
	}}
	return so
}

func (*zoneadm) cloneEnd(z *zoneadm, code int) cli.Reply {
	if code == hookUsage {
		z.printSubUsage("clone")
	}
	if code != hookOK || !z.setState(world.ZoneInstalled) {
		return z.reply(1)
	}
	return z.reply(0)
}

// saneSource checks the zone that is cloned.
func (z *zoneadm) saneSource(name string) bool {
	source := z.tx.FindZone(name)
	switch {
	case name == world.GlobalZone:
		z.say("clone operation is invalid for the global zone.")
	case strings.HasPrefix(name, "SUNW"):
		z.say("clone operation is invalid for zones starting with SUNW.")
	case source == nil:
		z.errf("zoneadm: %s: could not get state: %s", name, zonecfg.NoZone)
	case source.Kernel != nil:
		z.say("clone operation is invalid for %s zones.", source.Kernel.State)
	case source.Current() != world.ZoneInstalled:
		z.errf("zoneadm: zone %s is %s; installed is required.", name, source.Current())
	case source.Config.Brand != z.zone.Config.Brand:
		z.errf("zoneadm: Zones '%s' and '%s' have different brand types.", name, z.name)
	default:
		z.warnShared(source)
		return true
	}
	return false
}

// warnShared warns of what both configurations have.
func (z *zoneadm) warnShared(source *world.Zone) {
	both := func(kind string, same func(mine, theirs *world.Resource) bool, warn func(mine, theirs *world.Resource)) {
		for _, mine := range z.zone.Config.All(kind) {
			for _, theirs := range source.Config.All(kind) {
				if same(mine, theirs) {
					warn(mine, theirs)
					break
				}
			}
		}
	}
	equal := func(property string) func(a, b *world.Resource) bool {
		return func(a, b *world.Resource) bool { return a.Get(property) == b.Get(property) }
	}
	both("fs", equal("special"), z.warnFilesystem)
	both("net", func(a, b *world.Resource) bool {
		x, _, _ := strings.Cut(a.Get("address"), "/")
		y, _, _ := strings.Cut(b.Get("address"), "/")
		return y != "" && x == y
	}, func(mine, _ *world.Resource) {
		z.errf("WARNING: network address '%s' is configured in both zones.", mine.Get("address"))
	})
	both("device", func(a, b *world.Resource) bool {
		x, y := a.Get("match"), b.Get("match")
		return matches(x, y) || matches(y, x)
	}, func(mine, _ *world.Resource) {
		z.errf("WARNING: device '%s' is configured in both zones.", mine.Get("match"))
	})
	both("dataset", equal("name"), func(mine, _ *world.Resource) {
		z.errf("zoneadm: zone '%s': WARNING: dataset '%s' is configured in both zones.", source.Name, mine.Get("name"))
	})
}

func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}

// warnFilesystem warns of a loopback mount only if either zone may write.
func (z *zoneadm) warnFilesystem(mine, theirs *world.Resource) {
	if mine.Get("type") != "lofs" {
		z.errf("WARNING: %s file system on '%s' is configured in both zones.", mine.Get("type"), mine.Get("special"))
		return
	}
	for _, r := range []*world.Resource{mine, theirs} {
		if options := r.Values("options"); len(options) == 0 || slices.Contains(options, "rw") {
			z.errf("WARNING: read-write lofs file system on '%s' is configured in both zones.", mine.Get("special"))
			return
		}
	}
}
