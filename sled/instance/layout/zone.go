package layout

import (
	"net/netip"
	"slices"

	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/zone"
)

// ZoneConfig is the zone that Propolis runs in: an exclusive stack, the VNICs,
// bhyve's devices, where Propolis' files are, and each disk as it is.
func ZoneConfig(b Blueprint, r record.Record) zone.Config {
	incarnation := *r.Incarnation
	c := zone.Config{
		Brand: incarnation.Brand, Zonepath: incarnation.Zonepath, IPType: "exclusive",
		Attrs: []zone.Attr{
			{Name: naming.AttrInstance, Type: "string", Value: r.ID},
			{Name: NameAttr, Type: "string", Value: r.Name},
			{Name: AddressAttr, Type: "string", Value: r.Spec.Address.String()},
		},
		FS:      slices.Clone(PackagingOf(b, incarnation).mounts),
		Devices: []string{"/dev/vmm/*", "/dev/vmmctl", "/dev/viona"},
		CPUCap:  int(r.Spec.CPUCap),
	}
	for _, v := range incarnation.VNICs() {
		c.Nets = append(c.Nets, zone.Net{Physical: v.Name})
	}
	for _, d := range r.Spec.Disks {
		if _, volume := d.Volume(); volume {
			c.Devices = append(c.Devices, d.Path)
			continue
		}
		fs := zone.FS{Dir: d.Path, Special: d.Path, Type: "lofs"}
		if d.ReadOnly {
			fs.Options = []string{"ro"}
		}
		c.FS = append(c.FS, fs)
	}
	return c
}

// The attributes that a zone has next to its mark: the instance's name,
// and how its address was asked for. They tell an operator who reads the zone's
// configuration, and Adopt where the ledger was lost. All else of an instance
// can be seen on it.
const (
	NameAttr    = "sledctl-name"
	AddressAttr = "sledctl-address"
)

// ZonepathMode is what zoneadm(8) demands of a zonepath.
const ZonepathMode = 0o700

// GatewayOf is the default route of a control address: the address' own, else
// the underlay's if it lies within.
func GatewayOf(b Blueprint, a record.Address) netip.Addr {
	if a.Gateway.IsValid() || a.Mode != record.Static {
		return a.Gateway
	}
	if b.Gateway.IsValid() && a.Prefix.Contains(b.Gateway) {
		return b.Gateway
	}
	return netip.Addr{}
}

// AttrOf is the value of an attr of a zone; empty: the zone has none of that name.
func AttrOf(c zone.Config, name string) string {
	for _, a := range slices.Backward(c.Attrs) {
		if a.Name == name {
			return a.Value
		}
	}
	return ""
}
