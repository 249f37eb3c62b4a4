package layout

import (
	"cmp"
	"strconv"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/illumos/smf"
	"github.com/sledctl/sledctl/propolis/packaging"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/zone"
)

// Packaging is what follows for an instance from how Propolis comes into its
// zone. The planner reads these values; nothing else asks which way that is.
type Packaging struct {
	Brand  string    // of the zone; empty: that of the base
	Images []string  // the zone is installed from these; none: it is cloned from a base
	mounts []zone.FS // of Propolis' own files
	MTU    int       // of the control VNIC; 0: what the link gives

	Service    string // FMRI under which Propolis runs
	properties func(record.Record) []smf.ProfileProperty
	// byItself: the service starts when the zone boots, and makes the control
	// interface with its address, which it calls object.
	ByItself bool
	object   string
}

// PackagingFor is that of a kind.
func PackagingFor(b Blueprint, kind packaging.Kind) Packaging {
	if kind == packaging.Image {
		return Packaging{
			Brand: packaging.Brand, Images: b.Propolis.Packaging.Images, MTU: packaging.MTU,
			Service: packaging.Service, properties: func(r record.Record) []smf.ProfileProperty { return imageProperties(b, r) },
			ByItself: true, object: packaging.AddressObject,
		}
	}
	directory := b.Propolis.Packaging.Directory
	return Packaging{
		mounts: []zone.FS{{Dir: directory, Special: directory, Type: "lofs", Options: []string{"ro"}}}, MTU: b.MTU,
		Service: b.Propolis.FMRI, properties: func(r record.Record) []smf.ProfileProperty { return lofsProperties(b, r) },
	}
}

// PackagingOf is that with which an incarnation was made: the brand of its zone tells.
func PackagingOf(b Blueprint, incarnation record.Incarnation) Packaging {
	if incarnation.Brand == packaging.Brand {
		return PackagingFor(b, packaging.Image)
	}
	return PackagingFor(b, packaging.Lofs)
}

// LinkHasMTU reports whether the link under the control VNIC gives it the MTU that it
// must have: a VNIC that is told nothing has that of the link below.
func LinkHasMTU(b Blueprint, incarnation record.Incarnation, inv *inventory.Inventory) bool {
	link, there := inv.Link(incarnation.Control.Over)
	return there && link.MTU != 0 && link.MTU == PackagingOf(b, incarnation).MTU
}

// ServiceFMRI is the FMRI under which the Propolis of the record's run is kept.
func ServiceFMRI(b Blueprint, r record.Record) string {
	return cmp.Or(r.Incarnation.Service, PackagingOf(b, *r.Incarnation).Service)
}

// AddressObject is the control address as ipadm(8) names it.
func AddressObject(b Blueprint, r record.Record) string {
	name := PackagingOf(b, *r.Incarnation).object
	switch {
	case r.Incarnation.Object != "":
		return r.Incarnation.Object
	case name != "":
	case r.Spec.Address.Mode == record.Static:
		name = "control"
	default:
		name = r.Spec.Address.Mode
	}
	return r.Incarnation.Control.Name + "/" + name
}

// ProfileOf is what the zone's own service reads when it starts Propolis. It is
// in place before the zone boots, so that nothing need be sent in afterwards.
func ProfileOf(b Blueprint, r record.Record) smf.Profile {
	k := PackagingOf(b, *r.Incarnation)
	service, instance := smf.SplitFMRI(k.Service)
	return smf.Profile{Name: "sledctl", Services: []smf.ProfileService{{
		Name: service, Instance: instance, Enabled: k.ByItself,
		Groups: []smf.ProfileGroup{{Name: "config", Type: "application", Properties: k.properties(r)}},
	}}}
}

// lofsProperties are those of the service that a base zone carries.
func lofsProperties(b Blueprint, r record.Record) []smf.ProfileProperty {
	return []smf.ProfileProperty{
		{Name: "address_object", Type: "astring", Values: []string{AddressObject(b, r)}},
		{Name: "any_address", Type: "boolean", Values: []string{strconv.FormatBool(r.Spec.Address.Mode != record.Static)}},
		{Name: "port", Type: "count", Values: []string{strconv.Itoa(int(b.Propolis.Port))}},
		{Name: "binary", Type: "astring", Values: []string{b.Propolis.Binary}},
		{Name: "bootrom", Type: "astring", Values: []string{b.Propolis.Bootrom}},
		{Name: "library_path", Type: "astring", Values: []string{b.Propolis.LibraryPath}},
	}
}

// imageProperties are those of the service in a zone image. Its default for
// metric_addr is an address that the server does not understand (propolis,
// packaging/smf and bin/propolis-server/src/main.rs).
func imageProperties(b Blueprint, r record.Record) []smf.ProfileProperty {
	text := func(name, value string) smf.ProfileProperty {
		return smf.ProfileProperty{Name: name, Type: "astring", Values: []string{value}}
	}
	gateway := ""
	if g := GatewayOf(b, r.Spec.Address); g.IsValid() {
		gateway = g.String()
	}
	return []smf.ProfileProperty{
		text("datalink", r.Incarnation.Control.Name),
		text("gateway", gateway),
		text("listen_addr", r.Spec.Address.Prefix.Addr().String()),
		text("listen_port", strconv.Itoa(int(b.Propolis.Port))),
		text("metric_addr", "disable"),
	}
}

// MountsAt reports whether Propolis' own files are mounted there.
func (p Packaging) MountsAt(dir string) bool {
	for _, fs := range p.mounts {
		if fs.Dir == dir {
			return true
		}
	}
	return false
}
