package record

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/propolis/spec"
)

// SentSpec is the machine that the Propolis of an instance was last asked for. It is
// kept apart from the record, which a listing reads, and as long.
type SentSpec struct {
	PropolisID string            `json:"propolis_id"`
	Time       time.Time         `json:"time"` // when it was decided
	Spec       spec.InstanceSpec `json:"spec"`
}

// LoadSent reads what was sent for an instance; false if nothing was, as for one
// that another tool has made.
func LoadSent(view ledger.View, id string) (SentSpec, bool, error) {
	value, ok := view.Get(naming.KeySent + id)
	if !ok {
		return SentSpec{}, false, nil
	}
	var s SentSpec
	if err := json.Unmarshal(value, &s); err != nil {
		return SentSpec{}, false, fmt.Errorf("what was sent for instance %s: %w", id, err)
	}
	return s, true, nil
}

// KeepSent writes down the request of a plan that sends one, before it is sent.
// Undone, what was sent before stands again; gone, where the instance is new.
func KeepSent(view ledger.View, d *operation.Decision, r Record, gone bool, at operation.Stamp) error {
	for _, a := range d.Plan.Actions {
		m, ok := SentBy(a.Step)
		if !ok {
			continue
		}
		value, err := json.Marshal(SentSpec{PropolisID: r.Incarnation.PropolisID, Time: at.Now, Spec: m})
		if err != nil {
			return err
		}
		key := naming.KeySent + r.ID
		d.OnStart = append(d.OnStart, ledger.Fact{Key: key, Value: value})
		if before, _ := view.Get(key); !gone {
			d.OnUndo = append(d.OnUndo, ledger.Fact{Key: key, Value: before})
		}
	}
	return nil
}

// SentBy is the machine that a step asks Propolis for.
func SentBy(step plan.Step) (spec.InstanceSpec, bool) {
	switch step := step.(type) {
	case propolis.Ensure:
		return *step.Request.Init.Spec, true
	case propolis.Arrive:
		return step.Machine, step.Request.Init.Migration != nil
	}
	return spec.InstanceSpec{}, false
}
