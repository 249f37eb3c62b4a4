package instance

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/smf"
	"github.com/sledctl/sledctl/propolis/packaging"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/zone"
)

// packing is what follows for an instance from how Propolis comes into its
// zone. The planner reads these values; nothing else asks which way that is.
type packing struct {
	brand  string    // of the zone; empty: that of the base
	images []string  // the zone is installed from these; none: it is cloned from a base
	mounts []zone.FS // of Propolis' own files
	mtu    int       // of the control VNIC; 0: what the link gives

	service    string // FMRI under which Propolis runs
	properties func(record.Record) []smf.ProfileProperty
	// byItself: the service starts when the zone boots, and makes the control
	// interface with its address, which it calls object.
	byItself bool
	object   string
}

// packagingFor is that of a kind.
func packagingFor(b blueprint, kind packaging.Kind) packing {
	if kind == packaging.Image {
		return packing{
			brand: packaging.Brand, images: b.Propolis.Packaging.Images, mtu: packaging.MTU,
			service: packaging.Service, properties: func(r record.Record) []smf.ProfileProperty { return imageProperties(b, r) },
			byItself: true, object: packaging.AddressObject,
		}
	}
	directory := b.Propolis.Packaging.Directory
	return packing{
		mounts: []zone.FS{{Dir: directory, Special: directory, Type: "lofs", Options: []string{"ro"}}}, mtu: b.MTU,
		service: b.Propolis.FMRI, properties: func(r record.Record) []smf.ProfileProperty { return lofsProperties(b, r) },
	}
}

// packagingOf is that with which a run was made: the brand of its zone tells.
func packagingOf(b blueprint, run record.Run) packing {
	if run.Brand == packaging.Brand {
		return packagingFor(b, packaging.Image)
	}
	return packagingFor(b, packaging.Lofs)
}

// suits refuses what cannot be brought up this way.
func (k packing) suits(s Settings, inv *inventory.Inventory, a record.Address) error {
	if link, there := inv.Link(s.ControlLink); there && link.MTU != 0 && k.mtu > link.MTU {
		return &NarrowLinkError{Link: link.Name, Is: link.MTU, Needed: k.mtu}
	}
	if !k.byItself {
		return nil
	}
	if s.MTU != 0 && s.MTU != k.mtu {
		return &record.InputError{
			Field: "network.mtu", Value: strconv.Itoa(s.MTU),
			Want: fmt.Sprintf("%d or 0: the service in the zone image sets it", k.mtu),
		}
	}
	if a.Mode != record.Static || !a.Prefix.Addr().Is6() || a.Prefix.Bits() != packaging.PrefixLength || !gatewayOf(s.blueprint(), a).IsValid() {
		want := fmt.Sprintf(
			"an IPv6 address, e.g. fd00::5/%d, with a gateway, which the service in the zone image wants "+
				"(network.underlay and network.gateway give both)",
			packaging.PrefixLength,
		)
		return &record.InputError{Field: "address", Value: a.String(), Want: want}
	}
	return nil
}

// linkHasMTU reports whether the link under the control VNIC gives it the MTU that it
// must have: a VNIC that is told nothing has that of the link below.
func linkHasMTU(b blueprint, run record.Run, inv *inventory.Inventory) bool {
	link, there := inv.Link(run.Control.Over)
	return there && link.MTU != 0 && link.MTU == packagingOf(b, run).mtu
}

// NarrowLinkError is a control link over which VNICs cannot have the MTU that
// they must have.
type NarrowLinkError struct {
	Link       string
	Is, Needed int
}

// Error shows both.
func (e *NarrowLinkError) Error() string {
	return fmt.Sprintf("the control link %s has an MTU of %d, and control VNICs need %d", e.Link, e.Is, e.Needed)
}

func (*NarrowLinkError) Kind() fault.Kind { return fault.Refused }

// Hint says what would be right.
func (e *NarrowLinkError) Hint() string {
	return "to give the sled its own control network, set network.etherstub; or run: " +
		"dladm set-linkprop -p mtu=" + strconv.Itoa(e.Needed) + " " + e.Link
}

// serviceFMRI is the FMRI under which the Propolis of the record's run is kept.
func serviceFMRI(b blueprint, r record.Record) string {
	return cmp.Or(r.Run.Service, packagingOf(b, *r.Run).service)
}

// addressObject is the control address as ipadm(8) names it.
func addressObject(b blueprint, r record.Record) string {
	name := packagingOf(b, *r.Run).object
	switch {
	case r.Run.Object != "":
		return r.Run.Object
	case name != "":
	case r.Spec.Address.Mode == record.Static:
		name = "control"
	default:
		name = r.Spec.Address.Mode
	}
	return r.Run.Control.Name + "/" + name
}

// profileOf is what the zone's own service reads when it starts Propolis. It is
// in place before the zone boots, so that nothing need be sent in afterwards.
func profileOf(b blueprint, r record.Record) smf.Profile {
	k := packagingOf(b, *r.Run)
	service, instance := smf.SplitFMRI(k.service)
	return smf.Profile{Name: "sledctl", Services: []smf.ProfileService{{
		Name: service, Instance: instance, Enabled: k.byItself,
		Groups: []smf.ProfileGroup{{Name: "config", Type: "application", Properties: k.properties(r)}},
	}}}
}

// lofsProperties are those of the service that a base zone carries.
func lofsProperties(b blueprint, r record.Record) []smf.ProfileProperty {
	return []smf.ProfileProperty{
		{Name: "address_object", Type: "astring", Values: []string{addressObject(b, r)}},
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
func imageProperties(b blueprint, r record.Record) []smf.ProfileProperty {
	text := func(name, value string) smf.ProfileProperty {
		return smf.ProfileProperty{Name: name, Type: "astring", Values: []string{value}}
	}
	gateway := ""
	if g := gatewayOf(b, r.Spec.Address); g.IsValid() {
		gateway = g.String()
	}
	return []smf.ProfileProperty{
		text("datalink", r.Run.Control.Name),
		text("gateway", gateway),
		text("listen_addr", r.Spec.Address.Prefix.Addr().String()),
		text("listen_port", strconv.Itoa(int(b.Propolis.Port))),
		text("metric_addr", "disable"),
	}
}
