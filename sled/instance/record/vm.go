package record

import (
	"fmt"
	"slices"

	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host/fault"
)

// VMM makes an instance the control plane's: its first incarnation has the id that was
// registered, and when that incarnation ends, the instance goes with it. It is not
// brought up again by anybody who does not name it, since it may run on
// another sled by then.
type VMM struct {
	PropolisID string `json:"propolis_id"`
	Boot       string `json:"boot"` // the sled's boot in which it was registered; it is of no use in another
	SiloID     string `json:"silo_id"`
	ProjectID  string `json:"project_id"`
	// Migration, if set, is that by which the VM comes here instead of being made.
	// Its Source is empty until the control plane says that it may.
	Migration *Migration `json:"migration,omitempty"`
}

// Ending is the end of an incarnation that is decided, and what its tombstone will say.
type Ending struct {
	PropolisID string `json:"propolis_id"`
	State      State  `json:"state"` // destroyed, failed
	Reason     string `json:"reason,omitempty"`
}

// Pending is what is still to be done of what the control plane was promised.
type Pending string

// What can be owed.
const (
	PendingNothing Pending = ""
	PendingUp      Pending = "up"   // bring it up
	PendingDown    Pending = "down" // remove its incarnation
	PendingLost    Pending = "lost" // say that it failed: it was from before the boot of the sled
)

// Pending is what is owed of a record in this boot of the sled.
func (r Record) Pending(boot string) Pending {
	switch {
	case r.Ending != nil:
		return PendingDown
	case r.VMM == nil:
		return PendingNothing
	case r.VMM.Boot != boot:
		return PendingLost
	case r.Wanted == WantedRunning && (r.Incarnation == nil || !r.Incarnation.Ensured):
		return PendingUp
	}
	return PendingNothing
}

// VM is the Propolis id of the VM that the control plane can speak of: that of
// the incarnation, or the one under which an incarnation will be. Empty: there is none.
func (r Record) VM() string {
	switch {
	case r.Incarnation != nil:
		return r.Incarnation.PropolisID
	case r.VMM != nil:
		return r.VMM.PropolisID
	}
	return ""
}

// Arrival is the migration by which the control plane's VM is to come here; nil if
// it is not, or has come.
func (r Record) Arrival() *Migration {
	if r.VMM == nil || r.VMM.Migration == nil || r.Incarnation != nil && r.Incarnation.Migration == r.VMM.Migration.ID {
		return nil
	}
	return r.VMM.Migration
}

// Stopped is the record of an instance whose incarnation is gone, and that is to stay so.
func (r Record) Stopped(at operation.Stamp) Record {
	r = r.Renewed().Freed()
	r.Incarnation, r.Leaving, r.Ending, r.Wanted = nil, nil, nil, WantedStopped
	r.Generation, r.Updated, r.Began = r.Generation+1, at.Now, at.Now
	return r
}

// ChosenID is the id that the control plane has chosen for the next incarnation; empty if
// it has not, or an incarnation had it already.
func (r Record) ChosenID() string {
	if r.VMM == nil || slices.ContainsFunc(r.Incarnations(), func(incarnation Incarnation) bool { return incarnation.PropolisID == r.VMM.PropolisID }) {
		return ""
	}
	return r.VMM.PropolisID
}

// VMIDs are the Propolis ids of the incarnations that count, those of VMs that ended with an
// earlier boot of the sled, and those that the control plane knows of besides.
func (r Record) VMIDs(counts func(Incarnation) bool) []string {
	var all []string
	for _, incarnation := range r.Incarnations() {
		if counts(incarnation) {
			all = append(all, incarnation.PropolisID)
		}
		if incarnation.Was != "" {
			all = append(all, incarnation.Was)
		}
	}
	if r.VMM != nil && !slices.Contains(all, r.VMM.PropolisID) {
		all = append(all, r.VMM.PropolisID)
	}
	return all
}

// EndingError is an instance whose end is decided.
type EndingError struct{ Name string }

// Error names it.
func (e *EndingError) Error() string {
	return fmt.Sprintf("instance %q is ending, as the control plane has asked", e.Name)
}

func (*EndingError) Kind() fault.Kind { return fault.Failed }

// ComesFrom takes in where a VM is to come from. One that has come is as any
// other.
func (r *Record) ComesFrom(source string) error {
	var m Migration
	if r.VMM != nil && r.VMM.Migration != nil {
		m = *r.VMM.Migration
	}
	switch {
	case source == "" && r.Arrival() == nil, m.Source == source && source != "":
		return nil
	case source == "":
		return &InputError{Field: "state", Value: "running", Want: "migration_target: the VM was registered to arrive by migration " + m.ID}
	case m.ID == "":
		return &InputError{Field: "state", Value: "migration_target", Want: "running: the VM was not registered to arrive by a migration"}
	case m.Source != "":
		return &InputError{Field: "src_propolis_addr", Value: source, Want: m.Source + ", from where it arrives already"}
	}
	vmm := *r.VMM
	vmm.Migration = &Migration{ID: m.ID, Source: source}
	r.VMM, r.Generation = &vmm, r.Generation+1
	return nil
}
