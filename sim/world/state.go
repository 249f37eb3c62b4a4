// Package world holds the state of a simulated sled and the transactions on
// it. It knows what an illumos machine keeps (zones, links, datasets, address
// objects, SMF repositories, processes) and nothing of sledctl.
//
// Nothing runs between commands: what will happen later is written down when
// it is decided, as Due events and timelines, and a reader at time t sees
// the sled as it is at t.
package world

import "time"

// Format is the version of the directory's layout. A directory of a newer
// format is refused.
const Format = 2

// State is all that a simulated sled is. Its JSON is that of format 1; how it is stored
// now, entries.go and log.go say.
type State struct {
	Format     int       `json:"format"`
	Seed       uint64    `json:"seed"`                 // of every number that the sled draws
	Mode       Mode      `json:"mode"`                 // the distribution
	Latency    string    `json:"latency"`              // none, helios2021, helios
	Ramdisk    bool      `json:"ramdisk,omitempty"`    // the root is on one although the mode's is not; see Forgets
	Installed  bool      `json:"installed,omitempty"`  // the root is on a pool although the mode's is not
	Build      string    `json:"build,omitempty"`      // of propolis-server; see Options
	Processors int       `json:"processors,omitempty"` // 0: UsualProcessors
	Methods    bool      `json:"methods,omitempty"`    // SMF's methods of the global zone are programs; see Options
	Booted     time.Time `json:"booted"`
	// Facts are what a recording has said about the sled that was laid out from it: see Fact.
	Facts   map[string]string `json:"facts,omitempty"`
	Boots   int               `json:"boots"`
	Version uint64            `json:"version,omitempty"` // raised by every transaction that changes something

	// Image are files that are part of the system's image, next to those that every
	// image has: a root on a RAM disk has them again after a reboot, as they were.
	Image []string `json:"image,omitempty"`

	// Counters never go back: zone ids, guids, transaction groups, draws.
	Counters map[string]uint64 `json:"counters,omitempty"`

	Zones     []*Zone                `json:"zones,omitempty"` // in the order of /etc/zones/index, without the global zone
	Links     []*Link                `json:"links,omitempty"` // in the order of their making
	Disks     []*Disk                `json:"disks,omitempty"`
	Pools     []*Pool                `json:"pools,omitempty"`
	Datasets  map[string]*Dataset    `json:"datasets,omitempty"` // by full name; snapshots too
	Stacks    map[string]*Stack      `json:"stacks,omitempty"`   // IP, by zone name; "global" is always there
	Services  map[string]*Repository `json:"services,omitempty"` // SMF, by zone name; only of zones that the kernel knows, and "global"
	Processes []*Process             `json:"processes,omitempty"`
	Due       []*Event               `json:"due,omitempty"` // sorted by time
	Faults    []*Fault               `json:"faults,omitempty"`

	Reservoir uint64 `json:"reservoir,omitempty"` // of the VMM, in bytes; see QueryReservoir
	OPTE      *OPTE  `json:"opte,omitempty"`      // of the driver xde; nil: nothing

	// Neighbours are the directories of the sleds that can be reached, and Broken
	// the migrations of which a side that was here ended too early.
	Neighbours []string          `json:"neighbours,omitempty"`
	Broken     []BrokenMigration `json:"broken,omitempty"`

	NAPI  *NAPI  `json:"napi,omitempty"`  // of the data centre; nil: there is none
	Nexus *Nexus `json:"nexus,omitempty"` // the control plane; nil: there is none

	Web *Web `json:"web,omitempty"` // of images; nil: there is none

	undecoded *undecoded // nil: all was looked at
	datasets  *datasetIndex
}

// Mode is a distribution: which brands, columns and habits the sled has.
type Mode string

// The distributions. What differs between them is said where it shows.
const (
	OmniOS  Mode = "omnios"
	Helios  Mode = "helios"
	SmartOS Mode = "smartos"
)

// Link is a datalink.
type Link struct {
	Name       string            `json:"name"`
	Class      string            `json:"class"`          // phys, aggr, vlan, vnic, etherstub, misc
	Over       string            `json:"over,omitempty"` // of a VNIC or VLAN; of an aggregation its ports, with commas
	MAC        string            `json:"mac,omitempty"`  // padded, lower case
	MACType    string            `json:"mac_type,omitempty"`
	VLAN       int               `json:"vlan,omitempty"`
	Temporary  bool              `json:"temporary,omitempty"`
	Zone       string            `json:"zone,omitempty"` // lent to this zone; empty: the global zone
	Up         bool              `json:"up"`
	Properties map[string]string `json:"properties,omitempty"` // those that were set: mtu, …
	// Saved are the persistent values of properties that were changed until the
	// next reboot; empty: the default.
	Saved map[string]string `json:"saved,omitempty"`
}

// Stack is the IP state of a zone with an exclusive stack, or of the global zone.
type Stack struct {
	Interfaces []*Interface `json:"interfaces"`
	Addresses  []*Address   `json:"addresses"`
	Routes     []*Route     `json:"routes"`
}

// Interface is a plumbed link.
type Interface struct {
	Name       string            `json:"name"`
	Temporary  bool              `json:"temporary"`
	Properties map[string]string `json:"properties,omitempty"`
}

// Address is an address object.
type Address struct {
	Object    string      `json:"object"` // net0/v4
	Type      string      `json:"type"`   // static, dhcp, addrconf, from-gz
	Address   string      `json:"address,omitempty"`
	Temporary bool        `json:"temporary"`
	Timeline  []Timepoint `json:"timeline"` // tentative, ok, duplicate, …
}

// Route is an entry of the routing table.
type Route struct {
	Destination string `json:"destination"` // default, or a prefix
	Gateway     string `json:"gateway"`
	Interface   string `json:"interface,omitempty"`
	Bound       bool   `json:"bound,omitempty"`      // it was asked for through this interface
	Persistent  bool   `json:"persistent,omitempty"` // it is in /etc/inet/static_routes
	Inactive    bool   `json:"inactive,omitempty"`   // it is only there
}

// Timepoint is a state and from when it holds. A timeline is a list of them,
// oldest first; the last one whose time has come is the state.
type Timepoint struct {
	State      string    `json:"state"`
	Generation uint64    `json:"generation,omitempty"`
	From       time.Time `json:"from"`
}

// Process is a long-running process that a service started.
type Process struct {
	PID     int       `json:"pid"`
	Zone    string    `json:"zone"`
	FMRI    string    `json:"fmri,omitempty"` // whose contract it is in
	Argv    []string  `json:"argv"`
	Listen  string    `json:"listen,omitempty"`  // IP:PORT; [::]:PORT and 0.0.0.0:PORT are any address of the zone
	Started time.Time `json:"started"`           // from when it listens
	OSPID   int       `json:"os_pid,omitempty"`  // of the stand-in process, if there is one
	VM      *VM       `json:"vm,omitempty"`      // of a propolis-server
	Viewers uint64    `json:"viewers,omitempty"` // of earlier versions
}

// VM is the machine inside a propolis-server. The propolis simulation owns
// its shape beyond the timeline.
type VM struct {
	Properties []byte      `json:"properties"` // JSON, as ensured
	Spec       []byte      `json:"spec"`       // JSON, as ensured
	Timeline   []Timepoint `json:"timeline"`   // Creating, Starting, …; generations from 1
	// Ready is when its parts exist; before, the server is still making them.
	Ready time.Time `json:"ready"`
	// Links are the datalinks of the zone that the VM holds open.
	Links []string `json:"links,omitempty"`
	// In and Out are the latest migrations in each direction.
	In  *Migration `json:"migration_in,omitempty"`
	Out *Migration `json:"migration_out,omitempty"`
	// Memory is what it has taken, in bytes; Reserved says whether from the
	// reservoir.
	Memory   uint64 `json:"memory,omitempty"`
	Reserved bool   `json:"reserved,omitempty"`
	// Console is its first serial port.
	Console Console `json:"console,omitzero"`
	// Moved is where its console goes on, if it has migrated away.
	Moved *Moved `json:"moved,omitempty"`
}

// Moved is what a server tells the clients of a console whose machine has
// migrated away.
type Moved struct {
	Destination string `json:"destination"` // IP:PORT of the server
	From        uint64 `json:"from"`        // the offset to go on from
}

// Event is something that happens at a time: a method that runs, a service
// that depends on another, a DHCP lease. Settle carries it out.
type Event struct {
	At   time.Time `json:"at"`
	Kind string    `json:"kind"`
	Zone string    `json:"zone,omitempty"`
	Name string    `json:"name,omitempty"`
}

// Fault is an armed disturbance.
type Fault struct {
	Name  string        `json:"name"`            // the knob: fail, hang, half, busy, maintenance, kill, …
	Match string        `json:"match"`           // which commands: words of the argv, in order
	Times int           `json:"times,omitempty"` // how often; 0 for always
	Skip  int           `json:"skip,omitempty"`  // matches to let pass first
	Text  string        `json:"text,omitempty"`  // stderr of a failure
	Exit  int           `json:"exit,omitempty"`
	Delay time.Duration `json:"delay,omitempty"`
}
