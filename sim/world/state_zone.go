package world

import "time"

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
