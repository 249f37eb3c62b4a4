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

// neighbours is what others have on the sled: the commands that make it, and what
// of it is compared by content.
type neighbours struct {
	commands                      []string
	zones, links, datasets, files []string
}

// zoneOf makes a zone that is nobody's business, with a VNIC and a dataset.
func (n *neighbours) zoneOf(r Row, name, link string) {
	brand := "sparse"
	if r.Is(Mode) != OmniOS {
		brand = "ipkg"
	}
	dataset := "rpool/" + strings.ReplaceAll(name, "/", "-") + ".d"
	n.commands = append(n.commands,
		"zfs create -o mountpoint=/others/"+name+" "+dataset, "zfs create "+dataset+"/zone", "CHMOD /others/"+name+"/zone",
		"dladm create-vnic -l net1 "+link,
		"zonecfg -z "+name+" create -b ; set brand="+brand+" ; set zonepath=/others/"+name+"/zone ; set autoboot=true ; set ip-type=exclusive ; add net ; set physical="+link+" ; end",
		"zoneadm -z "+name+" install", "zoneadm -z "+name+" boot", "WRITE /others/"+name+"/zone/root/data")
	n.zones = append(n.zones, name)
	n.links = append(n.links, link)
	n.datasets = append(n.datasets, dataset)
	n.files = append(n.files, "/others/"+name+"/zone/root/data")
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
		n.commands = append(n.commands, "dladm create-vnic -l net1 vnic_propolis_mgmt0", "ipadm create-if vnic_propolis_mgmt0",
			"ipadm create-addr -T static -a 172.16.5.5/24 vnic_propolis_mgmt0/v4", "zfs create rpool/propolis_base_mine")
		n.links, n.datasets = append(n.links, "vnic_propolis_mgmt0"), append(n.datasets, "rpool/propolis_base_mine")
	case SledAgents:
		const server = "oxz_propolis-server_5a1fbcd1-1b4d-4b61-a8dd-0d3d2b2f2d1c"
		n.commands = append(n.commands, "dladm create-etherstub underlay_stub0", "dladm create-vnic -l underlay_stub0 oxControlInstance7",
			"dladm create-vnic -l net1 oxGuestInstance7")
		n.links = append(n.links, "underlay_stub0", "oxControlInstance7", "oxGuestInstance7")
		n.zoneOf(r, server, "oxControlService0")
	default:
		r.missing(Neighbours)
	}
	return n
}

// make makes what the neighbours have.
func (n neighbours) make(ctx context.Context, s *sim.Sled) error {
	files := s.Host().Files()
	for _, line := range n.commands {
		var err error
		if name, ok := strings.CutPrefix(line, "CHMOD "); ok {
			err = files.Chmod(name, 0o700)
		} else if name, ok := strings.CutPrefix(line, "WRITE "); ok {
			err = host.WriteFile(files, name, []byte("precious"), 0o600)
		} else {
			err = run(ctx, s, line)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
	}
	return nil
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
