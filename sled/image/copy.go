package image

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/image"
	"github.com/sledctl/sledctl/zfs"
)

// Place is where an image lies: a volume, and the snapshot of it that disks are cloned from.
type Place struct {
	Pool    string `json:"pool"`
	Dataset string `json:"dataset"`
	GUID    string `json:"guid"` // of the volume
}

// Snapshot is what disks are cloned from.
func (p Place) Snapshot() string { return p.Dataset + snapshot }

// whole says whether the volume and its snapshot are there.
func (p Place) whole(inv *inventory.Inventory) bool {
	d, there := inv.Dataset(p.Dataset)
	_, kept := inv.Dataset(p.Snapshot())
	return there && kept && d.GUID == p.GUID
}

// Places are all in which the image lies, that of its import first.
func (r Record) Places() []Place {
	return append([]Place{{Pool: r.Pool, Dataset: r.Dataset, GUID: r.GUID}}, r.Copies...)
}

// On is where the image lies on a pool; false: it does not.
func (r Record) On(pool string) (Place, bool) {
	all := r.Places()
	i := slices.IndexFunc(all, func(p Place) bool { return p.Pool == pool })
	if i < 0 {
		return Place{}, false
	}
	return all[i], true
}

// unfinished are the volumes that carry the image's mark, and are none of its places: of copies that did not end.
func (r Record) unfinished(inv *inventory.Inventory) (left []Place) {
	datasets, _ := inv.Datasets()
	for _, d := range datasets {
		if Mark(d) == r.ID && !slices.ContainsFunc(r.Places(), func(p Place) bool { return p.Dataset == d.Name }) {
			pool, _, _ := strings.Cut(d.Name, "/")
			left = append(left, Place{Pool: pool, Dataset: d.Name, GUID: d.GUID})
		}
	}
	return left
}

// CopyRequest asks for an image on a further pool.
type CopyRequest struct {
	Ref, Pool string
	Pools     []string // that may hold zones
	Progress  func(done, of int64)
	DryRun    bool
}

// Copy has an image on a further pool, block by block as it is where it lies, without its holes. One that is there needs
// nothing. Errors: *NotFoundError, *MissingError, *NeededError, *NoPoolError, *NoRoomError; those of operation.Run.
func Copy(ctx context.Context, env operation.Env, c CopyRequest) (made Place, report operation.Report, err error) {
	before, err := operation.Decided(ctx, env, c.DryRun)
	if err != nil {
		return made, report, err
	}
	r, err := Get(before, c.Ref)
	if err != nil {
		return made, report, err
	}
	from := &deviceReader{files: env.Host.Files()}
	defer from.close()
	report, err = operation.Run(ctx, env, operation.Request[*inventory.Inventory]{
		Verb: "image copy", Subject: subject(r.Name), DryRun: c.DryRun, Look: look,
		Decide: func(view ledger.View, inv *inventory.Inventory, _ operation.Stamp) (d operation.Decision, err error) {
			if r, err = Get(view, r.ID); err == nil {
				d, made, err = c.decide(from, inv, r)
			}
			return d, err
		},
		Seal: func(ctx context.Context, h host.Host) ([]ledger.Fact, error) {
			d, err := zfs.Get(ctx, h, made.Dataset)
			if err != nil {
				return nil, err
			}
			made.GUID = d.GUID
			value, err := json.Marshal(r.with(made))
			return []ledger.Fact{{Key: r.key(), Value: value}}, err
		},
	})
	return made, report, err
}

// with is the record with a place on a pool, instead of one that it had there.
func (r Record) with(p Place) Record {
	if r.Pool == p.Pool {
		r.Dataset, r.GUID = p.Dataset, p.GUID
		return r
	}
	r.Copies = append(slices.DeleteFunc(slices.Clone(r.Copies), func(is Place) bool { return is.Pool == p.Pool }), p)
	return r
}

// decide makes a volume like that of the image. What a copy that did not end has left of it goes first.
func (c CopyRequest) decide(from *deviceReader, inv *inventory.Inventory, r Record) (d operation.Decision, made Place, err error) {
	if is, there := r.On(c.Pool); there && is.whole(inv) {
		return d, is, nil
	}
	i := slices.IndexFunc(r.Places(), func(p Place) bool { return p.whole(inv) })
	if i < 0 {
		return d, made, &MissingError{Record: r}
	}
	id, err := uuid.Parse(r.ID)
	if err != nil {
		return d, made, err
	}
	dataset, ok := naming.Image(c.Pool, id)
	if _, there := inv.Dataset(c.Pool); !ok || !there || !slices.Contains(c.Pools, c.Pool) {
		return d, made, &NoPoolError{Pool: c.Pool, Pools: c.Pools}
	}
	var left []zfs.Dataset
	if is, there := inv.Dataset(dataset); there && Mark(is) == r.ID {
		if by := clonesAt([]Place{{Dataset: dataset}}, inv); len(by) > 0 {
			return d, made, &NeededError{Name: r.Name, By: by}
		}
		left = append(inv.Below(dataset), is)
	}
	source := r.Places()[i]
	was, _ := inv.Dataset(source.Dataset)
	if has, needs := room(inv, c.Pool, left), was.Used; needs > has {
		return d, made, &NoRoomError{Name: r.Name, Pool: c.Pool, Has: has, Needs: needs}
	}
	from.name = naming.VolumeDevice(source.Dataset)
	want := Want{Source: Source{File: from.name, disk: image.Raw(from, r.Size)}, Progress: c.Progress}
	copied := r
	copied.Pool, copied.Dataset = c.Pool, dataset
	d, err = want.decision(copied, left)
	return d, Place{Pool: c.Pool, Dataset: dataset}, err
}

// deviceReader reads a device of the host, which it opens at the first read.
type deviceReader struct {
	files host.Files
	name  string
	open  host.File
}

// ReadAt reads a part of it.
func (r *deviceReader) ReadAt(p []byte, at int64) (n int, err error) {
	if r.open == nil {
		if r.open, err = r.files.Open(r.name, os.O_RDONLY, 0); err != nil {
			return 0, fmt.Errorf("read volume: %w", err)
		}
	}
	return r.open.ReadAt(p, at)
}

func (r *deviceReader) close() {
	if r.open != nil {
		_ = r.open.Close() // it was only read
	}
}
