package world

import (
	"time"
)

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
	Exported bool   `json:"exported,omitempty"` // zpool export has released it

	// Unloaded is a pool that the system knows of, and could not open when it
	// booted. Nothing of it can be reached.
	Unloaded bool `json:"unloaded,omitempty"`
	// Orphaned is a pool that the system keeps using although its disk was
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
	Volsize  string            `json:"volsize,omitempty"`   // of a snapshot: what its volume had then
	Deferred bool              `json:"deferred,omitempty"`  // a snapshot that is destroyed once nothing depends on it
	Key      string            `json:"key,omitempty"`       // encryption roots: the SHA-256 of the key
	KeyReady bool              `json:"key_ready,omitempty"` // encryption roots: the key is loaded
	// Immutable are directories in which nothing can be made, by their names
	// from the top of the file system.
	Immutable []string `json:"immutable,omitempty"`
	// Sent is the guid of the snapshot that a snapshot was received from, which it has, too.
	Sent uint64 `json:"sent,omitempty"`
	// Partial is what a volume has of a stream that did not end; nil: none.
	Partial *Partial `json:"partial,omitempty"`
}

// Partial is the state of zfs receive -s after it was interrupted.
type Partial struct {
	Snapshot string `json:"snapshot"` // that is received, as its sender names it
	To       uint64 `json:"to"`       // its guid
	From     uint64 `json:"from"`     // that of the one that the stream begins with; 0: of none
	Volsize  string `json:"volsize"`
	Bytes    uint64 `json:"bytes"` // of the stream's records; the volume is done up to Offset
	Offset   uint64 `json:"offset"`
	New      bool   `json:"new"` // the volume was made for it
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
	// Milestone is read and not used: older versions kept the chosen milestone there.
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
	Refresh   Method       `json:"refresh,omitzero"`    // of older versions; not used
	Duration  string       `json:"duration,omitempty"`  // contract, transient, child
	Contract  int          `json:"contract,omitempty"`  // of the running start method, or what it left
	PID       int          `json:"pid,omitempty"`       // of the last start method
	Started   time.Time    `json:"started,omitzero"`    // the last start method
	Wait      int          `json:"wait,omitempty"`      // its status, as wait(3C) gives it
	Program   string       `json:"program,omitempty"`   // method that is due to run as a program: start, stop
	Failures  int          `json:"failures,omitempty"`  // start methods that failed in a row
	Restarts  []time.Time  `json:"restarts,omitempty"`  // the last starts, oldest first
	Restarter string       `json:"restarter,omitempty"` // of older versions; not used
}

// Dependency is one dependency of a service.
type Dependency struct {
	Grouping  string   `json:"grouping"`             // require_all, require_any, optional_all
	RestartOn string   `json:"restart_on,omitempty"` // none, error, restart
	Type      string   `json:"type,omitempty"`       // of older versions; not used
	FMRIs     []string `json:"fmris"`
}

// Method is an exec_method.
type Method struct {
	Exec    string `json:"exec,omitempty"`
	Timeout uint64 `json:"timeout,omitempty"` // seconds; 0: none
}

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
	ID     int       `json:"id"`              // 1..9999, new at every boot
	State  string    `json:"state"`           // ready, mounted, running, shutting_down, down
	Config Config    `json:"config,omitzero"` // frozen when the zone got ready; in a file, none is the zone's
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

// OPTE is what the driver xde keeps (oxidecomputer/opte, xde/src/xde.rs): none of it
// outlives a boot.
type OPTE struct {
	Underlay []string       `json:"underlay,omitempty"` // the two links below all ports; nil: not set
	Ports    []*OPTEPort    `json:"ports,omitempty"`
	VPCs     []uint32       `json:"vpcs,omitempty"` // all that had an address once
	V2P      []OPTEMapping  `json:"v2p,omitempty"`  // where addresses of VPCs are
	V2B      []OPTEBoundary `json:"v2b,omitempty"`  // what leaves the rack
}

// OPTEPort is a port, which is a link of class misc of the same name.
type OPTEPort struct {
	Name       string   `json:"name"`
	MAC        string   `json:"mac"` // padded, lower case
	IP         string   `json:"ip"`
	Subnet     string   `json:"subnet"`
	Gateway    string   `json:"gateway"`
	GatewayMAC string   `json:"gateway_mac"`
	VNI        uint32   `json:"vni"`
	Physical   string   `json:"physical"`       // the sled's address on the underlay
	SNAT       string   `json:"snat,omitempty"` // IP/FIRST-LAST
	Ephemeral  string   `json:"ephemeral,omitempty"`
	Floating   []string `json:"floating,omitempty"`
	// Rules are those of its layers, by layer and direction: "firewall in".
	Rules map[string]*OPTERules `json:"rules"`
}

// OPTERules are the rules of a layer in one direction, in the order in which they apply.
type OPTERules struct {
	Next  uint64     `json:"next"` // the id of the next one
	Rules []OPTERule `json:"rules"`
}

// OPTERule is one of them, with its predicates and its action as they are printed.
type OPTERule struct {
	ID         uint64   `json:"id"`
	Priority   uint16   `json:"priority"`
	Predicates []string `json:"predicates,omitempty"`
	Action     string   `json:"action"`
}

// OPTEMapping says on which sled an address of a VPC is.
type OPTEMapping struct {
	VNI      uint32 `json:"vni"`
	IP       string `json:"ip"`
	MAC      string `json:"mac"`
	Physical string `json:"physical"`
}

// OPTEBoundary says by which tunnels a prefix is reached.
type OPTEBoundary struct {
	Prefix  string   `json:"prefix"`
	Tunnels []string `json:"tunnels"`
}

// OPTE is what the driver keeps, to be read.
func (tx *Tx) OPTE() *OPTE {
	if tx.State.OPTE != nil {
		return tx.State.OPTE
	}
	return &OPTE{}
}

// KeepOPTE is OPTE, to be changed.
func (tx *Tx) KeepOPTE() *OPTE {
	tx.State.OPTE = tx.OPTE()
	return tx.State.OPTE
}
