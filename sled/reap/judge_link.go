package reap

import (
	"strings"
	"time"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/network"
	"github.com/sledctl/sledctl/vnic"
	"github.com/sledctl/sledctl/zone"
)

// facts are what is known of a VNIC: what the ledger has under its name, and what
// the sled shows.
type facts struct {
	vnic.Link
	own      owner
	recorded bool // as an instance's
	meant    bool // and it is the one that was recorded
	died     bool // and the run that made it has died, before it was complete
	verb     string
	hold     network.Hold
	held     bool
	half     made
	begun    bool // by a run that died, and is not recorded
	former   bool // the global zone's own, before the network was reconfigured
	zoned    bool
	zoneGoes bool
	wired    string // the zone that is configured with it, and stays
}

func (k *known) factsOf(l vnic.Link, f *Findings, key string) facts {
	x := facts{Link: l, former: k.net.FormerVNIC(l.Name, l.MAC)}
	x.own, x.recorded = k.ofLink(l.Name)
	x.hold, x.held = k.held[key]
	own := x.own
	meant := own.vnic.MAC == l.MAC && own.vnic.Over == l.Over && own.vnic.Port == inventory.IsMisc(l)
	x.meant = meant
	x.half, x.begun = k.dead[key]
	x.begun = x.begun && !x.recorded && x.half.identity != "" && x.half.identity == l.MAC
	z, zoned := f.inv.Zone(l.Zone)
	x.zoned, x.zoneGoes = zoned, f.goes["zone "+l.Zone]
	x.verb, x.died = k.unfinished(own.recordedIncarnation, f)
	x.died = x.died && z.State != zone.Running
	if wired := f.nets[l.Name]; wired != "" && !f.goes["zone "+wired] {
		x.wired = wired
	}
	return x
}

// kindOf is what a link is among the objects: a VNIC, or a port of OPTE.
func kindOf(l vnic.Link) string {
	if inventory.IsMisc(l) {
		return KindPort
	}
	return KindVNIC
}

// vnic judges a VNIC or a port.
func (k *known) vnic(l vnic.Link, f *Findings) (Object, bool) {
	o := Object{Identity: l.MAC}.as(kindOf(l), l.Name)
	work, working := k.busy[o.key()]
	if l.Name == k.net.GZVNIC && !working {
		o.Verdict, o.Reason, o.final = InUse, "the global zone's own", true
		return o, true
	}
	x := k.factsOf(l, f, o.key())
	if !working && !x.named() {
		owner := k.nameOf(l, f)
		o.Verdict, o.Reason = Unknown, owner.Doubt
		if !owner.Ours() {
			o.doubted = true
			return o, owner.Evidence == naming.Alike
		}
	}
	switch {
	case working:
		o.Verdict, o.Reason, o.final = InProgress, work.String(), true
	case l.MAC == "":
		o.Verdict, o.Reason = Unknown, "is a link without its port, as opteadm leaves one that is killed; a reboot of the sled removes it"
	case x.recorded:
		o.Verdict, o.Reason = x.ofInstance()
	case x.held && !x.hold.Is(l):
		o.Verdict, o.Reason = Unknown, "has the name of a VNIC that is held, but another MAC or link below"
	case x.zoned || x.wired != "":
		o.Verdict, o.Reason = x.ofZone()
	default:
		o.Verdict, o.Reason = x.ofNone(k.now)
	}
	switch {
	case x.recorded && x.meant && x.own.Protected && o.Verdict == InUse:
		o.Reason, o.final = o.Reason+", which is protected", true
	case x.keptByZone():
		o.final = true
	}
	o.doubted = o.Verdict == Unknown
	return x.own.keeps(o), true
}

// named reports whether something names the VNIC, and not its own name alone.
func (x *facts) named() bool { return x.recorded || x.held || x.begun || x.former }

// keptByZone reports whether a zone has it, or will, that stays.
func (x *facts) keptByZone() bool { return x.zoned && !x.zoneGoes || !x.recorded && x.wired != "" }

// ofInstance judges a VNIC whose name is recorded as an instance's.
func (x *facts) ofInstance() (Verdict, string) {
	switch {
	case !x.meant: // the record is of another
		return Unknown, "has the name of a VNIC of instance " + x.own.Name + ", but another MAC or link below"
	case x.died:
		return Orphan, leftBy(x.verb, x.own.Name)
	}
	return InUse, "instance " + x.own.Name
}

// ofZone judges a VNIC that a zone has, or is configured with.
func (x *facts) ofZone() (Verdict, string) {
	switch {
	case x.zoned && x.zoneGoes:
		return Orphan, "zone " + x.Zone + " has it, and goes"
	case x.zoned:
		return InUse, "zone " + x.Zone + " has it"
	}
	return InUse, "zone " + x.wired + " is configured with it"
}

// ofNone judges a VNIC that neither an instance nor a zone has.
func (x *facts) ofNone(now time.Time) (Verdict, string) {
	switch until := x.hold.Until.UTC(); {
	case x.held && now.Before(until):
		return Held, "until " + until.Format(time.RFC3339)
	case x.held:
		return Orphan, "was held until " + until.Format(time.RFC3339) + ", and no instance took it"
	case x.begun:
		return Orphan, "left by " + x.half.verb + ", which did not end"
	case x.former:
		return Orphan, "was the global zone's own, before the network was reconfigured"
	case x.Zone != "":
		return Orphan, "was in zone " + x.Zone + ", which is gone"
	}
	return Orphan, "no instance needs it"
}

// nameOf says what the name of a VNIC is worth that nothing names: less, if a zone
// of somebody else's has it, or will.
func (k *known) nameOf(l vnic.Link, f *Findings) naming.Owner {
	var under []string
	if k.under[l.Over] || inventory.IsMisc(l) { // a port lies over none
		under = []string{l.Over}
	}
	owner := k.names.OwnerOfVNIC(naming.VNIC{Name: l.Name, Over: l.Over, Addresses: f.inv.AddressesOn(l.Name)}, under)
	if _, err := f.inv.Addresses(); err != nil && owner.Ours() {
		return naming.Owner{Evidence: naming.Alike, Doubt: "no record names it, and whether it has addresses cannot be seen"}
	}
	for _, name := range []string{l.Zone, f.nets[l.Name]} {
		if _, there := f.inv.Zone(name); there && owner.Ours() && !f.ours("zone "+name) {
			return naming.Owner{Evidence: naming.Alike, Doubt: "no record names it, and zone " + name + " has it, which is not sledctl's"}
		}
	}
	return owner
}

// link judges what is no VNIC. Only etherstubs can be ours.
func (k *known) link(l vnic.Link, f *Findings) (Object, bool) {
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
		o.Verdict, o.Reason, o.final = InProgress, work.String(), true
	case l.Name == k.net.Etherstub:
		o.Verdict, o.Reason, o.final = InUse, "control VNICs lie over it", true
	case !begun && !k.net.FormerEtherstub(l.Name):
		return o, false
	case len(above) > 0:
		o.Verdict, o.Reason, o.final = InUse, strings.Join(above, ", ")+" over it", true
	case begun:
		o.Verdict, o.Reason = Orphan, "left by "+half.verb+", which did not end"
	default:
		o.Verdict, o.Reason = Orphan, "control VNICs lay over it, before the network was reconfigured"
	}
	return o, true
}
