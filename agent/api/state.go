// Package api is what the agent says over HTTP: the shapes of omicron's sled
// agent (omicron sled-agent/api and sled-agent/types/versions), with the versions
// in which they came, and what it says beyond them.
package api

import (
	"time"

	"github.com/google/uuid"
)

// VMState is a state of a VM in the control plane's words.
type VMState string

// The states. A VM is never shown as stopped: after it has stopped, it cannot be
// started before all of it is gone (omicron common/src/instance.rs).
const (
	Starting  VMState = "starting"
	Running   VMState = "running"
	Stopping  VMState = "stopping"
	Stopped   VMState = "stopped"
	Rebooting VMState = "rebooting"
	Migrating VMState = "migrating"
	Failed    VMState = "failed"
	Destroyed VMState = "destroyed"
)

// VMStates are all of them.
func VMStates() []VMState {
	return []VMState{Starting, Running, Stopping, Stopped, Rebooting, Migrating, Failed, Destroyed}
}

// Final says whether no other state can follow.
func (s VMState) Final() bool { return s == Failed || s == Destroyed }

// Runtime is a state of a VM and the generation at which it came.
type Runtime struct {
	State       VMState   `json:"state"`
	Gen         uint64    `json:"gen"` // from 1, below 2^53
	TimeUpdated time.Time `json:"time_updated"`
}

// MigrationState is how far a migration has come.
type MigrationState string

// The states of migrations.
const (
	MigrationPending    MigrationState = "pending"
	MigrationInProgress MigrationState = "in_progress"
	MigrationFailed     MigrationState = "failed"
	MigrationCompleted  MigrationState = "completed"
)

// MigrationStates are all of them.
func MigrationStates() []MigrationState {
	return []MigrationState{MigrationPending, MigrationInProgress, MigrationFailed, MigrationCompleted}
}

// Migration is a migration into a sled or out of it.
type Migration struct {
	ID          uuid.UUID      `json:"migration_id"`
	State       MigrationState `json:"state"`
	Gen         uint64         `json:"gen"`
	TimeUpdated time.Time      `json:"time_updated"`
}

// SledVMState is the answer to GET /vmms/{propolis_id}/state, and the body of
// the upcall. It is the same in all versions.
type SledVMState struct {
	Runtime      Runtime    `json:"vmm_state"`
	MigrationIn  *Migration `json:"migration_in"`  // null: none
	MigrationOut *Migration `json:"migration_out"` // null: none
}

// VM is one VM of GET /vmms and of the event streams. Its keys are those of
// sledctl, not of the sled agent, which has no such list.
type VM struct {
	PropolisID  uuid.UUID `json:"propolis_id"`
	InstanceID  string    `json:"instance_id"`
	Name        string    `json:"name"`
	State       VMState   `json:"state"`
	Reason      string    `json:"reason"` // why, where there is more to say
	Generation  uint64    `json:"generation"`
	TimeUpdated time.Time `json:"time_updated"`
}

// Page is an answer to GET /vmms.
type Page struct {
	Items    []VM   `json:"items"`
	NextPage string `json:"next_page,omitempty"` // the page_token of the next one; empty: this is the last
}
