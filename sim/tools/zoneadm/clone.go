package zoneadm

import (
	"path"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/tools/zonecfg"
	"github.com/sledctl/sledctl/sim/world"
)

// This file clones a zone (clone_func), by the brand's hook, which decides alone.
// What zoneadm does for brands without a hook (clone_zfs in zfs.c) is not simulated,
// and neither are options.

func (z *zoneadm) clone(args []string) cli.Reply {
	cli.Simulated(len(args) == 1 && !strings.HasPrefix(args[0], "-"))
	source := args[0]
	if !z.sane("clone") || !z.verify("clone") || !z.saneSource(source) {
		return z.reply(1)
	}
	return z.locked(func(z *zoneadm) cli.Reply {
		cli.Simulated(z.tx.FindZone(source) != nil)
		z.setState(world.ZoneIncomplete)
		takes := z.tx.Latency(world.StepClone) - z.tx.Latency(world.StepUnconfigure) // for the datasets
		return z.hooked(takes, z.brand.clone, z.brand.cloned, args, cloneMounted)
	})
}

// cloneMounted goes on when the hook has done its work in the zone that it has
// mounted. It does that, and unmounts the zone, also if zoneadm is killed meanwhile.
func cloneMounted(z *zoneadm, code int) cli.Reply {
	if code != hookOK || z.zone.Kernel == nil {
		return cloneEnd(z, code)
	}
	id := mountedID(z.zone)
	done := func(tx *world.Tx) bool { return !tx.Scheduled(eventUnconfigure, z.name, id) }
	return z.next(cli.Next{At: world.ZoneMounted, Until: done}, func(z *zoneadm) cli.Reply { return cloneEnd(z, hookOK) })
}

func cloneEnd(z *zoneadm, code int) cli.Reply {
	if code != hookOK {
		return z.reply(1)
	}
	z.setState(world.ZoneInstalled)
	return z.reply(0)
}

// saneSource checks the zone that is cloned.
func (z *zoneadm) saneSource(name string) bool {
	source := z.tx.FindZone(name)
	cli.Simulated(name != world.GlobalZone && !strings.HasPrefix(name, "SUNW"))
	switch {
	case source == nil:
		z.errf("zoneadm: %s: could not get state: %s", name, zonecfg.NoZone)
	case source.Kernel != nil:
		z.say("clone operation is invalid for %s zones.", source.Kernel.State)
	case source.Current() != world.ZoneInstalled:
		z.errf("zoneadm: zone %s is %s; installed is required.", name, source.Current())
	case source.Config.Brand != z.zone.Config.Brand:
		z.errf("zoneadm: Zones '%s' and '%s' have different brand types.", name, z.name)
	default:
		z.refuseShared(source)
		return true
	}
	return false
}

// refuseShared stands for the warnings of what both configurations have (warn_fs_match
// and its like).
func (z *zoneadm) refuseShared(source *world.Zone) {
	for kind, property := range map[string]string{"fs": "special", "device": "match", "dataset": "name"} {
		for _, mine := range z.zone.Config.All(kind) {
			for _, theirs := range source.Config.All(kind) {
				x, y := mine.Get(property), theirs.Get(property)
				cli.Simulated(x != y && !matches(x, y) && !matches(y, x))
			}
		}
	}
}

func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}
