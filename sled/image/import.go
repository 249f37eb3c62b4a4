package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/image"
	"github.com/sledctl/sledctl/sled/image/checksum"
	"github.com/sledctl/sledctl/zfs"
)

// Source is a file with a disk, all of whose tables have been checked.
type Source struct {
	File   string
	SHA256 string // in lower case, what it must be; empty: any
	disk   *image.Image
	pipe   *pipe // nil: it is a file
	sum    *sum  // nil: it is a pipe
}

// sum is the SHA-256 of a file, which is read by the side: what is written meanwhile waits for it in the end only.
type sum struct {
	in    io.Reader
	once  sync.Once
	ended chan struct{}
	is    string
	err   error
}

// sumAtOnce is how much of a file is read and summed up at once, in bytes: few reads, and it stays in a processor's cache.
const sumAtOnce = 256 << 10

func (s *sum) begin() {
	s.once.Do(func() {
		go func() {
			defer close(s.ended)
			h := sha256.New()
			_, s.err = io.CopyBuffer(h, s.in, make([]byte, sumAtOnce))
			s.is = hex.EncodeToString(h.Sum(nil))
		}()
	})
}

// wait is the digest, when all was read.
func (s *sum) wait() (string, error) {
	s.begin()
	<-s.ended
	return s.is, s.err
}

// DigestError is a file that is another one than was said.
type DigestError struct{ File, Is, Want string }

// Error shows both.
func (e *DigestError) Error() string {
	return fmt.Sprintf("the %s of %s is %s, and not %s", checksum.Digest(e.Want).Name(), e.File, e.Is, e.Want)
}

func (*DigestError) Kind() fault.Kind { return fault.Refused }

// Hint says what may be wrong.
func (*DigestError) Hint() string {
	return "find the digest where the file is published: the file may have been replaced there, or changed on its way"
}

// Open recognises what a file holds, and compares its SHA-256 with what it must be, if that is
// not empty; else that is found out while the disk is written. Errors: *image.Refused, *DigestError; those of reading.
func Open(ctx context.Context, file string, in io.ReaderAt, length int64, digest string) (Source, error) {
	s := Source{File: file, SHA256: strings.ToLower(digest), sum: &sum{in: &interruptible{ctx, io.NewSectionReader(in, 0, length)}, ended: make(chan struct{})}}
	if digest != "" {
		is, err := s.sum.wait()
		switch {
		case err != nil:
			return s, err
		case is != s.SHA256:
			return s, &DigestError{File: file, Is: is, Want: s.SHA256}
		}
	}
	disk, err := image.Open(ctx, file, in, length)
	if err != nil {
		return s, fmt.Errorf("%s: %w", file, err)
	}
	s.disk = disk
	return s, nil
}

// interruptible reads until the context ends.
type interruptible struct {
	ctx context.Context
	in  io.Reader
}

func (r *interruptible) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.in.Read(p)
}

// Want is the image that is asked for.
type Want struct {
	Name string
	Pool string // empty: the pool for zones with the most room
	Source
	Progress func(done, of int64) // may be nil
}

// ExistsError is an image of the name, from another file or on another pool.
type ExistsError struct{ Record }

// Error says which.
func (e *ExistsError) Error() string {
	return fmt.Sprintf("image %q exists: %d bytes on pool %s", e.Name, e.Size, e.Pool)
}

func (*ExistsError) Kind() fault.Kind { return fault.Conflict }

// Hint names the commands.
func (e *ExistsError) Hint() string {
	return "to replace it, run: sledctl image delete " + e.Name + "; or import it with another --name"
}

// NoRoomError is a pool that has less room than the image may need.
type NoRoomError struct {
	Name, Pool string
	Has, Needs uint64
}

// Error shows both.
func (e *NoRoomError) Error() string {
	return fmt.Sprintf("image %q may need %d bytes, and pool %s has %d left", e.Name, e.Needs, e.Pool, e.Has)
}

func (*NoRoomError) Kind() fault.Kind { return fault.Refused }

// Hint says what helps.
func (*NoRoomError) Hint() string {
	return "to see what can be removed, run: sledctl image list; or choose another pool with --pool"
}

// NoPoolError is a pool that holds no images.
type NoPoolError struct {
	Pool  string
	Pools []string
}

// Error names those that do.
func (e *NoPoolError) Error() string {
	return fmt.Sprintf("pool %q can hold no images; those of this sled that can: %s", e.Pool, strings.Join(e.Pools, ", "))
}

func (*NoPoolError) Kind() fault.Kind { return fault.NotFound }

// Hint says what would be right.
func (e *NoPoolError) Hint() string {
	if len(e.Pools) == 0 {
		return "to prepare the pools of the sled, run: sledctl bootstrap"
	}
	return "choose one of them with --pool"
}

// Import makes an image of a source. One of the name that was made of the same file is left as
// it is, or made again where its pool has it no more. Pools are those that may hold zones. Errors: *NameError,
// *ExistsError, *NoRoomError, *NoPoolError; those of operation.Run.
func Import(ctx context.Context, env operation.Env, want Want, pools []string, dryRun bool) (Status, operation.Report, error) {
	made := Status{State: Ready, Clones: []string{}}
	if err := ValidateName(want.Name); err != nil {
		return made, operation.Report{}, err
	}
	if want.sum != nil && !dryRun {
		want.sum.begin()
	}
	report, err := operation.Run(ctx, env, operation.Request[*inventory.Inventory]{
		Verb: "image import", Subject: subject(want.Name), DryRun: dryRun, Look: look,
		Decide: func(view ledger.View, inv *inventory.Inventory, at operation.Stamp) (operation.Decision, error) {
			is, there, err := Find(view, want.Name)
			if there && want.sum != nil && err == nil {
				want.SHA256, err = want.sum.wait()
			}
			switch {
			case err != nil:
				return operation.Decision{}, err
			case there && want.same(is) && StatusOf(is, inv).State == Ready:
				d, now, err := kept(is, inv)
				made = StatusOf(now, inv)
				return d, err
			case there && (!want.same(is) || !lost(is, inv)):
				return operation.Decision{}, &ExistsError{Record: is}
			case there && is.unseen(inv) != "":
				return operation.Decision{}, &UnseenError{Name: is.Name, Why: is.unseen(inv)}
			}
			left := unfinished(view, inv, subject(want.Name))
			if made.Record, err = want.record(pools, inv, left, at); err != nil {
				return operation.Decision{}, err
			}
			d, err := want.decision(made.Record, left)
			if there {
				d.OnSuccess = []ledger.Fact{{Key: is.key()}}
			}
			return d, err
		},
		Seal: func(ctx context.Context, h host.Host) ([]ledger.Fact, error) {
			d, err := zfs.Get(ctx, h, made.Dataset)
			if err != nil {
				return nil, err
			}
			made.GUID, made.Used = d.GUID, d.Used
			if made.SHA256, err = want.digest(); err != nil {
				return nil, err
			}
			value, err := json.Marshal(made.Record)
			return []ledger.Fact{{Key: made.key(), Value: value}}, err
		},
	})
	return made, report, err
}

// subject is what the import, and the deletion, of an image lock.
func subject(name string) string { return naming.KeyImage + name }

func look(ctx context.Context, h host.Host) (*inventory.Inventory, error) {
	inv := inventory.Look(ctx, h, Wants())
	return inv, inv.Know(inventory.Pools, inventory.Datasets)
}

// digest is the SHA-256 of what was read to its end.
func (want Want) digest() (string, error) {
	if want.pipe != nil {
		return want.pipe.sum(), nil
	}
	return want.sum.wait()
}

// same reports whether an image is the one that is asked for.
func (want Want) same(is Record) bool {
	_, on := is.On(want.Pool)
	return want.SHA256 == is.SHA256 && (want.Pool == "" || on)
}

// lost reports whether an image's pool is there, and its volume is not: a pool in memory is empty
// after a reboot.
func lost(r Record, inv *inventory.Inventory) bool {
	_, pool := inv.Dataset(r.Pool)
	_, volume := inv.Dataset(r.Dataset)
	return pool && !volume
}

// kept is an image that is ready: with a copy in the place of what its pool has lost, if it has.
func kept(r Record, inv *inventory.Inventory) (operation.Decision, Record, error) {
	if !lost(r, inv) {
		return operation.Decision{}, r, nil
	}
	i := slices.IndexFunc(r.Copies, func(p Place) bool { return p.whole(inv) })
	p := r.Copies[i]
	r.Pool, r.Dataset, r.GUID, r.Copies = p.Pool, p.Dataset, p.GUID, slices.Delete(slices.Clone(r.Copies), i, i+1)
	value, err := json.Marshal(r)
	return operation.Decision{OnSuccess: []ledger.Fact{{Key: r.key(), Value: value}}}, r, err
}

// room is what a pool has, with what is left there of an earlier run, which goes first.
func room(inv *inventory.Inventory, pool string, left []zfs.Dataset) uint64 {
	d, _ := inv.Dataset(pool)
	for _, l := range left {
		if l.Type == zfs.TypeVolume && strings.HasPrefix(l.Name, pool+"/") {
			d.Available += l.Used
		}
	}
	return d.Available
}

// record chooses the pool, and is what will be recorded. What is left of an earlier import of the
// name goes first.
func (want Want) record(pools []string, inv *inventory.Inventory, left []zfs.Dataset, at operation.Stamp) (Record, error) {
	id, err := uuid.Parse(at.ID)
	if err != nil {
		return Record{}, err
	}
	pools = slices.DeleteFunc(slices.Clone(pools), func(pool string) bool {
		_, ok := naming.Image(pool, id)
		_, there := inv.Dataset(pool)
		return !ok || !there
	})
	pool := want.Pool
	for _, other := range pools {
		if want.Pool == "" && (pool == "" || room(inv, other, left) > room(inv, pool, left)) {
			pool = other
		}
	}
	if !slices.Contains(pools, pool) {
		return Record{}, &NoPoolError{Pool: pool, Pools: pools}
	}
	if has, needs := room(inv, pool, left), uint64(want.disk.Data); needs > has {
		return Record{}, &NoRoomError{Name: want.Name, Pool: pool, Has: has, Needs: needs}
	}
	dataset, _ := naming.Image(pool, id)
	return Record{
		ID: id.String(), Name: want.Name, Pool: pool, Dataset: dataset, Size: want.disk.Size,
		Format: want.disk.Format, Compression: want.disk.Compression, SHA256: want.SHA256, Time: at.Now,
	}, nil
}

// decision removes what an earlier run of the same import has left, and makes the image.
func (want Want) decision(r Record, left []zfs.Dataset) (operation.Decision, error) {
	d := operation.Decision{Plan: plan.Plan{Policy: plan.Undo}}
	for _, dataset := range left {
		d.Plan.Actions = append(d.Plan.Actions, remove(dataset, "left by an import that did not end"))
		d.Intent.Removes = append(d.Intent.Removes, operation.Object{Kind: "dataset", Name: dataset.Name, Identity: dataset.GUID})
	}
	create := func(object, why string, step plan.Step) {
		d.Plan.Actions = append(d.Plan.Actions, plan.Action{ID: step.Verb() + " " + r.Dataset, Object: object, Why: why, Change: plan.Create, Step: step})
	}
	write := image.Write{Image: want.disk, From: want.File, Device: naming.VolumeDevice(r.Dataset)}
	switch {
	case want.pipe != nil:
		write.Check = want.pipe.check
	case want.sum != nil:
		write.Check = func() error { _, err := want.sum.wait(); return err }
	}
	if want.Progress != nil {
		write.Progress = func(done int64) { want.Progress(done, r.Size) }
	}
	create("dataset "+r.Dataset, fmt.Sprintf("image %q", r.Name), zfs.CreateVolume{
		Dataset: r.Dataset, Size: zfs.VolumeSize(uint64(r.Size)), Block: zfs.DefaultBlock, Thin: true,
		Properties: []zfs.Property{{Name: naming.PropertyImage, Value: r.ID}},
	})
	create("image "+r.Name, "the disk of "+want.File, write)
	create("snapshot "+r.Snapshot(), "disks are cloned from it", zfs.Snapshot{Name: r.Snapshot()})
	d.Plan.Actions = plan.Chain(d.Plan.Actions...)
	d.Intent.Makes = []operation.Object{{Kind: "dataset", Name: r.Dataset}}
	return d, nil
}

// unfinished is what earlier runs of an import have made that died, snapshots before their volume.
func unfinished(view ledger.View, inv *inventory.Inventory, subject string) []zfs.Dataset {
	var left []zfs.Dataset
	for _, open := range operation.Open(view) {
		for _, o := range open.Makes {
			if d, there := inv.Dataset(o.Name); there && open.Subject == subject && Mark(d) == open.ID {
				left = append(append(left, inv.Below(d.Name)...), d)
			}
		}
	}
	return left
}

// remove is the action that destroys a volume or a snapshot.
func remove(d zfs.Dataset, why string) plan.Action {
	kind, step := "dataset ", plan.Step(zfs.Destroy{Dataset: d.Name, GUID: d.GUID, Type: d.Type})
	if d.Type == zfs.TypeSnapshot {
		kind, step = "snapshot ", zfs.DestroySnapshot{Name: d.Name, GUID: d.GUID}
	}
	return plan.Action{ID: step.Verb() + " " + d.Name, Object: kind + d.Name, Why: why, Change: plan.Remove, Step: step}
}
