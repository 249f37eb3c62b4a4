package migration

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// A migration that has ended leaves a handover on both sleds, for programs that keep what
// others have written down of the instance: they still take it to be on its source,
// which has no record of it any longer. A handover goes when its instance goes the other
// way, and when who follows it says that it is not needed any longer.

// Handover is what is remembered of a migration after its end.
type Handover struct {
	Instance  string    `json:"-"`
	Name      string    `json:"name"`
	Migration string    `json:"migration"`
	Peer      string    `json:"peer,omitempty"` // the other sled, as this one knows it; empty: it does not
	Time      time.Time `json:"time"`
	// VMs are the Propolis ids that a departed instance had here, MACs those of its
	// NICs, which it has taken along, and Control that of its control VNIC, which it
	// has not. One that has arrived has its record.
	VMs     []string `json:"vms,omitempty"`
	MACs    []string `json:"macs,omitempty"`
	Control string   `json:"control,omitempty"`
	// Fact is the handover as the ledger has it.
	Fact ledger.Fact `json:"-"`
}

// HasDeparted are the instances that have left this sled, and HasArrived those
// that have come to it, as far as they are remembered.
func HasDeparted(view ledger.View) ([]Handover, error) { return handovers(view, naming.KeyDeparted) }

// HasArrived is told with HasDeparted.
func HasArrived(view ledger.View) ([]Handover, error) { return handovers(view, naming.KeyArrived) }

func handovers(view ledger.View, prefix string) ([]Handover, error) {
	var all []Handover
	for key, value := range view.All(prefix) {
		t := Handover{Instance: strings.TrimPrefix(key, prefix), Fact: ledger.Fact{Key: key, Value: value}}
		if err := json.Unmarshal(value, &t); err != nil {
			return nil, fmt.Errorf("%s in the ledger: %w", key, err)
		}
		all = append(all, t)
	}
	return all, nil
}

// Remember adds handovers to what is written: in the line that forgets an instance
// that has departed, and in the one that makes an arrival an instance like any
// other. One that did not succeed in coming back is still away.
func Remember(view ledger.View, id string, d *operation.Decision, vm VM, now time.Time) error {
	old, _, err := record.Load(view, id)
	if err != nil {
		return err
	}
	from := old.Migration
	for _, facts := range []*[]ledger.Fact{&d.OnStart, &d.OnSuccess} {
		next, written, err := record.Written(*facts, id)
		if err != nil {
			return err
		}
		if !written {
			continue
		}
		var more []ledger.Fact
		switch {
		case next.ID == "":
			more, err = leaves(old, view, vm, now)
		case next.Migration != nil:
			from = next.Migration
		case next.CameBy(old, from):
			t := Handover{Name: next.Name, Migration: next.Incarnation.Migration, Time: now}
			if from.Arrives() {
				t.Migration, t.Peer = from.ID, from.Source
			}
			more, err = t.facts(naming.KeyArrived+id, forgotten(view, naming.KeyDeparted+id))
		case facts == &d.OnSuccess:
			more = Returned(view, id)
		}
		if err != nil {
			return err
		}
		*facts = append(*facts, more...)
	}
	return nil
}

// leaves is what remains when a record is forgotten: if its machine has gone to
// another sled, where to.
func leaves(r record.Record, view ledger.View, vm VM, now time.Time) ([]ledger.Fact, error) {
	came := forgotten(view, naming.KeyArrived+r.ID)
	t := Handover{Name: r.Name, Time: now}
	id, left := vm.Left(r)
	switch m := r.Migration; {
	case m.Departs() && m.Departed:
		t.Migration, t.Peer = m.ID, m.Peer()
	case left:
		t.Migration = id
	default:
		return came, nil
	}
	t.VMs = r.VMIDs(func(record.Incarnation) bool { return true })
	for _, n := range r.Spec.NICs {
		t.MACs = append(t.MACs, n.MAC)
	}
	t.Control = r.Control
	return t.facts(naming.KeyDeparted+r.ID, came)
}

// Returned are the facts by which an instance that had departed is here again.
func Returned(view ledger.View, id string) []ledger.Fact {
	return forgotten(view, naming.KeyDeparted+id)
}

func (t Handover) facts(key string, others []ledger.Fact) ([]ledger.Fact, error) {
	value, err := json.Marshal(t)
	return append(others, ledger.Fact{Key: key, Value: value}), err
}

// forgotten removes a key, if it is there.
func forgotten(view ledger.View, key string) []ledger.Fact {
	if _, there := view.Get(key); !there {
		return nil
	}
	return []ledger.Fact{{Key: key}}
}
