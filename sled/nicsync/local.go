package nicsync

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/peer/napi"
	"github.com/sledctl/sledctl/vnic"
	"github.com/sledctl/sledctl/zone"
)

// VM is a VM that exists on the sled, in whatever state: a zone that is listed,
// or only configured, or an instance that is only recorded.
type VM struct {
	Name string
	IDs  []string // what records may call it, in lower case
	// State is what its records should say: napi.StateRunning, napi.StateStopped,
	// or empty while it is neither, as one that is being made.
	State string
	// Moving says why its records are left alone; empty: they are not.
	Moving string
	// Arrived says how it came from another sled; empty: it did not, or its records
	// have followed it.
	Arrived string
	// Departed says how it left this sled: it is not here, and its records have not
	// followed it yet. Those of the MACs in Stayed need not.
	Departed string
	Stayed   []string
	// Handover is what the ledger keeps of how it came or left. It goes once the
	// records have followed.
	Handover ledger.Fact
	NICs     []NIC
	zones    []string // that are it
	// blind says that a zone of it has no configuration: it may have more NICs.
	blind bool
	// marked is Moving as far as a zone's configuration says it: another program
	// moves the VM, and the ledger has no other word of it.
	marked string
}

// NIC is a NIC that is here.
type NIC struct {
	MAC  string
	Link string // or what it is known from, if no link is there
}

// Local is what is on the sled.
type Local struct {
	VMs  []VM
	Own  []NIC // the sled's own: physical links, aggregations, and VNICs of the global zone
	byID map[string]int
	byVM map[string][]int // the VMs with a MAC
	own  map[string]NIC   // by MAC
	// recorded is what the ledger says, also of VMs that have departed.
	recorded []VM
}

// newLocal indexes what is on the sled. VMs that share an id are one.
func newLocal(vms []VM, own []NIC) Local {
	l := Local{VMs: make([]VM, 0, len(vms)), Own: own, byID: make(map[string]int, 2*len(vms)), byVM: make(map[string][]int, len(vms)), own: map[string]NIC{}}
	for _, vm := range vms {
		at := len(l.VMs)
		for _, id := range vm.IDs {
			if i, known := l.byID[id]; known {
				at = i
			}
		}
		if at == len(l.VMs) {
			l.VMs = append(l.VMs, vm)
		} else {
			l.VMs[at] = l.VMs[at].and(vm)
		}
		for _, id := range vm.IDs {
			l.byID[id] = at
		}
	}
	for i, vm := range l.VMs {
		for _, n := range vm.NICs {
			if !slices.Contains(l.byVM[n.MAC], i) {
				l.byVM[n.MAC] = append(l.byVM[n.MAC], i)
			}
		}
	}
	for _, n := range own {
		if len(l.byVM[n.MAC]) == 0 {
			l.own[n.MAC] = n
		}
	}
	return l
}

// and is one VM that was seen twice. What was seen first says its state, unless
// that is unknown; what comes later, its name: a zone's is hard to say.
func (vm VM) and(other VM) VM {
	vm.Name = other.Name
	if vm.State == "" {
		vm.State = other.State
	}
	if vm.Moving == "" {
		vm.Moving = other.Moving
	}
	if vm.marked == "" {
		vm.marked = other.marked
	}
	if vm.Arrived == "" {
		vm.Arrived = other.Arrived
	}
	vm.blind = vm.blind || other.blind
	vm.IDs = append(slices.Clip(vm.IDs), other.IDs...)
	vm.zones = append(slices.Clip(vm.zones), other.zones...)
	vm.NICs = slices.Clip(vm.NICs)
	for _, n := range other.NICs {
		if !slices.ContainsFunc(vm.NICs, func(have NIC) bool { return have.MAC == n.MAC }) {
			vm.NICs = append(vm.NICs, n)
		}
	}
	return vm
}

// vm finds a VM by what a record calls it.
func (l Local) vm(id string) (VM, bool) {
	i, ok := l.byID[id]
	if !ok {
		return VM{}, false
	}
	return l.VMs[i], true
}

// with are the VMs that have a MAC.
func (l Local) with(mac string) []VM {
	var all []VM
	for _, i := range l.byVM[mac] {
		all = append(all, l.VMs[i])
	}
	return all
}

// has says whether the VM that a record calls by this id has the MAC.
func (l Local) has(id, mac string) bool {
	i, ok := l.byID[id]
	return ok && slices.Contains(l.byVM[mac], i)
}

// departed is the VM that has left this sled, and that a record is of.
func (l Local) departed(r *napi.Record) (VM, bool) {
	i := slices.IndexFunc(l.recorded, func(vm VM) bool {
		return vm.Departed != "" && !slices.Contains(vm.Stayed, r.MAC) && vm.is(r)
	})
	if i < 0 {
		return VM{}, false
	}
	return l.recorded[i], true
}

// is says whether a record is of a VM, by what it calls it or by its MAC.
func (vm VM) is(r *napi.Record) bool {
	return slices.Contains(vm.IDs, r.BelongsToUUID) || vm.hasMAC(r.MAC)
}

func (vm VM) hasMAC(mac string) bool {
	return slices.ContainsFunc(vm.NICs, func(n NIC) bool { return n.MAC == mac })
}

// macs are all addresses that are here, sorted.
func (l Local) macs() []string {
	all := make([]string, 0, len(l.byVM)+len(l.own))
	for mac := range l.byVM {
		all = append(all, mac)
	}
	for mac := range l.own {
		all = append(all, mac)
	}
	slices.Sort(all)
	return all
}

// moving is a VM that is being moved, and why.
func (l Local) moving() (VM, bool) {
	i := slices.IndexFunc(l.VMs, func(vm VM) bool { return vm.Moving != "" })
	if i < 0 {
		return VM{}, false
	}
	return l.VMs[i], true
}

// book reads the ledger as it is now.
type book func(context.Context) (ledger.View, error)

// look looks at the sled. A listing that fails, or lacks what is always there, is
// an error: what is not seen then may be there.
func (s Settings) look(ctx context.Context, h host.Host, read book) (Local, error) {
	view, err := read(ctx)
	if err != nil {
		return Local{}, err
	}
	inv := inventory.Look(ctx, h, inventory.Want{Parts: []inventory.Part{inventory.Zones, inventory.Configs, inventory.Links}})
	if err := inv.Know(inventory.Zones, inventory.Configs); err != nil {
		return Local{}, &UnknownError{Err: err}
	}
	zones, _ := inv.Zones()
	configs, _ := inv.Configs()
	links, err := linksOf(ctx, h, inv)
	if err != nil {
		return Local{}, &UnknownError{Err: err}
	}
	if len(links) == 0 { // a sled without a link could not have asked
		return Local{}, &UnknownError{Err: fmt.Errorf("dladm lists no link")}
	}
	recorded, err := s.remembered(view)
	if err != nil {
		return Local{}, &UnknownError{Err: err}
	}
	return here(s.Names, zones, configs, links, recorded), nil
}

// linksOf are the links of a listing, and the addresses of those that the kernel gave one.
func linksOf(ctx context.Context, h host.Host, inv *inventory.Inventory) ([]vnic.Link, error) {
	if err := inv.Know(inventory.Links); err != nil {
		return nil, err
	}
	links, _ := inv.Links()
	addresses, err := vnic.Addresses(ctx, h, links)
	return append(slices.Clip(links), addresses...), err
}

// here joins the listings.
func here(names naming.Prefixes, zones []zone.Zone, configs map[string]zone.Config, links []vnic.Link, recorded []VM) Local {
	vms := make([]VM, 0, len(zones)+len(recorded))
	lent := make(map[string]bool, len(links)) // NAME MAC of links that are VMs', wherever they are now
	seen := map[string]bool{zone.Global: true}
	for _, z := range zones {
		if z.Name != zone.Global {
			seen[z.Name] = true
			c, configured := configs[z.Name]
			vm := vmOf(names, z, c, links, lent)
			vm.blind = !configured
			vms = append(vms, vm)
		}
	}
	for name, c := range configs { // one that appeared between the listings
		if !seen[name] {
			vms = append(vms, vmOf(names, zone.Zone{Name: name, State: zone.Configured}, c, links, lent))
		}
	}
	for _, vm := range recorded {
		for _, n := range vm.NICs {
			lent[n.Link+" "+n.MAC] = true
		}
	}
	for _, vm := range recorded {
		if vm.Departed == "" {
			vms = append(vms, vm)
		}
	}
	var own []NIC
	for _, l := range links {
		if l.MAC != "" && l.Zone == "" && !lent[l.Name+" "+l.MAC] {
			own = append(own, NIC{MAC: l.MAC, Link: l.Name})
		}
	}
	l := newLocal(vms, own)
	l.recorded = recorded
	return l
}

// vmOf is a zone as a VM. Its NICs are those of its configuration, which it has
// from before it is installed, and the links that are in it.
//
// Guess nic-in-configuration-before-install: the link and MAC of a NIC of SmartOS stand in the
// zone's configuration as `physical` and `mac-addr` before it is installed.
// Check: `grep network /etc/zones/UUID.xml` during a provision
func vmOf(names naming.Prefixes, z zone.Zone, c zone.Config, links []vnic.Link, lent map[string]bool) VM {
	vm := VM{Name: z.Name, State: stateOf(z.State), Moving: moving(c), marked: moving(c), zones: []string{z.Name}}
	add := func(id string) {
		if id = strings.ToLower(id); napi.CheckUUID(id) == nil && !slices.Contains(vm.IDs, id) {
			vm.IDs = append(vm.IDs, id)
		}
	}
	add(z.UUID)
	add(z.Name)
	if propolis, ok := names.ParseZoneName(z.Name); ok {
		add(propolis.String())
	}
	for _, a := range c.Attrs {
		if a.Name == naming.AttrInstance {
			add(a.Value)
		}
	}
	for _, n := range c.Nets {
		if mac, err := napi.ParseMAC(n.MAC); err == nil {
			vm.NICs = append(vm.NICs, NIC{MAC: mac, Link: n.Physical})
		}
	}
	for _, l := range links {
		// Names of links are the zone's own on SmartOS: net0 is in each, and in the
		// global zone. One that is in another zone is that zone's, and one with
		// another MAC than the configuration says is another link.
		configured := slices.ContainsFunc(c.Nets, func(n zone.Net) bool {
			mac, err := napi.ParseMAC(n.MAC)
			return n.Physical == l.Name && (err != nil || mac == l.MAC)
		})
		if l.MAC == "" || l.Zone != z.Name && (l.Zone != "" || !configured) {
			continue
		}
		lent[l.Name+" "+l.MAC] = true
		if !slices.ContainsFunc(vm.NICs, func(n NIC) bool { return n.MAC == l.MAC }) {
			vm.NICs = append(vm.NICs, NIC{MAC: l.MAC, Link: l.Name})
		}
	}
	return vm
}

// stateOf is a zone's state as records name it. One that is being installed,
// booted or halted is neither: it is asked again.
//
// Guess zone-state-is-vm-state: a zone that runs is a VM that runs, and one that is installed and
// not up is stopped; a VM that is being provisioned is neither yet. vmadm says provisioning of some
// that are installed (OS-8030), for whom `stopped` then comes too early.
// Check: `sledctl nics list` while a VM is provisioned
func stateOf(s zone.State) string {
	switch s {
	case zone.Running:
		return napi.StateRunning
	case zone.Installed:
		return napi.StateStopped
	}
	return ""
}

// moving reads the marks of a VM that is on its way to another sled. Triton marks
// it do_not_inventory (TRITON-1814).
//
// Guess do-not-inventory-is-an-attr: `zonecfg` keeps vmadm's `do_not_inventory` as the attr
// `do-not-inventory`, and a VM that Triton moves has it.
// Check: `vmadm update UUID do_not_inventory=true; zonecfg -z UUID info attr`
func moving(c zone.Config) string {
	for _, a := range c.Attrs {
		name := strings.ReplaceAll(a.Name, "_", "-")
		if name == "do-not-inventory" && a.Value != "false" && a.Value != "0" {
			return "it is marked " + a.Name
		}
	}
	return ""
}
