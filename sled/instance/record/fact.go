package record

import (
	"slices"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/illumos/naming"
)

// Written is the record that facts write; a zero one if they forget it.
func Written(facts []ledger.Fact, id string) (r Record, written bool, err error) {
	i := slices.IndexFunc(facts, func(f ledger.Fact) bool { return f.Key == naming.KeyInstance+id })
	if i < 0 || facts[i].Value == nil {
		return Record{}, i >= 0, nil
	}
	r, err = Decode(facts[i].Value)
	return r, true, err
}

// DiskUser names an instance that has a disk, also one that only reads from it; empty: none has.
func DiskUser(view ledger.View, path string) (name string, err error) {
	all, err := All(view)
	for _, r := range all {
		if slices.ContainsFunc(r.Spec.Disks, func(d Disk) bool { return d.Path == path }) {
			return r.Name, nil
		}
	}
	return "", err
}
