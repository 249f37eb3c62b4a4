package zoneadm

import (
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/tools/zonecfg"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zones"
)

// This file is zoneadm list (list_func, zone_print_list, zone_print). Zones that
// the kernel knows come first, the global one before all, then the others in
// the order of the index. On OmniOS and SmartOS a parsable line has one more
// field than in the gate, the debug id
// (github.com/omniosorg/illumos-omnios, usr/src/cmd/zoneadm/zoneadm.c).

// zoneLine is what list knows of a zone.
type zoneLine struct {
	id, name, state, path, uuid, brand, ip, debug string
}

type listOptions struct{ all, installed, notGlobal, parsable, verbose bool }

func (z *zoneadm) list(args []string) cli.Reply {
	spec := "?cinpv"
	if z.named {
		spec = "?pv"
	}
	options, operands := cli.Getopt(args, spec, nil)
	if r := z.asked("list", args, options); r != nil {
		return *r
	}
	if len(operands) > 0 && z.named {
		return z.subUsage("list")
	}
	var o listOptions
	for _, given := range options {
		switch given.Letter {
		case 'c':
			o.all = true
		case 'i':
			o.installed = true
		case 'n':
			o.notGlobal = true
		case 'p':
			o.parsable = true
		case 'v':
			o.verbose = true
		}
	}
	if o.parsable && o.verbose {
		return z.refuse("list -p and -v are mutually exclusive.")
	}
	switch {
	case z.call.Zone != world.GlobalZone:
		z.printLines([]zoneLine{z.insideLine()}, o)
		return z.reply(0)
	case z.named:
		return z.listOne(o)
	}
	z.printLines(z.lines(o), o)
	return z.reply(0)
}

// listOne lists the zone of -z, whatever its state, and then asks its brand.
func (z *zoneadm) listOne(o listOptions) cli.Reply {
	if z.name == world.GlobalZone {
		z.printLines([]zoneLine{z.globalLine()}, o)
		return z.reply(0)
	}
	z.printLines([]zoneLine{z.line(z.zone)}, o)
	if !z.brandVerify("list") {
		return z.reply(1)
	}
	return z.reply(0)
}

// lines are the zones that a listing shows.
func (z *zoneadm) lines(o listOptions) []zoneLine {
	var found []zoneLine
	if !o.notGlobal {
		found = append(found, z.globalLine())
	}
	lost := z.lostZone()
	add := func(other *world.Zone) {
		if other.Name == lost {
			z.errf("zoneadm: %s: could not get state: %s", lost, zonecfg.NoZone)
			return
		}
		found = append(found, z.line(other))
	}
	for _, other := range z.tx.KernelZones() {
		add(other)
	}
	least := world.ZoneRunning
	switch {
	case o.all:
		least = world.ZoneConfigured
	case o.installed:
		least = world.ZoneInstalled
	}
	for _, other := range z.tx.State.Zones {
		if least != world.ZoneRunning && other.Kernel == nil && zones.ZoneRank(other.Current()) >= zones.ZoneRank(least) {
			add(other)
		}
	}
	return found
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

func (z *zoneadm) line(other *world.Zone) zoneLine {
	c := other.Config
	l := zoneLine{id: "-", name: other.Name, state: other.Current(), path: c.Zonepath, uuid: other.UUID, brand: c.Brand,
		ip: "shared", debug: c.Globals["debugid"]}
	if k := other.Kernel; k != nil {
		l.id = fmt.Sprint(k.ID)
		c = k.Config
	}
	if c.IPType == "exclusive" {
		l.ip = "excl"
	}
	return l
}

func (z *zoneadm) globalLine() zoneLine {
	l := zoneLine{id: "0", name: world.GlobalZone, state: world.ZoneRunning, path: "/", brand: "ipkg", ip: "shared", debug: "0"}
	if z.tx.State.Mode == world.SmartOS {
		l.brand = "liveimg"
	}
	return l
}

// insideLine is all that a zone sees: itself.
func (z *zoneadm) insideLine() zoneLine {
	other := z.tx.FindZone(z.call.Zone)
	if other == nil {
		return zoneLine{id: "-", name: z.call.Zone, state: world.ZoneRunning, path: "/"}
	}
	l := z.line(other)
	l.path, l.state, l.uuid = "/", world.ZoneRunning, ""
	return l
}

func (z *zoneadm) printLines(lines []zoneLine, o listOptions) {
	const table = "%4s %-16s %-10s %-30s %-8s %-6s"
	if o.verbose && len(lines) > 0 {
		z.outf(table, "ID", "NAME", "STATUS", "PATH", "BRAND", "IP")
	}
	for _, l := range lines {
		switch {
		case o.verbose:
			z.outf(table, l.id, l.name, l.state, l.path, l.brand, l.ip)
		case o.parsable:
			fields := []string{l.id, l.name, l.state, strings.ReplaceAll(l.path, ":", `\:`), l.uuid, l.brand, l.ip}
			if z.tx.State.Mode != world.Helios {
				fields = append(fields, l.debug)
			}
			z.outf("%s", strings.Join(fields, ":"))
		default:
			z.outf("%s", l.name)
		}
	}
}
