package api

import (
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/sled/instance/record"
)

// KeeperHeader names the keeper that a request is from (record.Keeper). Without it, a request is the operator's.
// Below /vmms it is then the control plane's or the operator's, whichever keeps the VM.
const KeeperHeader = "sledctl-keeper"

// The codes of answers of status 409 to a keeper.
const (
	CodeKeeper     = "KEPT_BY_ANOTHER"   // another one keeps the sled, or the instance
	CodeGeneration = "GENERATION_PASSED" // the sled has had the generation, or a higher one
)

// Keeper is the answer to GET /keeper: who may place new instances on the sled.
type Keeper struct {
	Keeper record.Keeper `json:"keeper"`
	Since  *time.Time    `json:"since"` // null: it was never handed over
}

// KeeperOf returns a sled's keeper as it is served.
func KeeperOf(k record.SledKeeper) Keeper {
	if k.Since.IsZero() {
		return Keeper{Keeper: k.Keeper}
	}
	return Keeper{k.Keeper, &k.Since}
}

// PutKeeper is the body of PUT /keeper.
type PutKeeper struct {
	Keeper record.Keeper `json:"keeper"`
	// From is who must keep the sled now; else the answer is 409.
	From record.Keeper `json:"from"`
}

// PutInstanceKeeper is the body of PUT /instances/{instance}/keeper.
type PutInstanceKeeper struct {
	Keeper record.Keeper `json:"keeper"`
	// Generation is that of the new keeper, above the last one of the instance; the operator
	// gives none.
	Generation uint64 `json:"generation,omitempty"`
}

// PutMigration is the body of PUT /instances/{instance}/migration.
type PutMigration struct {
	// To is the target, one of the sleds in the file of the agent's user (sledctl sled list); absent:
	// that of the migration which the instance is in.
	To string `json:"to,omitempty"`
	// Shared says that the VM's disks are the same files on both sleds.
	Shared bool `json:"shared_disks,omitempty"`
	// Cancel takes a migration back that has not moved the VM.
	Cancel bool `json:"cancel,omitempty"`
}

// PutRegistration is the body of PUT /instances/{instance_id}/registration: a VM that a keeper
// other than the operator wants on the sled.
type PutRegistration struct {
	PropolisID uuid.UUID `json:"propolis_id"`
	// Generation is above each that the sled has had for the instance.
	Generation uint64 `json:"generation"`
	// Migration is the id of the one by which the VM is to come from another sled; absent: it is
	// made here.
	Migration *uuid.UUID `json:"migration_id,omitempty"`
	// Shared says that the VM's disks, which a migration does not move, are the same files on
	// both sleds.
	Shared bool `json:"shared_disks,omitempty"`
	// Document describes the instance. Its id and propolis_id may be left out.
	Document PutInstance `json:"document"`
}

// Capacity is what a sled can hold, and what is recorded to be on it. Sizes are in bytes.
type Capacity struct {
	Time      time.Time      `json:"time"`
	Keeper    record.Keeper  `json:"keeper"`
	CPUs      int            `json:"cpus"` // processors that are on-line; 0: the host did not tell
	Memory    CapacityMemory `json:"memory"`
	Pools     []CapacityPool `json:"pools"`
	Instances []CapacityKept `json:"instances"` // what each keeper has, those without instances left out
	Unknown   []string       `json:"unknown"`   // what could not be looked at, and why
}

// CapacityMemory is the memory that guests can have.
type CapacityMemory struct {
	// Reservoir says that sledctl places no VM beyond the VMM reservoir; else Total is what the
	// kernel allows.
	Reservoir bool   `json:"reservoir"`
	Total     uint64 `json:"total"`
	Free      uint64 `json:"free"`
}

// CapacityPool is a pool that zones and volumes can lie on.
type CapacityPool struct {
	Name  string `json:"name"`
	State string `json:"state"` // ready, or why not
	Size  uint64 `json:"size"`
	Free  uint64 `json:"free"`
	Zones bool   `json:"zones"` // it works, and zones can be made on it
}

// CapacityKept is what the instances of one keeper have, those that are stopped included.
type CapacityKept struct {
	Keeper    record.Keeper `json:"keeper"`
	Instances int           `json:"instances"`
	// Up counts those of them that have, or are to have, a VM now, and CPUs and Memory what
	// those take.
	Up     int    `json:"up"`
	CPUs   int    `json:"cpus"`
	Memory uint64 `json:"memory"`
}

// Kept is the answer where another one keeps the sled or the instance.
func Kept(err *record.KeeperError) *Error {
	return &Error{Status: http.StatusConflict, Code: CodeKeeper, Message: err.Error(), Cause: err}
}

// Passed is the answer to a generation that has passed.
func Passed(err *record.GenerationError) *Error {
	return &Error{Status: http.StatusConflict, Code: CodeGeneration, Message: err.Error(), Cause: err}
}
