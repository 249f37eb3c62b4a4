package lattice

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
)

// neighbours is what others have on the sled: the steps that make it, and what of
// it is compared by content.
type neighbours struct {
	steps                         []step
	zones, links, datasets, files []string
}

// zoneOf makes a zone that is nobody's business, with a VNIC and a dataset.
func (n *neighbours) zoneOf(r Row, name, link string) {
	brand := "sparse"
	if r.Is(Mode) != OmniOS {
		brand = "ipkg"
	}
	dataset := "rpool/" + strings.ReplaceAll(name, "/", "-") + ".d"
	n.run("zfs create -o mountpoint=/others/"+name+" "+dataset, "zfs create "+dataset+"/zone")
	n.steps = append(n.steps, step{file: "/others/" + name + "/zone", mode: 0o700})
	n.vnic("net1", link)
	n.run("zonecfg -z "+name+" create -b ; set brand="+brand+" ; set zonepath=/others/"+name+"/zone ; set autoboot=true ; set ip-type=exclusive ; add net ; set physical="+link+" ; end",
		"zoneadm -z "+name+" install", "zoneadm -z "+name+" boot")
	n.steps = append(n.steps, step{file: "/others/" + name + "/zone/root/data", text: "precious", mode: 0o600})
	n.zones = append(n.zones, name)
	n.datasets = append(n.datasets, dataset)
	n.files = append(n.files, "/others/"+name+"/zone/root/data")
}

// vnic makes a VNIC, whose address is the same each time.
func (n *neighbours) vnic(over, link string) {
	n.run(fmt.Sprintf("dladm create-vnic -l %s -m 02:08:20:0e:0e:%02x %s", over, len(n.links), link))
	n.links = append(n.links, link)
}

func (n *neighbours) run(lines ...string) {
	for _, line := range lines {
		n.steps = append(n.steps, step{line: line})
	}
}

// neighbours are those of a row.
func (r Row) neighbours() (n neighbours) {
	switch r.Is(Neighbours) {
	case None:
	case VMsOfOther:
		n.zoneOf(r, "vm7", "vm0")
	case NearMisses:
		n.zoneOf(r, "propolis_baseball", "vnic_propolisx0")
		n.zoneOf(r, "propolis_instance_mine", "vnic_propolis_guest0")
		n.vnic("net1", "vnic_propolis_mgmt0")
		n.run("ipadm create-if vnic_propolis_mgmt0", "ipadm create-addr -T static -a 172.16.5.5/24 vnic_propolis_mgmt0/v4", "zfs create rpool/propolis_base_mine")
		n.datasets = append(n.datasets, "rpool/propolis_base_mine")
	case SledAgents:
		n.run("dladm create-etherstub underlay_stub0")
		n.links = append(n.links, "underlay_stub0")
		n.vnic("underlay_stub0", "oxControlInstance7")
		n.vnic("net1", "oxGuestInstance7")
		n.zoneOf(r, "oxz_propolis-server_5a1fbcd1-1b4d-4b61-a8dd-0d3d2b2f2d1c", "oxControlService0")
	default:
		r.missing(Neighbours)
	}
	return n
}

// Foreign tells of all that the neighbours have, by content.
func (r Row) Foreign(ctx context.Context, s *sim.Sled) (string, error) {
	n := r.neighbours()
	data, err := sim.Comparable(ctx, s.World())
	if err != nil {
		return "", err
	}
	var seen sim.Snapshot
	if err := json.Unmarshal(data, &seen); err != nil {
		return "", err
	}
	var all []any
	for _, z := range seen.Zones {
		if slices.Contains(n.zones, z.Name) {
			all = append(all, z)
		}
	}
	for _, l := range seen.Links {
		if l.Class == "phys" || l.Class == "aggr" || l.Class == "vlan" || slices.Contains(n.links, l.Name) {
			all = append(all, l)
		}
	}
	for _, d := range seen.Datasets {
		if slices.ContainsFunc(n.datasets, func(name string) bool { return d.Name == name || strings.HasPrefix(d.Name, name+"/") }) {
			all = append(all, d)
		}
	}
	for _, stack := range seen.Stacks {
		for _, a := range stack.Addresses {
			if link, _, _ := strings.Cut(a.Object, "/"); slices.Contains(n.links, link) {
				all = append(all, a)
			}
		}
	}
	for _, name := range n.files {
		text, err := host.ReadFile(s.Host().Files(), name)
		all = append(all, fmt.Sprint(name, ": ", string(text), " ", err))
	}
	text, err := json.MarshalIndent(all, "", "\t")
	return string(text), err
}
