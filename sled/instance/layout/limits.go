package layout

import (
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/vnic"
)

// LimitsOf is what a guest VNIC is held to: the guest sends from its own MAC address only and,
// where its NIC says so, only from some IP addresses and at most so many bits per second.
// A port is held to its addresses by OPTE.
func LimitsOf(r record.Record, v record.VNIC) vnic.Limits {
	if v.Port {
		return vnic.Limits{}
	}
	n := r.Spec.NICOf(v.MAC)
	return vnic.Limits{OwnMAC: true, Mbps: n.MaxBW, IPs: vnic.AllowedIPs(n.AllowIP)}
}
