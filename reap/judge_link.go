package reap

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/sled"
	"github.com/sledctl/sledctl/vnic"
	"github.com/sledctl/sledctl/zone"
)

func (k known) vnic(l vnic.Link, f Findings) (Object, bool) {
	o := Object{Identity: l.MAC}.as(KindVNIC, l.Name)
	own, recorded := k.vnics[l.Name]
	verb, died := k.unfinished(own.life, f)
	hold, held := k.held[o.key()]
	work, working := k.busy[o.key()]
	half, begun := k.dead[o.key()]
	begun = begun && !recorded && half.identity != "" && half.identity == l.MAC
	former := k.net.FormerVNIC(l.Name, l.MAC)
	if l.Name == k.net.GZVNIC && !working {
		o.Verdict, o.Reason, o.firm = InUse, "the global zone's own", true
		f.ours[o.key()] = true
		return o, true
	}
	if !recorded && !held && !working && !begun && !former {
		claim := k.nameOf(l, f)
		o.Verdict, o.Reason = Unknown, claim.Doubt
		if !claim.Ours() {
			return o, claim.Evidence == sled.Alike
		}
	}
	z, zoned := f.inv.Zone(l.Zone)
	wired := f.nets[l.Name]
	died = died && z.State != zone.Running
	meant := own.vnic.MAC == l.MAC && own.vnic.Over == l.Over
	switch {
	case working:
		o.Verdict, o.Reason, o.firm = InProgress, work.String(), true
	case recorded && died && meant:
		o.Verdict, o.Reason = Orphan, "left by "+verb+" of instance "+own.Name+", which did not end"
	case recorded && meant:
		o.Verdict, o.Reason = InUse, "instance "+own.Name
	case recorded: // the record is of another
		o.Verdict, o.Reason = Unknown, "has the name of a VNIC of instance "+own.Name+", but another MAC or link below"
	case held && !hold.Is(l):
		o.Verdict, o.Reason = Unknown, "has the name of a VNIC that is held, but another MAC or link below"
	case zoned && f.goes["zone "+l.Zone]:
		o.Verdict, o.Reason = Orphan, "zone "+l.Zone+" has it, and goes"
	case zoned:
		o.Verdict, o.Reason = InUse, "zone "+l.Zone+" has it"
	case wired != "" && !f.goes["zone "+wired]:
		o.Verdict, o.Reason = InUse, "zone "+wired+" is configured with it"
	case held && k.now.Before(hold.Until):
		o.Verdict, o.Reason = Held, "until "+hold.Until.UTC().Format(time.RFC3339)
	case held:
		o.Verdict, o.Reason = Orphan, "was held until "+hold.Until.UTC().Format(time.RFC3339)+", and no instance took it"
	case begun:
		o.Verdict, o.Reason = Orphan, "left by "+half.verb+", which did not end"
	case former:
		o.Verdict, o.Reason = Orphan, "was the global zone's own, before the network was configured otherwise"
	case l.Zone != "":
		o.Verdict, o.Reason = Orphan, "is on loan to zone "+l.Zone+", which is gone"
	default:
		o.Verdict, o.Reason = Orphan, "no instance needs it"
	}
	switch {
	case recorded && meant && own.Protected && o.Verdict == InUse:
		o.Reason, o.firm = o.Reason+", which is protected", true
	case zoned && !f.goes["zone "+l.Zone], !recorded && wired != "" && !f.goes["zone "+wired]:
		o.firm = true // a zone that stays keeps its links
	}
	f.ours[o.key()] = o.Verdict != Unknown
	return o, true
}

// nameOf says what the name of a VNIC is worth that nothing names: less, if a zone
// of somebody else's has it, or will.
func (k known) nameOf(l vnic.Link, f Findings) sled.Claim {
	claim := k.names.WhoseVNIC(sled.VNIC{Name: l.Name, Over: l.Over, Addresses: f.inv.AddressesOn(l.Name)}, slices.Collect(maps.Keys(k.under)))
	if _, err := f.inv.Addresses(); err != nil && claim.Ours() {
		return sled.Claim{Evidence: sled.Alike, Doubt: "no record names it, and whether it has addresses cannot be seen"}
	}
	for _, name := range []string{l.Zone, f.nets[l.Name]} {
		if _, there := f.inv.Zone(name); there && claim.Ours() && !f.ours["zone "+name] {
			return sled.Claim{Evidence: sled.Alike, Doubt: "no record names it, and zone " + name + " has it, which is not sledctl's"}
		}
	}
	return claim
}

// link judges what is no VNIC. Only etherstubs can be ours.
func (k known) link(l vnic.Link, f Findings) (Object, bool) {
	o := Object{}.as(KindEtherstub, l.Name)
	if l.Class != "etherstub" {
		return o, false
	}
	work, working := k.busy[o.key()]
	half, begun := k.dead[o.key()]
	var above []string
	for _, name := range f.over[l.Name] {
		if f.goes["vnic "+name] {
			f.first[o.key()] = append(f.first[o.key()], "vnic "+name)
		} else {
			above = append(above, name)
		}
	}
	switch {
	case working:
		o.Verdict, o.Reason, o.firm = InProgress, work.String(), true
	case l.Name == k.net.Etherstub:
		o.Verdict, o.Reason, o.firm = InUse, "control VNICs lie over it", true
	case !begun && !k.net.FormerEtherstub(l.Name):
		return o, false
	case len(above) > 0:
		o.Verdict, o.Reason, o.firm = InUse, strings.Join(above, ", ")+" over it", true
	case begun:
		o.Verdict, o.Reason = Orphan, "left by "+half.verb+", which did not end"
	default:
		o.Verdict, o.Reason = Orphan, "control VNICs lay over it, before the network was configured otherwise"
	}
	return o, true
}
