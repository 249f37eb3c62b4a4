package lattice

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
)

// neighbours is what others have on the sled: the steps that make it, and what of
// it is compared by content.
type neighbours struct {
	steps                                []step
	brand                                string
	zones, links, datasets, files, lists []string
}

// zone makes a foreign zone, with a VNIC and a dataset, up to a
// state: configured, installed or running.
func (n *neighbours) zone(name, link, state string) {
	dir, dataset := "/others/"+name, "rpool/"+name+".d"
	n.run("zfs create -o mountpoint="+dir+" "+dataset, "zfs create "+dataset+"/zone")
	n.steps = append(n.steps, step{file: dir + "/zone", mode: 0o700})
	n.vnic("net1", link)
	n.run("zonecfg -z " + name + " create -b ; set brand=" + n.brand + " ; set zonepath=" + dir + "/zone ; set autoboot=" + fmt.Sprint(state == running) +
		" ; set ip-type=exclusive ; add net ; set physical=" + link + " ; end ; add attr ; set name=owner ; set type=string ; set value=somebody ; end")
	if state != configured {
		n.run("zoneadm -z " + name + " install")
		n.write(dir+"/zone/root/data", "precious")
	}
	if state == running {
		n.run("zoneadm -z " + name + " boot")
	}
	n.zones = append(n.zones, name)
	n.datasets = append(n.datasets, dataset)
	n.write(dir+"/disk.img", "a guest's")
	n.lists = append(n.lists, dir)
}

const (
	configured = "configured"
	installed  = "installed"
	running    = "running"
)

// write makes a file, which is compared.
func (n *neighbours) write(file, text string) {
	n.steps = append(n.steps, step{file: file, text: text, mode: 0o600})
	n.files = append(n.files, file)
}

// vnic makes a VNIC, whose address is the same each time.
func (n *neighbours) vnic(over, link string) {
	n.run(fmt.Sprintf("dladm create-vnic -l %s -m 02:08:20:0e:0e:%02x %s", over, len(n.links), link))
	n.links = append(n.links, link)
}

func (n *neighbours) etherstub(link string) {
	n.run("dladm create-etherstub " + link)
	n.links = append(n.links, link)
}

// address gives the global zone one on a link.
func (n *neighbours) address(link, address string) {
	n.run("ipadm create-if "+link, "ipadm create-addr -T static -a "+address+" "+link+"/v4")
}

func (n *neighbours) run(lines ...string) {
	for _, line := range lines {
		n.steps = append(n.steps, step{line: line})
	}
}

// neighbours are those of a row.
func (r Row) neighbours() neighbours {
	n := neighbours{brand: "sparse"}
	if r.Is(Mode) != OmniOS {
		n.brand = "ipkg"
	}
	switch r.Is(Neighbours) {
	case None:
	case VMsOfOther:
		n.zone("vm7", "vm0", running)
		n.zone("vm8", "vm1", installed)
		n.run("zfs create -s -V 1g -o refreservation=none rpool/vm7.disk", "zfs snapshot rpool/vm7.disk@nightly", "zfs set org.zadm:of=vm7 rpool/vm7.disk")
		n.datasets = append(n.datasets, "rpool/vm7.disk")
	case NearMisses:
		n.nearMisses()
	case SledAgents:
		n.sledAgents()
	default:
		r.missing(Neighbours)
	}
	return n
}

// nearMisses are called nearly like sledctl's, or as these are and lie elsewhere.
func (n *neighbours) nearMisses() {
	const id = "6f9619ff-8b86-4011-b42d-00c04fc964ff"
	n.zone("propolis_baseball", "vnic_propolisx0", running)
	n.zone("propolis_instance_mine", "vnic_propolis_guest0", installed)
	n.zone("propolis_instance_"+id, "vnic_propolis_mgmt1", configured)
	n.zone("propolis_base_rpool_01", "vnic_propolis_guest_x1", configured)
	n.etherstub("others0")
	n.vnic("others0", "vnic_propolis0")
	n.vnic("others0", "vnic_propolis_guest7")
	n.vnic("net1", "vnic_propolis_mgmt0")
	n.address("vnic_propolis_mgmt0", "172.16.5.5/24")
	n.run("zfs create rpool/propolis_base_mine", "zfs set sledctl:note=ours rpool/propolis_base_mine", "zfs set quota=1g rpool/propolis_base_mine",
		"zfs create rpool/propolis_base_mine/propolis_instance_"+id, "zfs snapshot rpool/propolis_base_mine@propolis_instance_"+id+"_snap")
	n.write("/rpool/propolis_base_mine/notes", "mine")
	n.datasets = append(n.datasets, "rpool/propolis_base_mine")
}

// sledAgents are what a sled agent of today leaves when it is disabled.
func (n *neighbours) sledAgents() {
	n.etherstub("underlay_stub0")
	n.vnic("underlay_stub0", "underlay0")
	n.address("underlay0", "172.16.6.1/24")
	n.vnic("underlay_stub0", "oxControlInstance7")
	n.vnic("net1", "oxGuestInstance7")
	n.zone("oxz_propolis-server_5a1fbcd1-1b4d-4b61-a8dd-0d3d2b2f2d1c", "oxControlInstance8", running)
	n.zone("oxz_switch", "oxControlService0", installed)
}

// Foreign returns all that the neighbours have, by content.
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
	files := s.Host().Files()
	for _, name := range n.files {
		text, err := host.ReadFile(files, name)
		info, _ := files.Stat(name)
		all = append(all, fmt.Sprint(name, ": ", info.Mode, " ", string(text), " ", err))
	}
	for _, dir := range n.lists {
		infos, err := files.ReadDir(dir)
		all = append(all, fmt.Sprint(dir, ": ", err))
		for _, info := range infos {
			all = append(all, fmt.Sprint(dir, "/", info.Name, ": ", info.Mode))
		}
	}
	text, err := json.MarshalIndent(all, "", "\t")
	return Undrawn(string(text)), err
}

// Undrawn returns the description of a sled without what a boot from a RAM disk draws.
func Undrawn(text string) string {
	return regexp.MustCompile(`(libbe:(uuid|parentbe)": )"[^"]*"`).ReplaceAllString(text, `$1"DRAWN"`)
}
