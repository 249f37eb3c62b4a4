package instance

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/vnic"
	"github.com/sledctl/sledctl/zone"
)

// What other people and tools have changed of an instance stands in its
// status, also where its VM runs on regardless: a zone's configuration, for
// one, is read when the zone boots (zonecfg(8)). To ensure it is another
// matter: it rebuilds what is broken, and leaves alone what runs.

// driftOf lists what is no longer as it was made, one clause each: what the
// inventory knows of, and whether the zonepath's dataset is there at all.
func driftOf(b layout.Blueprint, files host.Files, r record.Record, inv *inventory.Inventory) []string {
	all := driftIn(b, r, inv)
	z, there := inv.Zone(r.Incarnation.Zone)
	if !there || z.State == zone.Running || inv.Know(inventory.Configs) != nil {
		return all
	}
	if _, err := files.Stat(r.Incarnation.Zonepath); errors.Is(err, fs.ErrNotExist) {
		all = append(all, "its dataset "+r.Incarnation.Dataset+" is gone")
	}
	return all
}

// lostPools are the pools that do not answer, with what is known of why.
func (s Settings) lostPools(view ledger.View, inv *inventory.Inventory) map[string]string {
	pools, err := inv.Pools()
	if err != nil {
		return nil
	}
	lost := map[string]string{}
	for _, p := range pools {
		if p.Answers() {
			continue
		}
		lost[p.Name] = p.Health
		if s.Disk == nil {
			continue
		}
		disk := s.Disk(view, p.Name)
		for _, d := range p.Devices {
			if disk != "" && (d.State == "UNAVAIL" || d.State == "REMOVED") { // it cannot be opened
				lost[p.Name] = p.Health + ": disk " + disk + " is absent"
			}
		}
	}
	return lost
}

// silentPools reports the pools that do not answer and that an incarnation has its zone or
// a disk on: its VM may run, and cannot read or write.
func silentPools(r record.Record, lost map[string]string) []string {
	var all []string
	of, _, _ := strings.Cut(r.Incarnation.Dataset, "/")
	if why := lost[of]; why != "" {
		all = append(all, "its pool "+of+" is "+why)
	}
	for _, d := range r.Spec.Disks {
		volume, _ := d.Volume()
		pool, _, _ := strings.Cut(volume, "/")
		if why := lost[pool]; why != "" && pool != of {
			all = append(all, "the pool "+pool+" of its disk "+d.Path+" is "+why)
		}
	}
	return all
}

// driftIn is the drift that an inventory shows. A part that was not looked at
// shows none.
func driftIn(b layout.Blueprint, r record.Record, inv *inventory.Inventory) []string {
	var all []string
	_, zoned := inv.Zone(r.Incarnation.Zone)
	if inv.Know(inventory.Links) == nil {
		for _, v := range r.Incarnation.VNICs() {
			l, there := inv.Link(v.Name)
			switch {
			case !there:
				all = append(all, "its "+v.Noun()+" "+v.Name+" is gone")
			case v.Port && inv.Know(inventory.Ports) != nil: // its MAC is not known
			case !v.Is(l):
				all = append(all, "its "+v.Noun()+" "+v.Name+" is not the one that was made for it")
			}
		}
	}
	if inv.Know(inventory.Configs) == nil && zoned && !r.Incarnation.Foreign {
		config, _ := inv.Config(r.Incarnation.Zone)
		var properties []string
		for _, d := range zone.Compare(layout.ZoneConfig(b, r), config) {
			properties = append(properties, d.Property)
		}
		if len(properties) > 0 {
			all = append(all, "its zone's configuration was changed: "+strings.Join(slices.Compact(properties), ", "))
		}
	}
	return all
}

// LookLimits reads what the guest NICs of a running zone are held to. What cannot be read
// counts as no limit, and is set.
func LookLimits(ctx context.Context, h host.Host, incarnation record.Incarnation) map[string]vnic.Limits {
	found := map[string]vnic.Limits{}
	for _, v := range incarnation.Guests {
		if v.Port {
			continue
		}
		if limits, err := vnic.LimitsOf(ctx, h, v.Name); err == nil {
			found[v.Name] = limits
		}
	}
	return found
}

func isHeld(r record.Record, v record.VNIC, limits map[string]vnic.Limits) bool {
	found, read := limits[v.Name]
	return v.Port || read && found.Differs(layout.LimitsOf(r, v)) == ""
}

func allHeld(r record.Record, limits map[string]vnic.Limits) bool {
	return !slices.ContainsFunc(r.Incarnation.Guests, func(v record.VNIC) bool { return !isHeld(r, v, limits) })
}

// isCapped reports whether the configuration of the zone has the record's cap. That of a zone
// which sledctl did not make is not its own.
func isCapped(files host.Files, r record.Record) bool {
	if r.Incarnation.Foreign {
		return true
	}
	config, err := zone.ReadConfig(files, r.Incarnation.Zone)
	return err == nil && config.CPUCap == int(r.Spec.CPUCap)
}
