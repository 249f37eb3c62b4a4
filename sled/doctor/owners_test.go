package doctor

import (
	"testing"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/illumos/system"
	"github.com/sledctl/sledctl/zfs"
	"github.com/sledctl/sledctl/zone"
)

// An owner that sledctl cannot share the sled with is a failure; zones and VMs of others
// are named.
func TestTheOtherOwners(t *testing.T) {
	const id = "8c4a2b1e-6a57-4a5c-9d3e-000000000001"
	agent := inventory.OtherService{FMRI: "svc:/oxide/sled-agent:default", State: "online", Does: "it removes", Blocks: true}
	vmadmd := inventory.OtherService{FMRI: "svc:/system/smartdc/vmadmd:default", State: "online", Does: "it keeps", Blocks: true}
	next := vmadmd
	next.Blocks = false
	of := func(services ...inventory.OtherService) Seen { return Seen{Services: services} }
	smart := of(vmadmd)
	smart.Kernel.Distribution = system.SmartOS
	names := naming.Prefixes{Zone: "propolis_instance_", Base: "propolis_base_"}
	on := func(zones []zone.Zone, vms ...string) Seen {
		entries := []inventory.Entry{}
		for _, name := range vms {
			entries = append(entries, inventory.Entry{Path: "/dev/vmm/" + name, Info: host.Info{Name: name}})
		}
		all := append([]zone.Zone{{Name: "global", Path: "/"}}, zones...)
		return Seen{Settings: Settings{Names: names}, Records: Recorded{Objects: map[string]bool{id: true, "adopted": true}},
			Others: inventory.Of(inventory.Listings{Zones: all, Configs: map[string]zone.Config{}, Pools: []zfs.Pool{{Name: "rpool"}}, Entries: entries})}
	}
	ours := zone.Zone{Name: "propolis_instance_" + id, Path: "/zone/propolis_instance_" + id, Brand: "sparse", State: zone.Running}
	adopted := zone.Zone{Name: "adopted", Path: "/x/adopted", Brand: "sparse", State: zone.Running}
	build := zone.Zone{Name: "build", Path: "/zones/build", Brand: "lipkg", State: zone.Running}
	vm := zone.Zone{Name: "debian", Path: "/zones/debian", Brand: "bhyve", State: zone.Running}
	halted := vm
	halted.State = zone.Installed
	judgeAll(t, map[string]judged{
		"no agent":       {"sled-agent", of(vmadmd), OK, "not at work"},
		"the agent":      {"sled-agent", of(agent), Fail, "svc:/oxide/sled-agent:default is online: it removes; run: svcadm disable svc:/oxide/sled-agent:default"},
		"no vmadmd":      {"vmadmd", of(agent), OK, "not at work"},
		"vmadmd":         {"vmadmd", of(vmadmd), Fail, "run: svcadm disable svc:/system/smartdc/vmadmd:default"},
		"vmadmd at home": {"vmadmd", smart, OK, "sledctl runs no VMs"},
		"vmadmd next":    {"vmadmd", of(next), OK, "pools of its own"},
		"no zones":       {"other-zones", on(nil), OK, "there are none"},
		"ours":           {"other-zones", on([]zone.Zone{ours, adopted}), OK, "there are none"},
		"a zone":         {"other-zones", on([]zone.Zone{ours, build}), OK, "build (lipkg, running); sledctl leaves"},
		"zone with a VM": {"other-zones", on([]zone.Zone{vm}), OK, "debian (bhyve, running); sledctl leaves them and their links alone; their VMs take memory"},
		"no VMs":         {"other-vms", on([]zone.Zone{ours}, id), OK, "there are none"},
		"a zone's VM":    {"other-vms", on([]zone.Zone{ours, vm}, id, "SYSbhyve-1"), OK, "SYSbhyve-1; sledctl leaves"},
		"no zone's":      {"other-vms", on([]zone.Zone{halted, build}, "a", "b"), Warn, "no zone runs a, b: the memory stays taken until a program ends; make sure that no program uses it, then run: bhyvectl --destroy --vm=a && bhyvectl --destroy --vm=b"},
		"not asked":      {"other-vms", Seen{}, OK, "there are none"},
	})
}
