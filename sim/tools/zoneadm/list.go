package zoneadm

import (
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/tools/zonecfg"
	"github.com/sledctl/sledctl/sim/world"
)

// This file is zoneadm list (list_func, zone_print_list, zone_print). Zones that
// the kernel knows come first, the global one before all, then the others in
// the order of the index. On OmniOS and SmartOS a parsable line has one more
// field than in the gate, the debug id
// (github.com/omniosorg/illumos-omnios, usr/src/cmd/zoneadm/zoneadm.c).

func (z *zoneadm) list(args []string) cli.Reply {
	options, operands := plain(args, "cipv")
	given := map[byte]bool{}
	for _, o := range options {
		given[o.Letter] = true
	}
	cli.Simulated(len(operands) == 0 && z.call.Zone == world.GlobalZone && !(given['p'] && given['v']) && !((given['c'] || given['i']) && z.named))
	if given['v'] {
		z.outf(listTable, "ID", "NAME", "STATUS", "PATH", "BRAND", "IP")
	}
	if z.named {
		return z.listOne(given)
	}
	z.printGlobal(given)
	lost := z.lostZone()
	add := func(other *world.Zone) {
		if other.Name == lost {
			z.errf("zoneadm: %s: could not get state: %s", lost, zonecfg.NoZone)
			return
		}
		z.print(other, given)
	}
	for _, other := range z.tx.KernelZones() {
		add(other)
	}
	for _, other := range z.tx.State.Zones {
		if other.Kernel == nil && (given['c'] || given['i'] && other.State == world.ZoneInstalled) {
			add(other)
		}
	}
	return z.reply(0)
}

// listOne lists the zone of -z, whatever its state, and then asks its brand.
func (z *zoneadm) listOne(given map[byte]bool) cli.Reply {
	cli.Simulated(z.zone != nil)
	z.print(z.zone, given)
	z.brandVerify("list") // which no brand here refuses
	return z.reply(0)
}

// lostZone is a zone that goes away while the listing is made.
func (z *zoneadm) lostZone() string {
	if !z.tx.Write {
		return ""
	}
	if f := z.tx.TakeFault(cli.Words(z.call), world.FaultListRace); f != nil {
		return f.Text
	}
	return ""
}

func (z *zoneadm) print(other *world.Zone, given map[byte]bool) {
	id, ip, c := "-", "shared", other.Config
	if k := other.Kernel; k != nil {
		id, c = fmt.Sprint(k.ID), k.Config
	}
	if c.IPType == "exclusive" {
		ip = "excl"
	}
	c = other.Config
	z.printLine(given, c.Globals["debugid"], id, other.Name, other.Current(), c.Zonepath, other.UUID, c.Brand, ip)
}

func (z *zoneadm) printGlobal(given map[byte]bool) {
	brand := "ipkg"
	if z.tx.State.Mode == world.SmartOS {
		brand = "liveimg"
	}
	z.printLine(given, "0", "0", world.GlobalZone, world.ZoneRunning, "/", "", brand, "shared")
}

const listTable = "%4s %-16s %-10s %-30s %-8s %-6s"

func (z *zoneadm) printLine(given map[byte]bool, debug string, fields ...string) {
	switch id, name, state, path, brand, ip := fields[0], fields[1], fields[2], fields[3], fields[5], fields[6]; {
	case given['v']:
		z.outf(listTable, id, name, state, path, brand, ip)
	case given['p']:
		fields[3] = strings.ReplaceAll(path, ":", `\:`)
		if z.tx.State.Mode != world.Helios {
			fields = append(fields, debug)
		}
		z.outf("%s", strings.Join(fields, ":"))
	default:
		z.outf("%s", name)
	}
}
