package propolis

import (
	"errors"

	"github.com/sledctl/sledctl/propolis/spec"
)

// The states of a machine. Stopped goes on to Destroyed by itself; Destroyed and
// Failed are final.
const (
	StateCreating  = "Creating" // made, not yet run
	StateStarting  = "Starting"
	StateRunning   = "Running"
	StateStopping  = "Stopping"
	StateStopped   = "Stopped"
	StateRebooting = "Rebooting"
	StateMigrating = "Migrating"
	StateFailed    = "Failed"
	StateDestroyed = "Destroyed"
)

// Final says whether no other state can follow.
func Final(state string) bool { return state == StateDestroyed || state == StateFailed }

// The states that can be asked for.
const (
	Run    = "Run"
	Stop   = "Stop"   // power off, without asking the guest
	Reboot = "Reboot" // reset, without asking the guest
)

// Instance is the machine of a server.
type Instance struct {
	Properties spec.Properties `json:"properties"`
	State      string          `json:"state"`
}

// Description is the machine of a server and what it consists of.
type Description struct {
	Instance
	// Spec is nil while the machine waits for the source of its migration. It
	// is not what was sent: see spec.Compare.
	Spec *spec.InstanceSpec
}

// Status is a state that a machine was in.
type Status struct {
	// Generation counts the states that were published, from 1.
	Generation uint64     `json:"gen"`
	State      string     `json:"state"`
	Migration  Migrations `json:"migration"`
}

// Migrations are the latest ones in each direction, nil if there was none.
type Migrations struct {
	In  *Migration `json:"migration_in,omitempty"`
	Out *Migration `json:"migration_out,omitempty"`
}

// Migration is one and how far it has come: Sync, RamPush, Pause, RamPushDirty,
// Device, RamPull, Server, Finish or Error.
type Migration struct {
	ID    string `json:"id"`
	State string `json:"state"`
}

// errIncomplete is a reply without a part that is always there.
var errIncomplete = errors.New("it lacks what a Propolis server always tells")

// check refuses what no Propolis server sends.
func (i Instance) check() error {
	if i.Properties.ID == "" || i.State == "" {
		return errIncomplete
	}
	return nil
}
