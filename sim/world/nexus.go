package world

import (
	"slices"
	"time"
)

// Nexus is a control plane of Oxide's that the sled can reach: its settings, and
// what it keeps of VMs. It is a machine of its own, and a reboot of the sled is
// nothing to it.
type Nexus struct {
	Address string `json:"address"` // HOST:PORT, where its internal API answers
	// Era is which releases it is like, see package nexus next to this one.
	Era string `json:"era"`
	// Later lets it answer a doorbell first, and ask the sled then.
	Later bool `json:"later,omitempty"`
	// Token is shown to the agents (RFC 6750); empty: none is.
	Token string `json:"token,omitempty"`
	// Sleds are where their agents answer: unix:/NAME or tcp:HOST:PORT.
	Sleds []string            `json:"sleds"`
	VMs   map[string]*NexusVM `json:"vms"` // by Propolis id
	// Registered are the sleds that have made themselves known, by their ids.
	Registered map[string]*NexusSled `json:"registered,omitempty"`
	// Order are their ids, as they first came: each has the subnet of its place.
	Order     []string                  `json:"order,omitempty"`
	Instances map[string]*NexusInstance `json:"instances,omitempty"` // by name
	Addresses int                       `json:"addresses,omitempty"` // that were given to VMs
	Seq       uint64                    `json:"seq"`                 // of the last change
	News      []*NexusChange            `json:"news,omitempty"`
}

// NexusSled is what it knows of a sled, by the keys of SledAgentInfo.
type NexusSled struct {
	Address        string         `json:"sa_address"`
	Depot          uint16         `json:"repo_depot_port"`
	Role           string         `json:"role"`
	Baseboard      NexusBaseboard `json:"baseboard"`
	Threads        uint32         `json:"usable_hardware_threads"`
	RAM            uint64         `json:"usable_physical_ram"`
	Reservoir      uint64         `json:"reservoir_size"`
	Family         string         `json:"cpu_family"`
	Generation     uint64         `json:"generation"`
	Decommissioned bool           `json:"decommissioned"`
}

// NexusBaseboard identifies a machine.
type NexusBaseboard struct {
	Part     string `json:"part"`
	Serial   string `json:"serial"`
	Revision uint32 `json:"revision"`
}

// NexusVM is what it knows of a VM.
type NexusVM struct {
	Sled    string    `json:"sled"` // one of Sleds
	State   string    `json:"state"`
	Gen     uint64    `json:"generation"`
	Updated time.Time `json:"time_updated"`
	// Check is the last result of asking for it, as the instance watcher calls it.
	Check string `json:"check"`
}

// NexusInstance is an instance that it runs, with what is its own wherever it runs: a NIC in the one VPC, and a local
// disk, which binds it to a sled.
type NexusInstance struct {
	Name    string `json:"name"`
	ID      string `json:"id"`
	CPUs    int    `json:"cpus"`
	Memory  int    `json:"memory"` // MiB
	NIC     string `json:"nic"`    // its id
	MAC     string `json:"mac"`
	IP      string `json:"ip"`
	Disk    string `json:"disk,omitempty"` // the id of its dataset
	Size    uint64 `json:"size,omitempty"` // of the disk, bytes
	Pool    string `json:"pool,omitempty"` // the id of the pool that the disk is on
	Sled    string `json:"sled"`           // the id of the one that it is on
	VM      string `json:"vm"`             // its Propolis id
	Address string `json:"address"`        // of its Propolis
	// Removing: it is being taken out of use.
	Removing bool `json:"removing,omitempty"`
}

// NexusChange is a line of its history of a VM: what it took over, or that
// asking came to something else than before.
type NexusChange struct {
	Seq  uint64    `json:"seq"`
	Time time.Time `json:"time"`
	ID   string    `json:"id"`
	By   string    `json:"by"` // what made it look: doorbell, upcall, sweep
	NexusVM
}

// keptNews is how many changes are kept.
const keptNews = 1000

// Told notes what is known of a VM now, if that is new.
func (n *Nexus) Told(now time.Time, id, by string, vm NexusVM) {
	if old := n.VMs[id]; old != nil && *old == vm {
		return
	}
	n.VMs[id] = &vm
	n.Seq++
	n.News = append(n.News, &NexusChange{Seq: n.Seq, Time: now, ID: id, By: by, NexusVM: vm})
	n.News = slices.Delete(n.News, 0, max(0, len(n.News)-keptNews))
}

// The faults of a control plane. Their words are its name, the method and the
// path: "nexus POST /vmms/*/doorbell".
const (
	FaultNexusDown = "nexus-down" // breaks the connection off without an answer
	FaultNexusFail = "nexus-fail" // answers with the status Exit and the message Text
	FaultNexusHTML = "nexus-html" // something else answers: 200, with a proxy's page
	FaultNexusTalk = "nexus-talk" // answers what is not HTTP
	FaultNexusSlow = "nexus-slow" // answers Delay later
	FaultNexusLost = "nexus-lost" // answers as if it had heard, and does nothing
)

// nexusFaults are their names.
func nexusFaults() []string {
	return []string{FaultNexusDown, FaultNexusFail, FaultNexusHTML, FaultNexusTalk, FaultNexusSlow, FaultNexusLost}
}
