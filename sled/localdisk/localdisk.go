package localdisk

import (
	"context"
	"errors"
	"slices"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/zfs"
)

// Block is the size of a local disk's blocks, in bytes: the control plane reckons with it (omicron
// nexus/db-model/src/disk_type_local_storage.rs).
const Block = 4096

// Settings are what local disks need to know of others.
type Settings struct {
	// User names the instance that has a device as a disk; empty: none has.
	User func(view ledger.View, device string) (string, error)
}

// Place names a local disk: by its id, and where it lies. Without a pool that is where it is
// recorded, or the only place that it can have.
type Place struct {
	ID        uuid.UUID
	Pool      string
	Encrypted bool
}

// Wanted is a local disk with its sizes, in bytes.
type Wanted struct {
	Place
	Size  uint64
	Quota uint64 // of its dataset; 0: what a local disk of the size needs, or has
}

// QuotaFor is what the control plane adds up for a local disk with its metadata: 70 MiB for each GiB,
// here of those that have begun (omicron nexus/db-model/src/disk_type_local_storage.rs).
func QuotaFor(size uint64) uint64 {
	return size + (size+1<<30-1)>>30*(70<<20)
}

// depth is how far below its pool the dataset of a local disk lies at most.
const depth = 3

// seen is what was found of one local disk.
type seen struct {
	can   []Record                 // where it could lie
	trees map[string][]zfs.Dataset // what there is of it, by its dataset, which comes first
}

// look finds the local disk in its place, or in all that it can have.
func (p Place) look(ctx context.Context, h host.Host) (seen, error) {
	got := seen{trees: map[string][]zfs.Dataset{}}
	inv := inventory.Look(ctx, h, inventory.Want{Parts: []inventory.Part{inventory.Rival, inventory.Pools}})
	if err := inv.Know(inventory.Rival, inventory.Pools); err != nil {
		return got, err
	}
	pools := slices.DeleteFunc(inv.Answering(), func(name string) bool {
		kind, _ := naming.ParsePool(name)
		return kind != naming.ExternalPool || p.Pool != "" && p.Pool != name
	})
	names, err := zfs.Sizeless(ctx, h, pools, depth, nil)
	if err != nil {
		return got, err
	}
	for _, pool := range pools {
		for _, encrypted := range []bool{false, true} {
			above, there := find(names, naming.LocalStorage(pool, encrypted).Dataset)
			if !there || above.Type != zfs.TypeFilesystem || !above.Mounted {
				continue
			}
			at := Record{ID: p.ID, Pool: pool, Encrypted: encrypted}
			got.can = append(got.can, at)
			if _, exists := find(names, at.Dataset()); !exists {
				continue
			}
			tree, err := zfs.List(ctx, h, []string{at.Dataset()}, append(zfs.Extended(), naming.PropertyLocalDisk))
			if err != nil && !errors.Is(err, host.ErrNotFound) { // it went meanwhile
				return got, err
			}
			if err == nil {
				got.trees[at.Dataset()] = tree
			}
		}
	}
	return got, nil
}

// settled finds out which place is meant, and what is known of the local disk there.
func (p Place) settled(view ledger.View, got seen) (r Record, known bool, err error) {
	r, known, err = Load(view, p.ID)
	switch {
	case err != nil:
		return r, known, err
	case known && p.Pool != "" && (p.Pool != r.Pool || p.Encrypted != r.Encrypted):
		return r, known, &ElsewhereError{Record: r}
	case !known && p.Pool != "":
		r = Record{ID: p.ID, Pool: p.Pool, Encrypted: p.Encrypted}
	case !known:
		if r, err = got.only(p.Encrypted); err != nil {
			return r, known, err
		}
	}
	if !slices.ContainsFunc(got.can, func(at Record) bool { return at.Dataset() == r.Dataset() }) {
		err = &UnavailableError{Pool: r.Pool, Encrypted: r.Encrypted}
	}
	return r, known, err
}

// only is the place that has the local disk, or else the one that can hold it.
func (s seen) only(encrypted bool) (Record, error) {
	all := slices.DeleteFunc(slices.Clone(s.can), func(at Record) bool { return s.trees[at.Dataset()] == nil })
	if len(all) == 0 {
		all = slices.DeleteFunc(slices.Clone(s.can), func(at Record) bool { return at.Encrypted != encrypted })
	}
	if len(all) == 1 {
		return all[0], nil
	}
	e := &PoolError{Encrypted: encrypted}
	for _, at := range all {
		e.Pools = append(e.Pools, at.Pool)
	}
	return Record{}, e
}

// Ensure makes a local disk, or gives it the sizes that are wanted as far as that changes nothing in
// it. Errors: *SizeError, *PoolError, *UnavailableError, *ElsewhereError, *MismatchError.
func (s Settings) Ensure(ctx context.Context, env operation.Env, want Wanted, dryRun, keep bool) (Record, operation.Report, error) {
	var made Record
	if want.Size == 0 || want.Size%Block != 0 {
		return made, operation.Report{}, &SizeError{Size: want.Size}
	}
	report, err := operation.Run(ctx, env, operation.Request[seen]{
		Verb: "storage local-disk ensure", Subject: Subject(want.ID), Wait: true, DryRun: dryRun, Keep: keep,
		Look: want.look,
		Decide: func(view ledger.View, got seen, _ operation.Stamp) (operation.Decision, error) {
			old, known, err := want.settled(view, got)
			if err == nil && old.Encrypted != want.Encrypted {
				err = &ElsewhereError{Record: old}
			}
			if err != nil {
				return operation.Decision{}, err
			}
			var d operation.Decision
			d, made, err = want.decide(old, known, got.trees[old.Dataset()])
			return d, err
		},
	})
	return made, report, err
}

// Delete removes a local disk with what it holds; gone is false if there was none. Errors:
// *UnavailableError, *ElsewhereError, *ForeignError, *BusyError.
func (s Settings) Delete(ctx context.Context, env operation.Env, p Place, dryRun bool) (gone bool, report operation.Report, err error) {
	report, err = operation.Run(ctx, env, operation.Request[seen]{
		Verb: "storage local-disk delete", Subject: Subject(p.ID), Wait: true, DryRun: dryRun,
		Look: p.look,
		Decide: func(view ledger.View, got seen, _ operation.Stamp) (operation.Decision, error) {
			r, known, err := p.settled(view, got)
			if _, ok := errors.AsType[*PoolError](err); ok && len(got.trees) == 0 {
				return operation.Decision{}, nil // it is nowhere
			}
			if err != nil {
				return operation.Decision{}, err
			}
			user, err := s.User(view, r.Device())
			if err == nil && user != "" {
				err = &BusyError{ID: r.ID, Instance: user}
			}
			if err != nil {
				return operation.Decision{}, err
			}
			gone = known || len(got.trees[r.Dataset()]) > 0
			return removal(r, known, got.trees[r.Dataset()])
		},
	})
	return gone, report, err
}
