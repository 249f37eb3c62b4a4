package api

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/peer/dropshot"
)

// VersionHeader names the version that a request speaks.
const VersionHeader = dropshot.VersionHeader

// The states that can be asked for.
const (
	WantRunning   = "running"
	WantStopped   = "stopped"
	WantReboot    = "reboot"
	WantMigration = "migration_target" // takes the VM in that another sled has
)

// PutState is the body of PUT /vmms/{propolis_id}/state.
type PutState struct {
	State Wanted `json:"state"`
}

// Wanted is a state that is asked for, with what it needs.
type Wanted struct {
	Type  string  `json:"type"`
	Value *Target `json:"value,omitempty"` // with WantMigration only
}

// Target says which server has the VM that is to be taken in.
type Target struct {
	Source string `json:"src_propolis_addr"` // ADDRESS:PORT
}

// UnmarshalJSON refuses what is no state that can be asked for.
func (w *Wanted) UnmarshalJSON(data []byte) error {
	type plain Wanted
	if err := json.Unmarshal(data, (*plain)(w)); err != nil {
		return err
	}
	all := []string{WantRunning, WantStopped, WantReboot, WantMigration}
	switch {
	case !slices.Contains(all, w.Type):
		return fmt.Errorf("state: type %q: want %s", w.Type, strings.Join(all, ", "))
	case w.Type == WantMigration && (w.Value == nil || w.Value.Source == ""):
		return fmt.Errorf("state: value: want src_propolis_addr")
	case w.Type == WantMigration:
		if _, err := netip.ParseAddrPort(w.Value.Source); err != nil {
			return fmt.Errorf("state: value: src_propolis_addr %q: want ADDRESS:PORT", w.Value.Source)
		}
	}
	return nil
}

// UnmarshalJSON refuses a body without a state.
func (p *PutState) UnmarshalJSON(data []byte) error {
	var body struct {
		State *Wanted `json:"state"`
	}
	if err := json.Unmarshal(data, &body); err != nil {
		return err
	}
	if body.State == nil {
		return fmt.Errorf("missing field `state`")
	}
	p.State = *body.State
	return nil
}

// StatePut is the answer to PUT /vmms/{propolis_id}/state.
type StatePut struct {
	Updated *SledVMState `json:"updated_runtime"` // null: it is to be asked for
}

// Unregistered is the answer to DELETE /vmms/{propolis_id}.
type Unregistered struct {
	Updated *SledVMState `json:"updated_runtime"` // null: nothing is known of it
}

// Health is the answer to GET /healthz.
type Health struct {
	Status string `json:"status"` // ok
	VMs    int    `json:"vmms"`
}
