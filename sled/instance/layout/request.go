package layout

import (
	"net/netip"

	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// RequestOf is the VM as Propolis is asked for it.
func RequestOf(underlay netip.Prefix, r record.Record) (spec.EnsureRequest, error) {
	request, err := machineRequest(underlay, r)
	if r.VMM != nil && r.VMM.SiloID != "" { // a fleet has no silos
		request.Properties.Metadata.SiloID, request.Properties.Metadata.ProjectID = r.VMM.SiloID, r.VMM.ProjectID
	}
	return request, err
}

func machineRequest(underlay netip.Prefix, r record.Record) (spec.EnsureRequest, error) {
	volume := ""
	if r.Spec.CloudInit != nil {
		volume = r.Spec.CloudInit.Volume
	}
	if r.Spec.Machine != nil {
		m := r.Spec.Assembled(r.Incarnation.Guests)
		if volume != "" {
			m.Components.AddCloudInit(volume)
		}
		return spec.Request(r.ID, r.Name, m, Server(underlay, r.Spec.Address))
	}
	d := spec.Description{ID: r.ID, Name: r.Name, CPUs: r.Spec.CPUs, MemoryMiB: r.Spec.Memory >> 20, CloudInit: volume}
	for _, disk := range r.Spec.Disks {
		d.Disks = append(d.Disks, spec.Disk{Path: disk.Path, ReadOnly: disk.ReadOnly})
	}
	for _, disk := range r.Spec.Crucible {
		d.Disks = append(d.Disks, spec.Disk{Request: disk.Request, ReadOnly: disk.ReadOnly})
	}
	for _, v := range r.Incarnation.Guests {
		d.NICs = append(d.NICs, spec.NIC{VNIC: v.Name})
	}
	return spec.Build(d)
}

// Server is what is known of the Propolis of an instance with this address.
func Server(underlay netip.Prefix, a record.Address) spec.Server {
	ip := a.Prefix.Addr()
	if a.Mode == "" {
		ip = underlay.Addr()
	}
	return spec.Server{IPv6: !ip.Is4()} // where others give the address, it listens on [::]
}

// ServerOf is what is known of the Propolis of instances whose address the
// sled gives.
func ServerOf(underlay netip.Prefix) spec.Server { return Server(underlay, record.Address{}) }
