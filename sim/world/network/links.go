// Package network keeps the datalinks, addresses and routes of a simulated sled,
// as libdladm, libipadm and the kernel do for dladm(8), ipadm(8) and route(8).
package network

import (
	"cmp"
	"iter"
	"slices"

	"github.com/sledctl/sledctl/sim/world"
)

// This file finds datalinks and moves them between zones. A link belongs to
// the global zone; zoneadmd(8) lends it to a zone while that runs. A link on
// loan stays visible in the global zone, which cannot use or delete it
// (usr/src/cmd/dlmgmtd/dlmgmt_door.c, link_is_visible).

// LinkStatus is a status of libdladm, as its text
// (usr/src/lib/libdladm/common/libdladm.c, dladm_status2str).
type LinkStatus string

// The statuses that the simulated links give.
const (
	LinkNotFound       LinkStatus = "object not found"
	LinkExists         LinkStatus = "object already exists"
	LinkBusy           LinkStatus = "link busy"
	LinkBadArg         LinkStatus = "invalid argument"
	LinkBadVal         LinkStatus = "invalid value"
	LinkTempOnly       LinkStatus = "change cannot be persistent"
	LinkMinMaxBW       LinkStatus = "minimum value for maxbw is 1200K"
	LinkDenied         LinkStatus = "permission denied"
	LinkMACInUse       LinkStatus = "MAC address is already in use"
	LinkDefaultTagBusy LinkStatus = "VLAN may not use the default tag" // dladm(8) has words of its own for it
)

// Error is the text.
func (s LinkStatus) Error() string { return string(s) }

// LinksIn lists the links that a zone sees, in the order of their making: all
// of them in the global zone, those lent to it in another.
func LinksIn(tx *world.Tx, zone string) []*world.Link { return slices.Collect(links(tx, zone)) }

func links(tx *world.Tx, zone string) iter.Seq[*world.Link] {
	return func(yield func(*world.Link) bool) {
		for _, l := range tx.State.Links {
			if (zone == world.GlobalZone || l.Zone == zone) && !yield(l) {
				return
			}
		}
	}
}

// LinkIn finds a link by the name that it has in a zone, or nil. A name is
// unique in each zone, not on the sled: in the global zone a link of its own
// hides one of the same name that a zone has.
func LinkIn(tx *world.Tx, zone, name string) *world.Link {
	var lent *world.Link
	for l := range links(tx, zone) {
		switch {
		case l.Name != name:
		case l.Zone == "" || zone != world.GlobalZone:
			return l
		case lent == nil:
			lent = l
		}
	}
	return lent
}

// FindLink is LinkIn the global zone.
func FindLink(tx *world.Tx, name string) *world.Link { return LinkIn(tx, world.GlobalZone, name) }

// Link finds a link that was seen before; nil: it is gone.
func Link(tx *world.Tx, id world.LinkID) *world.Link {
	i := slices.IndexFunc(tx.State.Links, func(l *world.Link) bool { return l.ID() == id })
	if i < 0 {
		return nil
	}
	return tx.State.Links[i]
}

// linkHeld says whether a command of the global zone has the link open. Each such
// opening is a reference of the link (dls_devnet_open in
// usr/src/uts/common/io/dls/dls_mgmt.c).
func linkHeld(tx *world.Tx, l *world.Link) bool { return tx.Held != nil && tx.Held(l) }

// linkOpen says whether anything holds the link open: IP, or a running VM.
func linkOpen(tx *world.Tx, l *world.Link) bool {
	owner := cmp.Or(l.Zone, world.GlobalZone)
	return LinkPlumbed(tx, owner, l.Name) || slices.ContainsFunc(tx.State.Processes, func(p *world.Process) bool {
		return p.VM != nil && p.Zone == owner && slices.Contains(p.VM.Links, l.Name) &&
			world.At(p.VM.Timeline, tx.Now).State != "Destroyed"
	})
}

// LendLink moves a link into a zone that gets ready. A link that belongs to
// another zone is taken from it unless something there holds it open
// (dls_devnet_setzid in usr/src/uts/common/io/dls/dls_mgmt.c). Only who opens it in
// the zone that has it counts (dl_zone_ref, dls_link_setzid in dls_link.c): a
// command of the global zone that looks at it keeps it from going into a zone, and
// from no way back.
func LendLink(tx *world.Tx, zone, name string) error {
	l := FindLink(tx, name)
	switch {
	case l == nil:
		return LinkNotFound
	case l.Zone == zone:
		return nil
	case linkOpen(tx, l) || l.Zone == "" && linkHeld(tx, l):
		return LinkBusy
	case LinkIn(tx, zone, name) != nil:
		return LinkExists
	}
	tx.TouchLink(l)
	l.Zone = zone
	return nil
}

// returnLink gives one link that was lent back to the global zone.
func returnLink(tx *world.Tx, l *world.Link) error {
	switch own := FindLink(tx, l.Name); {
	case l.Zone == "":
		return nil
	case linkOpen(tx, l):
		return LinkBusy
	case own != l && own.Zone == "":
		return LinkExists
	}
	tx.TouchLink(l)
	l.Zone = ""
	return nil
}

// ReturnLinks gives everything that was lent to a zone back to the global
// zone. The names that it returns could not go back, because the global zone has a
// link of that name by now: the zone stays down (illumos 10001,
// github.com/omniosorg/illumos-omnios issue 18).
func ReturnLinks(tx *world.Tx, zone string) []string {
	var stay []string
	ClearProtection(tx, zone)
	for _, l := range LinksIn(tx, zone) {
		if zone == world.GlobalZone {
			break
		}
		if own := FindLink(tx, l.Name); own != nil && own.Zone == "" {
			stay = append(stay, l.Name)
			continue
		}
		tx.TouchLink(l)
		l.Zone = ""
	}
	return stay
}

// RebootNetwork does to links and addresses what a reboot of the host does:
// what was temporary is gone, and loans have ended (usr/src/cmd/dlmgmtd/dlmgmt_db.c,
// ipadm(8) "-t").
func RebootNetwork(tx *world.Tx) {
	tx.State.OPTE = nil
	tx.State.Links = slices.DeleteFunc(tx.State.Links, func(l *world.Link) bool { return l.Temporary })
	for _, l := range tx.State.Links {
		tx.TouchLink(l)
		l.Zone = ""
		for name, value := range l.Saved {
			l.Properties[name] = value
		}
		l.Saved = nil
	}
	for zone := range tx.State.Stacks {
		ClearStack(tx, zone)
	}
	StartStack(tx, world.GlobalZone)
}
