// Package status says whether a sled is well: what is wrong with it, in the order of
// urgency, and for each problem the command to type. Judge is pure: what was looked at
// goes in, the Status comes out. Look takes no lock of an operation, and writes nothing.
package status

import (
	"slices"
	"time"

	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/storage"
)

// Severity is how urgent a problem is.
type Severity string

// The severities.
const (
	Trouble   Severity = "trouble"   // something that was wanted does not work
	Attention Severity = "attention" // it works, and an operator has to look at it
)

// Sign is the letter before a problem.
func (s Severity) Sign() string {
	if s == Trouble {
		return "!"
	}
	return "~"
}

// Verdict is what a sled is, in a word: that of its worst problem.
type Verdict string

// The verdicts, from good to bad.
const (
	IsOK        Verdict = "OK"
	IsAttention Verdict = "ATTENTION"
	IsTrouble   Verdict = "TROUBLE"
	IsUnknown   Verdict = "UNKNOWN" // the ledger cannot be read, so nobody knows what is wanted
)

// Status is how a sled is.
type Status struct {
	Sled      Sled      `json:"sled"`
	Verdict   Verdict   `json:"verdict"`
	Problems  []Problem `json:"problems"`
	Instances Instances `json:"instances"`
	VMs       []VM      `json:"vms"`
	Disks     []Disk    `json:"disks"`
	Pools     []Pool    `json:"pools"`
	Ledger    Ledger    `json:"ledger"`
	Memory    *Memory   `json:"memory"` // null: the host did not tell
	CPUs      CPUs      `json:"cpus"`
	Network   Network   `json:"network"`
	Agent     Agent     `json:"agent"`
	Doctor    *Doctor   `json:"doctor"` // null: doctor has not run since the sled booted
	Work      []Work    `json:"work"`
	Last      []Last    `json:"last"`
	Unknown   []string  `json:"unknown"` // what could not be looked at, and why
}

// Sled is which sled it is.
type Sled struct {
	Name      string `json:"name"`
	Release   string `json:"release"` // of its system; empty: not known
	Simulated bool   `json:"simulated"`
	// Keeper is who keeps the sled; empty: the ledger cannot be read.
	Keeper record.Keeper `json:"keeper"`
	Time   time.Time     `json:"time"` // when it was looked at
	// Booted is since when it is up, and Uptime how long that is; null: its kernel did not tell.
	Booted *time.Time `json:"time_booted"`
	Uptime *int64     `json:"uptime_s"`
}

// Problem is one thing that is wrong. What follows from it is part of it.
type Problem struct {
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	Subject  Subject  `json:"subject"`
	Text     string   `json:"text"`
	// Reason is the end of Text, behind a colon: why it is so; empty: Text has no such end.
	Reason string `json:"reason,omitempty"`
	// Since is when it began, null where nothing tells.
	Since *time.Time `json:"since"`
	// NotBefore is where there is no Since: it began at some time after this; nil: not known.
	NotBefore *time.Time `json:"not_before,omitempty"`
	// Hands is what must be done by hand before Next; empty: nothing.
	Hands string `json:"hands,omitempty"`
	// Next are the commands to type, as they stand.
	Next []string `json:"next"`
	// Count is how many things are wrong in this way, where they are counted.
	Count int `json:"count,omitempty"`
}

// Subject is what a problem is about.
type Subject struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	ID   string `json:"id,omitempty"`
}

// Instances counts the VMs.
type Instances struct {
	Total    int            `json:"total"`
	WantedUp int            `json:"wanted_up"`
	Up       int            `json:"up"` // of those that are wanted up
	ByState  map[string]int `json:"by_state"`
}

// VM is the VM of an instance.
type VM struct {
	Name   string        `json:"name"`
	ID     string        `json:"id"` // of its instance
	State  string        `json:"state"`
	Reason string        `json:"reason"` // for its state; empty: none is needed
	Wanted string        `json:"wanted"`
	Since  *time.Time    `json:"since"` // when its state began; null: not known
	Keeper record.Keeper `json:"keeper"`
	CPUs   int           `json:"cpus"`
	Memory uint64        `json:"memory"` // in bytes
}

// Disk is a disk in its slot.
type Disk struct {
	Name   string `json:"name"`
	Slot   string `json:"slot"`
	Serial string `json:"serial"`
	State  string `json:"state"`
	Pool   string `json:"pool"`
}

// Pool is a pool of the sled. Sizes are in bytes.
type Pool struct {
	Name  string `json:"name"`
	State string `json:"state"`
	Size  uint64 `json:"size"`
	Used  uint64 `json:"used"`
	Free  uint64 `json:"free"`
	VMs   int    `json:"vms"` // that have their zone or a disk there
}

// Percent is how much of a pool is in use.
func (p Pool) Percent() int {
	if p.Size < 100 {
		return 0
	}
	return int(p.Used / (p.Size / 100))
}

// Works says whether a pool answers.
func (p Pool) Works() bool { return p.State == "ready" || p.State == "full" || p.State == "differs" }

// Ledger is where the ledger is kept.
type Ledger struct {
	Copies []Copy `json:"copies"`
	Epoch  uint64 `json:"epoch"`
	Seq    uint64 `json:"seq"`
	// Written is when its newest copy was written to; null: not known.
	Written *time.Time `json:"time_written"`
}

// Copy is one copy of the ledger that counts.
type Copy struct {
	ID      string `json:"id"`
	Pool    string `json:"pool"`
	Verdict string `json:"verdict"`
}

// Sound is how many copies have all that was written.
func (l Ledger) Sound() (n int) {
	for _, c := range l.Copies {
		if slices.Contains([]string{"member", "behind", "torn"}, c.Verdict) {
			n++
		}
	}
	return n
}

// Memory is that of the guests, in bytes.
type Memory struct {
	Limit    uint64 `json:"limit"`    // that guests may have
	Reserved uint64 `json:"reserved"` // set aside for guests, in use or not
	Used     uint64 `json:"used"`     // that guests have
}

// CPUs are those of the VMs that are up.
type CPUs struct {
	VCPUs int `json:"vcpus"`
}

// Network is how VMs are connected.
type Network struct {
	Link    string `json:"link"` // that control VNICs lie over
	Control int    `json:"control_vnics"`
	Guest   int    `json:"guest_vnics"`
}

// Agent is sledctl agent on this sled.
type Agent struct {
	Running bool       `json:"running"`
	PID     int        `json:"pid,omitempty"`
	Since   *time.Time `json:"since"` // null: it does not run
	Nexus   string     `json:"nexus"` // the control plane that it is to notify; empty: none
}

// Doctor is what sledctl doctor found when it last ran.
type Doctor struct {
	Verdict string    `json:"verdict"` // ok, warn, fail
	Failed  int       `json:"failed"`
	Warned  int       `json:"warned"`
	Summary string    `json:"summary"`
	Time    time.Time `json:"time"`
}

// Work is an operation that is at work.
type Work struct {
	Subject Subject   `json:"subject"`
	Verb    string    `json:"verb"`
	PID     int       `json:"pid"`
	User    string    `json:"user,omitempty"`
	Since   time.Time `json:"since"`
	Command string    `json:"command,omitempty"` // the host command that it waits for
	// Step is the verb of the step that runs, the At-th of Steps.
	Step  string `json:"step,omitempty"`
	At    int    `json:"at,omitempty"`
	Steps int    `json:"steps,omitempty"`
	// Migration is what the VM is in; nil: in none.
	Migration *Moving `json:"migration,omitempty"`
}

// Moving is a migration of a VM.
type Moving struct {
	Direction string `json:"direction"`       // arriving, departing
	Sled      string `json:"sled"`            // the other one
	Phase     string `json:"phase,omitempty"` // as Propolis publishes it
}

// Last is an operation that has ended.
type Last struct {
	ID      string    `json:"id"`
	Verb    string    `json:"verb"`
	Subject Subject   `json:"subject"`
	Start   time.Time `json:"start"`
	Elapsed int64     `json:"elapsed_ms"`
	Error   string    `json:"error,omitempty"`
}

// diskOf is a disk of the listing of storage.
func diskOf(i storage.Item) Disk {
	return Disk{Name: i.Name, Slot: i.On, Serial: i.Serial, State: i.State, Pool: i.Pool}
}
