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
	Format    int       `json:"format"`
	Seed      uint64    `json:"seed"`                // of every number that the sled draws
	Mode      Mode      `json:"mode"`                // the distribution
	Latency   string    `json:"latency"`             // none, helios2021, helios
	Ramdisk   bool      `json:"ramdisk,omitempty"`   // the root is on one although the mode's is not; see Forgets
	Installed bool      `json:"installed,omitempty"` // the root is on a pool although the mode's is not
	Build     string    `json:"build,omitempty"`     // of propolis-server; see Options
	Booted    time.Time `json:"booted"`
	Boots     int       `json:"boots"`
	Version   uint64    `json:"version"` // raised by every transaction that changes something

	// Image are files that are part of the system's image, next to those that every
	// image has: a root on a RAM disk has them again after a reboot, as they were.
	Image []string `json:"image,omitempty"`

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

	Reservoir uint64 `json:"reservoir,omitempty"` // of the VMM, in bytes; see QueryReservoir

	// Neighbours are the directories of the sleds that can be reached, and Broken
	// the migrations of which a side that was here ended too early.
	Neighbours []string          `json:"neighbours,omitempty"`
	Broken     []BrokenMigration `json:"broken,omitempty"`

	NAPI  *NAPI  `json:"napi,omitempty"`  // of the data centre; nil: there is none
	Nexus *Nexus `json:"nexus,omitempty"` // the control plane; nil: there is none
}

// Mode is a distribution: which brands, columns and habits the sled has.
type Mode string

// The distributions. What differs between them is said where it shows.
const (
	OmniOS  Mode = "omnios"
	Helios  Mode = "helios"
	SmartOS Mode = "smartos"
)

// Zone is a line of /etc/zones/index, its configuration, and its kernel zone.
type Zone struct {
	Name   string `json:"name"`
	State  string `json:"state"`  // of the index: configured, incomplete, installed
	UUID   string `json:"uuid"`   // empty while configured
	Config Config `json:"config"` // /etc/zones/NAME.xml
	// Kernel is nil while the kernel has no such zone.
	Kernel *Kernel `json:"kernel,omitempty"`
	// Daemon is what the zone's zoneadmd(8) is about, or was when it last failed.
	Daemon *Daemon `json:"daemon,omitempty"`
}

// Kernel is a zone as the kernel knows it.
type Kernel struct {
	ID     int       `json:"id"`     // 1..9999, new at every boot
	State  string    `json:"state"`  // ready, mounted, running, shutting_down, down
	Config Config    `json:"config"` // frozen when the zone got ready
	Booted time.Time `json:"booted"`
	Mounts []string  `json:"mounts"` // directories as the global zone names them, in the order of mounting
	// Loops are the loopback mounts among them, and what was mounted over one,
	// in the same order.
	Loops []Loop `json:"loops,omitempty"`
}

// Loop is a directory or file of a zone that shows another place of the sled.
type Loop struct {
	Dir      string `json:"dir"`     // inside the zone
	Special  string `json:"special"` // as the global zone names it
	ReadOnly bool   `json:"read_only,omitempty"`
}

// Daemon is a zoneadmd(8) at work: it carries on when the command that called
// it is killed.
type Daemon struct {
	Command string   `json:"command"` // boot, halt, reboot, shutdown
	Busy    bool     `json:"busy"`
	Failed  bool     `json:"failed,omitempty"`
	Lines   []string `json:"lines,omitempty"` // what it has to say to its caller
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
	Class      string            `json:"class"`          // phys, aggr, vlan, vnic, etherstub
	Over       string            `json:"over,omitempty"` // of a VNIC or VLAN; of an aggregation its ports, with commas
	MAC        string            `json:"mac,omitempty"`  // padded, lower case
	MACType    string            `json:"mac_type,omitempty"`
	VLAN       int               `json:"vlan,omitempty"`
	Temporary  bool              `json:"temporary,omitempty"`
	Zone       string            `json:"zone,omitempty"` // on loan to this zone; empty: the global zone
	Up         bool              `json:"up"`
	Properties map[string]string `json:"properties,omitempty"` // those that were set: mtu, …
	// Saved are the persistent values of properties that were changed until the
	// next reboot; empty: the default.
	Saved map[string]string `json:"saved,omitempty"`
	// Inactive is a persistent link that was deleted until the next reboot.
	Inactive bool `json:"inactive,omitempty"`
}

// Disk is a slot of the sled with the disk in it, blank or not.
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

	// Layout is its partition table: "" for none, LayoutM2, LayoutWhole.
	Layout string `json:"layout,omitempty"`
	// Failing is set while all its input and output ends with EIO.
	Failing bool `json:"failing,omitempty"`
	// Scraps are its slices on which the labels of a destroyed pool are left.
	Scraps []string `json:"scraps,omitempty"`
	// Image is what was on it at an earlier time.
	Image *Image `json:"image,omitempty"`
}

// Image is a copy of what is on a disk. The contents of its file systems lie
// aside, see Dataset.Tree.
type Image struct {
	Layout   string     `json:"layout"`
	Scraps   []string   `json:"scraps,omitempty"`
	Serial   string     `json:"serial"` // of the disk that it is of
	Pool     *Pool      `json:"pool,omitempty"`
	Datasets []*Dataset `json:"datasets,omitempty"`
}

// Pool is a pool, imported or not.
type Pool struct {
	Name       string            `json:"name"`
	GUID       uint64            `json:"guid"`
	Vdevs      []string          `json:"vdevs"` // disks (c1t0d0), slices (c1t0d0s5) or absolute file names
	Size       uint64            `json:"size"`
	Health     string            `json:"health"`
	Imported   bool              `json:"imported"`
	Properties map[string]string `json:"properties,omitempty"`

	// What its labels say next to that.
	TXG      uint64 `json:"txg,omitempty"`      // of the last change of its configuration
	HostID   uint32 `json:"host_id,omitempty"`  // of the system that had it last
	Accessed int64  `json:"accessed,omitempty"` // when that was, in seconds since 1970
	Exported bool   `json:"exported,omitempty"` // it was let go by zpool export

	// Unloaded is a pool that the system knows of, and could not open when it
	// booted. Nothing of it can be reached.
	Unloaded bool `json:"unloaded,omitempty"`
	// Orphaned is a pool that the system goes on with although its disk was
	// replaced: no label of it is left.
	Orphaned bool `json:"orphaned,omitempty"`
	// Ballast is what fills the pool next to its datasets, in bytes.
	Ballast uint64 `json:"ballast,omitempty"`
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
	Tree     string            `json:"tree,omitempty"`      // directory of its contents while it is not mounted; empty: it has none yet
	Time     int64             `json:"time,omitempty"`      // of its creation, in seconds since 1970
	Deferred bool              `json:"deferred,omitempty"`  // a snapshot that is destroyed once nothing depends on it
	Key      string            `json:"key,omitempty"`       // encryption roots: the SHA-256 of the key
	KeyReady bool              `json:"key_ready,omitempty"` // encryption roots: the key is loaded
	// Immutable are directories in which nothing can be made, by their names
	// from the top of the file system.
	Immutable []string `json:"immutable,omitempty"`
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

// Repository is the SMF of a running zone: what svc.startd knows of it, and
// what svc.configd keeps in memory. The repository itself is a file of the
// zone, /etc/svc/repository.db (see package scf).
type Repository struct {
	// Door is when svc.configd answers; before, "repository server unavailable".
	// The zero time: never, its file cannot be read.
	Door      time.Time           `json:"door"`
	Instances map[string]*Service `json:"instances"` // by FMRI svc:/a/b:c; those that the restarter has taken in
	// Pace is how long a start method that does nothing takes in this zone.
	Pace time.Duration `json:"pace,omitempty"`
	// Milestone is what svcadm milestone has chosen; empty: all.
	Milestone string `json:"milestone,omitempty"`
}

// Service is a service instance as its restarter knows it.
type Service struct {
	FMRI      string `json:"fmri"`
	Enabled   bool   `json:"enabled"`             // general/enabled
	Temporary *bool  `json:"temporary,omitempty"` // general_ovr/enabled: enable or disable -t
	// Timeline holds restarter/state, with the next state behind a > while in
	// transition ("offline>online"), and the generation of the restarter group.
	Timeline  []Timepoint  `json:"timeline"`
	Auxiliary string       `json:"auxiliary,omitempty"` // restarter/auxiliary_state
	Depends   []Dependency `json:"depends,omitempty"`
	Start     Method       `json:"start"`
	Stop      Method       `json:"stop"`
	Refresh   Method       `json:"refresh"`
	Duration  string       `json:"duration,omitempty"`  // contract, transient, child
	Contract  int          `json:"contract,omitempty"`  // of the running start method, or what it left
	PID       int          `json:"pid,omitempty"`       // of the last start method
	Started   time.Time    `json:"started,omitzero"`    // the last start method
	Wait      int          `json:"wait,omitempty"`      // its status, as wait(3C) gives it
	Failures  int          `json:"failures,omitempty"`  // start methods that failed in a row
	Restarts  []time.Time  `json:"restarts,omitempty"`  // the last starts, oldest first
	Restarter string       `json:"restarter,omitempty"` // of those that svc.startd does not run
}

// Dependency is one dependency of a service.
type Dependency struct {
	Grouping  string   `json:"grouping"`             // require_all, require_any, optional_all, exclude_all
	RestartOn string   `json:"restart_on,omitempty"` // none, error, restart, refresh
	Type      string   `json:"type,omitempty"`       // service, path
	FMRIs     []string `json:"fmris"`
}

// Method is an exec_method.
type Method struct {
	Exec    string `json:"exec,omitempty"`
	Timeout uint64 `json:"timeout,omitempty"` // seconds; 0: none
}

// Process is a long-running process that a service started.
type Process struct {
	PID     int       `json:"pid"`
	Zone    string    `json:"zone"`
	FMRI    string    `json:"fmri,omitempty"` // whose contract it is in
	Argv    []string  `json:"argv"`
	Listen  string    `json:"listen,omitempty"` // IP:PORT; [::]:PORT and 0.0.0.0:PORT are any address of the zone
	Started time.Time `json:"started"`          // from when it listens
	OSPID   int       `json:"os_pid,omitempty"` // of the stand-in process, if there is one
	VM      *VM       `json:"vm,omitempty"`     // of a propolis-server
	// Viewers counts those who have watched its screen; the last one still does.
	Viewers uint64 `json:"viewers,omitempty"`
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
