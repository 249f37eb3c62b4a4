package boot

import (
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
)

// DeviceVersion is what the kernel of a mode answers when a device is asked for the version
// of its interface. An old kernel is one that no propolis-server of today runs on.
//
// Guess versions-of-vmm-and-viona: the kernel of OmniOS r151058 has version 18 of vmm's interface
// and 6 of viona's, that of Helios today 18 and 7. The headers of the gate have had these numbers;
// which release came with which was not seen.
// Check: `sledctl doctor -o json` there, the evidence of the checks vmm and viona
func DeviceVersion(mode world.Mode, d host.Device, old bool) int {
	switch {
	case d == host.VMM && old:
		return 7
	case d == host.VMM:
		return 18
	case old:
		return 1
	case mode == world.Helios:
		return 7
	}
	return 6
}
