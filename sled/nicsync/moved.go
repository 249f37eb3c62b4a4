package nicsync

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/peer/napi"
)

// A VM that another program moves is marked as long as it is here, and then it is
// gone, as one that was deleted is. The ledger remembers the mark, so that its
// records are left to the sled that claims them, however long that takes.

// moved is what the ledger has of such a VM, below its name.
type moved struct {
	IDs  []string `json:"ids"`
	MACs []string `json:"macs"`
	Why  string   `json:"why"` // the mark
}

// movedVMs are those that the ledger remembers, as VMs that have departed.
func movedVMs(view ledger.View) ([]VM, error) {
	var vms []VM
	for key, value := range view.All(naming.KeyMoved) {
		var m moved
		if err := json.Unmarshal(value, &m); err != nil {
			return nil, fmt.Errorf("%s in the ledger: %w", key, err)
		}
		vm := m.departed(strings.TrimPrefix(key, naming.KeyMoved))
		vm.Handover = ledger.Fact{Key: key, Value: value}
		vms = append(vms, vm)
	}
	return vms, nil
}

func (m moved) departed(name string) VM {
	vm := VM{Name: name, IDs: m.IDs, Departed: strings.TrimPrefix(m.Why, "it ") + " and went to another sled"}
	vm.Departed = strings.Replace(vm.Departed, "is marked", "was marked", 1)
	for _, mac := range m.MACs {
		vm.NICs = append(vm.NICs, NIC{MAC: mac})
	}
	return vm
}

// remembered are the VMs that the ledger knows, those that another program has
// moved among them.
func (s Settings) remembered(view ledger.View) ([]VM, error) {
	var vms []VM
	if s.Recorded != nil {
		var err error
		if vms, err = s.Recorded(view); err != nil {
			return nil, err
		}
	}
	others, err := movedVMs(view)
	for _, vm := range s.also {
		gone := movedFrom(vm).departed(vm.zones[0])
		if !slices.ContainsFunc(others, func(known VM) bool { return known.Name == gone.Name }) {
			others = append(others, gone)
		}
	}
	return append(vms, others...), err
}

func movedFrom(vm VM) moved {
	m := moved{IDs: slices.Clone(vm.IDs), Why: vm.marked}
	for _, n := range vm.NICs {
		m.MACs = append(m.MACs, n.MAC)
	}
	return m
}

// marks are the facts by which the ledger remembers what is marked, or was when it
// was seen last, and forgets what is here without a mark: its move was given up, or
// it came back.
func (s Settings) marks(view ledger.View, local Local) ([]ledger.Fact, error) {
	var facts []ledger.Fact
	gone := slices.DeleteFunc(slices.Clone(s.also), func(vm VM) bool { return local.hasOne(vm.IDs) >= 0 })
	for _, vm := range slices.Concat(local.VMs, gone) {
		if vm.marked == "" || len(vm.IDs) == 0 {
			continue
		}
		key, m := naming.KeyMoved+vm.zones[0], movedFrom(vm)
		old, known := view.Get(key)
		if known { // also NICs that it had when it was first seen so
			var was moved
			if err := json.Unmarshal(old, &was); err != nil {
				return nil, fmt.Errorf("%s in the ledger: %w", key, err)
			}
			m.IDs, m.MACs = append(m.IDs, was.IDs...), append(m.MACs, was.MACs...)
		}
		m.IDs, m.MACs = sortedSet(m.IDs), sortedSet(m.MACs)
		value, err := json.Marshal(m)
		if err != nil {
			return nil, err
		}
		if string(value) != string(old) {
			facts = append(facts, ledger.Fact{Key: key, Value: value})
		}
	}
	for _, gone := range local.recorded {
		if !isMoved(gone) {
			continue
		}
		if i := local.hasOne(gone.IDs); i >= 0 && local.VMs[i].marked == "" {
			facts = append(facts, ledger.Fact{Key: gone.Handover.Key})
		}
	}
	return facts, nil
}

// hasOne is the index of the VM that is here by one of these ids; -1: none is.
func (l Local) hasOne(ids []string) int {
	for _, id := range ids {
		if i, here := l.byID[id]; here {
			return i
		}
	}
	return -1
}

func isMoved(vm VM) bool { return strings.HasPrefix(vm.Handover.Key, naming.KeyMoved) }

func sortedSet(all []string) []string { slices.Sort(all); return slices.Compact(all) }

// noteMarks writes down what is marked, where no record may be changed.
func (s Settings) noteMarks(ctx context.Context, env operation.Env) error {
	_, err := operation.Run(ctx, env, operation.Request[Local]{
		Verb: "nics sync", Subject: subject, BeforeLedger: s.Ledgerless,
		Look: func(ctx context.Context, h host.Host) (Local, error) { return s.look(ctx, h, s.bookOf(env)) },
		Decide: func(view ledger.View, local Local, _ operation.Stamp) (d operation.Decision, err error) {
			d.OnStart, err = s.marks(view, local)
			return d, err
		},
	})
	return err
}

// stillSays reports whether a record has not followed its VM yet.
func (vm VM) stillSays(r napi.Record, cn string) bool {
	says := r.CNUUID == cn
	if vm.Arrived != "" {
		says = r.CNUUID != "" && r.CNUUID != cn
	}
	return says && vm.is(&r) && !slices.Contains(vm.Stayed, r.MAC)
}
