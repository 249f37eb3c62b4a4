package world

import "time"

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
