package layout

import (
	"slices"

	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/vnic"
)

// LimitsOf is what a guest VNIC is held to: the guest sends from its own MAC address only and,
// where its NIC says so, only from some IP addresses and at most so many bits per second.
func LimitsOf(r record.Record, v record.VNIC) vnic.Limits {
	limits := vnic.Limits{OwnMAC: true}
	if i := slices.IndexFunc(r.Spec.NICs, func(n record.NIC) bool { return n.MAC == v.MAC }); i >= 0 {
		limits.Mbps = r.Spec.NICs[i].MaxBW
		limits.IPs = vnic.AllowedIPs(r.Spec.NICs[i].AllowIP)
	}
	return limits
}
