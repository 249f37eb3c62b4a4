package reap

import (
	"bytes"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/sled/base"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/localdisk"
	"github.com/sledctl/sledctl/sled/volume"
)

// A look takes its time, and nobody stands still for it: of an instance that is
// made meanwhile it may show the dataset and not the zone, and by the time of
// the decision the ledger knows the instance as finished. So what was worked on
// between the beginning of the look and the decision is left alone; whatever of
// it is not needed, the next look shows.

// since says by whom: for messages.
var since = busy{verb: "a run that ended while the sled was looked at"}

// learnSince takes for busy what runs have worked on that were open when the
// look began, and are no more, and what belongs to a record that has changed.
func (k *known) learnSince(before, view ledger.View) error {
	if before.Head() == view.Head() {
		return nil // nothing was written meanwhile
	}
	open := map[string]bool{}
	for _, run := range operation.Open(view) {
		open[run.ID] = true
	}
	for _, run := range operation.Open(before) {
		if open[run.ID] {
			continue
		}
		for _, objects := range [][]operation.Object{run.Makes, run.Removes, run.Changes} {
			for _, o := range objects {
				k.workedOn(o.Kind, o.Name)
			}
		}
	}
	for _, pair := range [][2]ledger.View{{before, view}, {view, before}} {
		if err := k.changedSince(pair[0], pair[1]); err != nil {
			return err
		}
	}
	return nil
}

// changedSince takes for busy what one view's records have that the other has
// otherwise.
func (k *known) changedSince(one, other ledger.View) error {
	for id := range record.IDs(one) {
		if same(one, other, record.Subject(id)) {
			continue
		}
		r, _, err := record.Load(one, id)
		if err != nil {
			return err
		}
		for _, incarnation := range r.Incarnations() {
			k.workedOn(KindZone, incarnation.Zone)
			k.workedOn(KindDataset, incarnation.Dataset)
			for _, v := range append([]record.VNIC{incarnation.Control}, incarnation.Guests...) {
				k.workedOn(v.Kind(), v.Name)
			}
		}
	}
	volumes, err := volume.All(one)
	for _, v := range volumes {
		if !same(one, other, volume.Subject(v.ID)) {
			k.workedOn(KindVolume, v.Dataset)
		}
	}
	if err != nil {
		return err
	}
	spares, err := record.Spares(one)
	if err != nil {
		return err
	}
	for _, spare := range spares {
		if !same(one, other, spare.Key()) {
			k.workedOn(KindZone, spare.Zone)
			k.workedOn(KindDataset, spare.Dataset)
		}
	}
	disks, err := localdisk.All(one)
	if err != nil {
		return err
	}
	for _, r := range disks {
		if !same(one, other, localdisk.Subject(r.ID)) {
			k.workedOn(KindDataset, r.Dataset())
		}
	}
	bases, err := base.All(one)
	for _, b := range bases {
		if !same(one, other, base.Key(b)) {
			k.workedOn(KindZone, b.Zone)
			k.workedOn(KindDataset, b.Dataset)
		}
	}
	return err
}

func (k *known) workedOn(kind, name string) {
	if _, working := k.busy[kind+" "+name]; !working {
		k.busy[kind+" "+name] = since
	}
}

// same says whether two views have one value of a key.
func same(one, other ledger.View, key string) bool {
	a, has := one.Get(key)
	b, had := other.Get(key)
	return has == had && bytes.Equal(a, b)
}
