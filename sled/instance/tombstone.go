package instance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/migration"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// KeyEpoch counts the starts of agents on the sled. From the first on, each run
// of an instance that ends leaves a tombstone, no matter what ends it: a control plane
// reads a VM that is merely unknown as lost (omicron#10290).
const KeyEpoch = naming.KeyEpoch

// Tombstone is what is left of an incarnation that ended.
type Tombstone struct {
	PropolisID string       `json:"-"`
	Instance   string       `json:"instance"`
	Name       string       `json:"name"`
	State      record.State `json:"state"` // destroyed, failed
	Reason     string       `json:"reason,omitempty"`
	Time       time.Time    `json:"time"`
	// Migrations are its last ones, as far as they were seen.
	propolis.Migrations
}

// Tombstones lists the tombstones that still exist.
func Tombstones(view ledger.View) ([]Tombstone, error) {
	var all []Tombstone
	for key, value := range view.All(naming.KeyTombstone) {
		t := Tombstone{PropolisID: strings.TrimPrefix(key, naming.KeyTombstone)}
		if err := json.Unmarshal(value, &t); err != nil {
			return nil, fmt.Errorf("%s in the ledger: %w", key, err)
		}
		all = append(all, t)
	}
	return all, nil
}

// ForgetTombstone is the fact that takes the tombstone of an incarnation away.
func ForgetTombstone(propolisID string) ledger.Fact {
	return ledger.Fact{Key: naming.KeyTombstone + propolisID}
}

// Ended is how an incarnation of an instance ended as far as the ledger says, for a reader that
// found its VM missing: what its tombstone says, or what was decided; or that
// it was destroyed, if an open operation removes its zone.
// False: it says nothing.
func Ended(view ledger.View, id string, incarnation record.Incarnation) (Status, bool) {
	if value, ok := view.Get(naming.KeyTombstone + incarnation.PropolisID); ok {
		var t Tombstone
		if json.Unmarshal(value, &t) == nil {
			return Status{State: t.State, Reason: t.Reason}, true
		}
	}
	if now, _, err := record.Load(view, id); err == nil && now.Ending != nil && now.Ending.PropolisID == incarnation.PropolisID {
		return Status{State: now.Ending.State, Reason: now.Ending.Reason}, true
	}
	for _, in := range operation.Open(view) {
		if slices.ContainsFunc(in.Removes, func(o operation.Object) bool { return o.Kind == "zone" && o.Name == incarnation.Zone }) {
			return Status{State: "destroyed"}, true
		}
	}
	return Status{}, false
}

// tombstonesFor are the tombstones of the VMs that facts end: of those that the
// record of an instance had before and has not afterwards. How one ended, was
// decided, or what was seen of the present incarnation says it; those that were being
// being removed before were destroyed.
func tombstonesFor(b layout.Blueprint, view ledger.View, id string, facts []ledger.Fact, seen Observed, now time.Time) ([]ledger.Fact, error) {
	if _, watched := view.Get(KeyEpoch); !watched {
		return nil, nil
	}
	old, known, err := record.Load(view, id)
	if err != nil || !known {
		return nil, err
	}
	next, written, err := record.Written(facts, id)
	if err != nil || !written {
		return nil, err
	}
	left := next.VMIDs(func(record.Incarnation) bool { return true })
	var stones []ledger.Fact
	for _, vm := range old.VMIDs(func(r record.Incarnation) bool { return r.Ensured }) {
		if slices.Contains(left, vm) {
			continue
		}
		value, err := json.Marshal(tombstoneFor(b, view, old, vm, seen, now))
		if err != nil {
			return nil, err
		}
		stones = append(stones, ledger.Fact{Key: naming.KeyTombstone + vm, Value: value})
	}
	return stones, nil
}

func tombstoneFor(b layout.Blueprint, view ledger.View, old record.Record, vm string, seen Observed, now time.Time) Tombstone {
	t := Tombstone{Instance: old.ID, Name: old.Name, State: "destroyed", Time: now}
	if slices.ContainsFunc(old.Incarnations(), func(incarnation record.Incarnation) bool { return incarnation.Was == vm }) {
		t.State, t.Reason = record.Failed, "the sled was rebooted"
		return t
	}
	if old.Incarnation != nil && old.Incarnation.PropolisID == vm && seen.Inside.VM.ID == old.ID {
		t.Migrations = seen.Inside.VM.Migration
	}
	if a := old.Arrival(); a != nil && old.VMM.PropolisID == vm && t.In == nil {
		t.In = &propolis.Migration{ID: a.ID, State: "Error"} // it has not come
	}
	switch {
	case old.Ending != nil && old.Ending.PropolisID == vm:
		t.State, t.Reason = old.Ending.State, old.Ending.Reason
	case old.VMM != nil && old.Migration.Arrives() && whereArrived(old, seen) != migration.AtTarget:
		t.State, t.Reason = record.Failed, "it has not arrived"
	case old.Incarnation != nil && old.Incarnation.PropolisID == vm:
		_, taken := Ended(view, old.ID, *old.Incarnation) // by one that was killed, and before whom it ran
		status := statusIn(b, old, seen)
		if status.State == record.Failed && (seen.Inside.VM.State != "" || !taken) || status.State == record.Absent && !taken {
			t.State, t.Reason = record.Failed, status.Reason
		}
	}
	return t
}

// leaveTombstone adds tombstones to what is written when all was done, and when all was
// taken back.
func leaveTombstone(b layout.Blueprint, view ledger.View, id string, d *operation.Decision, seen Observed, now time.Time) error {
	for _, facts := range []*[]ledger.Fact{&d.OnSuccess, &d.OnUndo} {
		if len(*facts) == 0 {
			continue
		}
		stones, err := tombstonesFor(b, view, id, *facts, seen, now)
		if err != nil {
			return err
		}
		*facts = append(*facts, stones...)
	}
	return nil
}
