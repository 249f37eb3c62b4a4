// Package world holds the state of a simulated sled and the transactions on
// it. It knows what an illumos machine keeps (zones, links, datasets, address
// objects, SMF repositories, processes) and nothing of sledctl.
//
// Nothing runs between commands: what will happen later is written down when
// it is decided, as Due events and timelines, and whoever looks at time t sees
// the sled as it is at t.
package world

import "time"

// Format is the version of the directory's layout. A directory of a newer
// format is refused.
const Format = 1

// State is all that a simulated sled is. It is stored as one JSON document.
type State struct {
	Format  int       `json:"format"`
	Seed    uint64    `json:"seed"`    // of every number that the sled draws
	Mode    Mode      `json:"mode"`    // the distribution
	Latency string    `json:"latency"` // none, helios2021, helios
	Booted  time.Time `json:"booted"`
	Boots   int       `json:"boots"`
	Version uint64    `json:"version"` // raised by every transaction that changes something

	// Counters never go back: zone ids, guids, transaction groups, draws.
	Counters map[string]uint64 `json:"counters"`

	Zones     []*Zone                `json:"zones"` // in the order of /etc/zones/index, without the global zone
	Links     []*Link                `json:"links"` // in the order of their making
	Disks     []*Disk                `json:"disks"`
	Pools     []*Pool                `json:"pools"`
	Datasets  map[string]*Dataset    `json:"datasets"` // by full name; snapshots too
	Stacks    map[string]*Stack      `json:"stacks"`   // IP, by zone name; "global" is always there
	Services  map[string]*Repository `json:"services"` // SMF, by zone name; only of zones that the kernel knows, and "global"
	Processes []*Process             `json:"processes"`
	Due       []*Event               `json:"due"` // sorted by time
	Faults    []*Fault               `json:"faults"`
}

// Mode is a distribution: which brands, columns and habits the sled has.
type Mode string

// The distributions (IC §0.1).
const (
	OmniOS  Mode = "omnios"
	Helios  Mode = "helios"
	SmartOS Mode = "smartos"
)

// Zone is a line of /etc/zones/index, its configuration, and its kernel zone.
type Zone struct {
	Name   string `json:"name"`
	State  string `json:"state"`  // of the index: configured, incomplete, installed
	UUID   string `json:"uuid"`   // empty while configured (IC §2.4)
	Config Config `json:"config"` // /etc/zones/NAME.xml
	// Kernel is nil while the kernel has no such zone.
	Kernel *Kernel `json:"kernel,omitempty"`
}

// Kernel is a zone as the kernel knows it.
type Kernel struct {
	ID     int       `json:"id"`     // 1..9999, new at every boot
	State  string    `json:"state"`  // ready, mounted, running, shutting_down, down
	Config Config    `json:"config"` // frozen when the zone got ready
	Booted time.Time `json:"booted"`
	Mounts []string  `json:"mounts"` // directories, in the order of mounting
}

// Config is a zone's configuration, with zonecfg's names.
type Config struct {
	Brand     string            `json:"brand"`
	Zonepath  string            `json:"zonepath"`
	Autoboot  bool              `json:"autoboot"`
	IPType    string            `json:"ip_type"` // exclusive, shared
	Globals   map[string]string `json:"globals,omitempty"`
	Resources []Resource        `json:"resources,omitempty"` // in the order of their adding
}

// Resource is one fs, net, device, rctl, attr, dataset, … of a zone.
type Resource struct {
	Type       string     `json:"type"`
	Properties []Property `json:"properties"`
}

// Property is one setting of a resource. Several values: fs options, rctl values.
type Property struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
}

// Link is a datalink.
type Link struct {
	Name       string            `json:"name"`
	Class      string            `json:"class"`          // phys, vnic, etherstub, …
	Over       string            `json:"over,omitempty"` // of a VNIC
	MAC        string            `json:"mac,omitempty"`  // padded, lower case
	MACType    string            `json:"mac_type,omitempty"`
	VLAN       int               `json:"vlan,omitempty"`
	Temporary  bool              `json:"temporary,omitempty"`
	Zone       string            `json:"zone,omitempty"` // on loan to this zone; empty: the global zone
	Up         bool              `json:"up"`
	Properties map[string]string `json:"properties,omitempty"` // mtu, …; also those not temporary
}

// Disk is a disk, blank or not.
type Disk struct {
	Name   string `json:"name"` // c1t0d0
	Kind   string `json:"kind"` // u2, m2
	Slot   int    `json:"slot"`
	Vendor string `json:"vendor"`
	Model  string `json:"model"`
	Serial string `json:"serial"`
	Size   uint64 `json:"size"` // bytes
	Gone   bool   `json:"gone,omitempty"`
	Pool   string `json:"pool,omitempty"` // whose label it carries
}

// Pool is a pool, imported or not.
type Pool struct {
	Name       string            `json:"name"`
	GUID       uint64            `json:"guid"`
	Vdevs      []string          `json:"vdevs"` // disk names or absolute file names
	Size       uint64            `json:"size"`
	Health     string            `json:"health"`
	Imported   bool              `json:"imported"`
	Properties map[string]string `json:"properties,omitempty"`
}

// Dataset is a file system, volume or snapshot.
type Dataset struct {
	Name     string            `json:"name"`
	Type     string            `json:"type"` // filesystem, volume, snapshot
	GUID     uint64            `json:"guid"`
	Created  uint64            `json:"created"` // transaction group
	Origin   string            `json:"origin,omitempty"`
	Local    map[string]string `json:"local,omitempty"`     // properties set here
	Mounted  string            `json:"mounted,omitempty"`   // where it is mounted, whatever its mountpoint says
	Used     uint64            `json:"used"`                // bytes of its own
	Tree     string            `json:"tree,omitempty"`      // directory of its contents under DIR/datasets
	KeyReady bool              `json:"key_ready,omitempty"` // encryption roots
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
	Persistent  bool   `json:"persistent,omitempty"`
}

// Timepoint is a state and from when it holds. A timeline is a list of them,
// oldest first; the last one whose time has come is the state.
type Timepoint struct {
	State      string    `json:"state"`
	Generation uint64    `json:"generation,omitempty"`
	From       time.Time `json:"from"`
}

// Repository is the SMF repository of a running zone.
type Repository struct {
	// Door is when svc.configd answers; before, "repository server unavailable".
	Door      time.Time           `json:"door"`
	Instances map[string]*Service `json:"instances"` // by FMRI svc:/a/b:c
}

// Service is a service instance.
type Service struct {
	FMRI       string                   `json:"fmri"`
	Enabled    bool                     `json:"enabled"`
	Temporary  *bool                    `json:"temporary,omitempty"`  // enable or disable -t
	Timeline   []Timepoint              `json:"timeline"`             // restarter states
	Properties map[string]PropertyValue `json:"properties,omitempty"` // "config/server_addr", live view
	Running    map[string]PropertyValue `json:"running,omitempty"`    // the snapshot that svcprop reads
	Depends    []Dependency             `json:"depends,omitempty"`
	Start      Method                   `json:"start"`
	Stop       Method                   `json:"stop"`
	Duration   string                   `json:"duration,omitempty"` // contract, transient, child
	Manifest   string                   `json:"manifest,omitempty"` // file that it came from, inside the zone
	Contract   int                      `json:"contract,omitempty"`
}

// PropertyValue is a typed SMF property.
type PropertyValue struct {
	Type   string   `json:"type"`
	Values []string `json:"values"`
}

// Dependency is one dependency of a service.
type Dependency struct {
	Grouping string   `json:"grouping"` // require_all, require_any, optional_all, exclude_all
	FMRIs    []string `json:"fmris"`
}

// Method is an exec_method.
type Method struct {
	Exec    string `json:"exec,omitempty"`
	Timeout int    `json:"timeout,omitempty"`
}

// Process is a long-running process that a service started.
type Process struct {
	PID     int       `json:"pid"`
	Zone    string    `json:"zone"`
	FMRI    string    `json:"fmri,omitempty"` // whose contract it is in
	Argv    []string  `json:"argv"`
	Listen  string    `json:"listen,omitempty"` // IP:PORT; [::]:PORT and 0.0.0.0:PORT are any address of the zone
	Started time.Time `json:"started"`
	OSPID   int       `json:"os_pid,omitempty"` // of the stand-in process, if there is one
	VM      *VM       `json:"vm,omitempty"`     // of a propolis-server
}

// VM is the machine inside a propolis-server. The propolis simulation owns
// its shape beyond the timeline.
type VM struct {
	Properties []byte      `json:"properties"` // JSON, as ensured
	Spec       []byte      `json:"spec"`       // JSON, as ensured
	Timeline   []Timepoint `json:"timeline"`   // Creating, Starting, …; generations from 1
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
