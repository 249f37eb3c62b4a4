package inventory

import (
	"path"

	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/zone"
)

// VMDirectory is where the kernel's VMs are devices, one for each by its name, and
// Propolis names them by the instance's id (usr/src/uts/intel/io/vmm;
// oxidecomputer/propolis, lib/propolis/src/vmm/hdl.rs).
//
// Guess global-zone-sees-all-vms: the global zone lists the VMs of all zones below `/dev/vmm`.
// Check: `ls /dev/vmm` while an instance runs
// State: settled by usr/src/uts/intel/io/vmm/vmm_sol_dev.c:3093-3110
//
// Guess vm-named-by-instance: there is one entry by each VM's name, which Propolis sets to the
// instance's id.
// Check: `ls /dev/vmm` while an instance runs; its id is there
const VMDirectory = "/dev/vmm"

// Others are the zones and VMs that are not sledctl's.
type Others struct {
	Zones []zone.Zone
	VMs   []string // by name
}

// OthersWant is what Others needs.
func OthersWant() Want {
	return Want{Parts: []Part{Zones, Configs, Pools, Entries}, Directories: []string{VMDirectory}}
}

// Others finds the zones and VMs that are not sledctl's: neither recorded (zones by
// name, VMs by instance) nor, by mark or name and place, of one of its zones.
func (inv *Inventory) Others(names naming.Prefixes, recorded map[string]bool) (Others, error) {
	if err := inv.Know(Zones, Configs, Pools, Entries); err != nil {
		return Others{}, err
	}
	var o Others
	marked := map[string]bool{}
	for _, z := range inv.zones {
		owner := inv.Owner(names, z)
		if owner.Ours() {
			marked[owner.Instance.String()] = true
		} else if z.Name != zone.Global && !recorded[z.Name] {
			o.Zones = append(o.Zones, z)
		}
	}
	for _, e := range inv.entries {
		if path.Dir(e.Path) == VMDirectory && !recorded[e.Name] && !marked[e.Name] {
			o.VMs = append(o.VMs, e.Name)
		}
	}
	return o, nil
}
