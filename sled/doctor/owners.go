package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/illumos/system"
	"github.com/sledctl/sledctl/zone"
)

// ownerChecks ask what else has zones, links, pools and VMs on the sled.
func ownerChecks() []Check {
	const group = "owners"
	return []Check{
		{ID: "sled-agent", Group: group, About: "Oxide's sled agent is not at work", Asks: []Question{askServices}, Judge: judgeSledAgent},
		{ID: "vmadmd", Group: group, About: "vmadmd keeps no VMs where sledctl would", Asks: []Question{askServices, askKernel}, Judge: judgeVMAdmd},
		{ID: "other-zones", Group: group, About: "the zones of other programs are known", Asks: []Question{askOthers, askRecords}, Judge: judgeOtherZones},
		{ID: "other-vms", Group: group, About: "each VM of another program has a zone that runs it", Asks: []Question{askOthers, askRecords}, Judge: judgeOtherVMs},
	}
}

// queryOthers looks at the zones and VMs; that one of its listings fails is the answer.
func queryOthers(ctx context.Context, h host.Host) (*inventory.Inventory, error) {
	inv := inventory.Look(ctx, h, inventory.OthersWant())
	_, err := inv.Others(naming.Prefixes{}, nil)
	return inv, err
}

// others are the zones and VMs that are not sledctl's.
func (s Seen) others() inventory.Others {
	if s.Others == nil {
		return inventory.Others{}
	}
	others, _ := s.Others.Others(s.Settings.Names, s.Records.Objects) // queryOthers has told the error
	return others
}

// services are those of an owner that may be at work.
func (s Seen) services(named string) (all []inventory.OtherService) {
	for _, o := range s.Services {
		if strings.Contains(o.FMRI, named+":") {
			all = append(all, o)
		}
	}
	return all
}

func judgeSledAgent(s Seen) Finding {
	return judgeServices(s.services("/sled-agent"), "the sled agent")
}

func judgeVMAdmd(s Seen) Finding {
	all := s.services("/vmadmd")
	if s.Kernel.Distribution == system.SmartOS && len(all) > 0 {
		return fine("%s is %s; sledctl runs no VMs on SmartOS", all[0].FMRI, all[0].State)
	}
	return judgeServices(all, "vmadmd")
}

// judgeServices judges what every operation refuses.
func judgeServices(all []inventory.OtherService, name string) Finding {
	var said, next []string
	for _, o := range all {
		if !o.Blocks {
			continue
		}
		said = append(said, fmt.Sprintf("%s is %s: %s", o.FMRI, o.State, o.Does))
		next = append(next, "svcadm disable "+o.FMRI)
	}
	switch {
	case said != nil:
		return fails("%s", strings.Join(said, "; ")).then(next...)
	case len(all) > 0:
		return fine("%s is %s; it uses pools of its own", all[0].FMRI, all[0].State)
	}
	return fine("%s is not at work here", name)
}

// runsVMs says whether zones of a brand run a VM of bhyve's or of KVM's each.
func runsVMs(z zone.Zone) bool { return z.Brand == "bhyve" || z.Brand == "kvm" }

// judgeOtherZones names the zones that zadm, vmadm or people have made. They and sledctl's
// share memory and links, and that is all: no operation touches them.
func judgeOtherZones(s Seen) Finding {
	zones := s.others().Zones
	if len(zones) == 0 {
		return fine("there are none")
	}
	var said []string
	for _, z := range zones {
		said = append(said, fmt.Sprintf("%s (%s, %s)", z.Name, z.Brand, z.State))
	}
	more := "sledctl leaves them and their links alone"
	if slices.ContainsFunc(zones, runsVMs) {
		more += "; their VMs take memory outside of the reservoir"
	}
	return fine("%s; %s", strings.Join(said, ", "), more)
}

// judgeOtherVMs names the VMs of others. While a zone of a brand with VMs runs, they can be
// its: a VM does not tell its zone. Else a program runs them in the global zone, or no
// longer does, and their memory stays taken.
//
// Guess bhyve-zone-names-no-vm: the VM of a zone of the brand bhyve is called after a number, as
// SYSbhyve-7, and not after the zone.
// Check: `ls /dev/vmm; zoneadm list -v` while one runs
func judgeOtherVMs(s Seen) Finding {
	others := s.others()
	if len(others.VMs) == 0 {
		return fine("there are none")
	}
	said := strings.Join(others.VMs, ", ")
	if slices.ContainsFunc(others.Zones, func(z zone.Zone) bool { return runsVMs(z) && z.State == zone.Running }) {
		return fine("%s; sledctl leaves them alone", said)
	}
	var next []string
	for _, name := range others.VMs {
		next = append(next, "bhyvectl --destroy --vm="+host.Quote(name))
	}
	return warns("no zone runs %s: the memory stays taken until a program ends", said).byHand("make sure that no program uses it").then(next...)
}
