package volume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/zfs"
)

// Wanted asks for a volume.
type Wanted struct {
	Name    string
	Size    uint64  // bytes; rounded up to a multiple of zfs.MostBlock; 0 with an image: its size
	Block   uint64  // bytes; 0: of one that is there, any, else zfs.DefaultBlock
	Pool    string  // empty: of one that is there, any, else the image's, else the pool with the most room
	Near    string  // of one that is new: the pool to prefer, if that has room; empty: none
	Image   string  // what it begins as; empty: all zeros
	Stream  *Stream // what it is made of, instead of Image; nil: none
	Thin    bool
	Protect bool
	Follow  bool // deleted with the instance that has it
	// Arrives is the id of the instance with which it moves here: it keeps the snapshot that it is made of; empty: with none.
	Arrives string
}

// Stream is a snapshot of a volume elsewhere, as zfs send prints it.
type Stream struct {
	GUID   string // of the snapshot
	Source zfs.Source
}

// verb is the operation that makes it.
func (w Wanted) verb() string {
	if w.Arrives != "" {
		return receiveVerb
	}
	return "volume create"
}

// received is the GUID of what it is made of; empty: of no stream.
func (w Wanted) received() string {
	if w.Stream == nil {
		return ""
	}
	return w.Stream.GUID
}

// kind is what a volume is called among the objects of an operation.
const kind = "volume"

// Create makes a volume. One that is as it is wanted needs nothing; one whose making was
// killed is made. Errors: those of Settings.Image; *InputError, *ConflictError, *TakenError, *PoolError, *SpaceError,
// *UnseenError; those of operation.Run.
func (s Settings) Create(ctx context.Context, env operation.Env, want Wanted, dryRun, keep bool) (Status, operation.Report, error) {
	view, err := operation.Decided(ctx, env, dryRun)
	if err != nil {
		return Status{}, operation.Report{}, err
	}
	want, image, copied, err := s.placed(ctx, env, view, want, dryRun)
	if err != nil {
		return Status{}, copied, err
	}
	id, err := s.id(view, want.Name)
	if err != nil {
		return Status{}, operation.Report{}, err
	}
	var made Record
	var used uint64
	report, err := operation.Run(ctx, env, operation.Request[*inventory.Inventory]{
		Verb: want.verb(), Subject: Subject(id), DryRun: dryRun, Keep: keep, Look: want.look,
		Decide: func(view ledger.View, inv *inventory.Inventory, at operation.Stamp) (d operation.Decision, err error) {
			d, made, err = s.decide(ctx, env, view, inv, at, id, want, image)
			is, _ := inv.Dataset(made.Dataset)
			used = is.Used
			return d, err
		},
		Seal: func(ctx context.Context, h host.Host) ([]ledger.Fact, error) {
			is, err := zfs.Get(ctx, h, made.Dataset)
			if err != nil {
				return nil, err
			}
			made.GUID, used = is.GUID, is.Used
			f, err := made.fact()
			return []ledger.Fact{f}, err
		},
	})
	if err != nil {
		return Status{}, report, s.explained(ctx, env, err, made)
	}
	if dryRun {
		report.Plan.Actions = append(copied.Plan.Actions, report.Plan.Actions...)
	}
	return s.status(report.View, made, used), report, nil
}

// placed is begun, with the image made on the pool that the volume is to lie on; the report is of that.
func (s Settings) placed(ctx context.Context, env operation.Env, view ledger.View, want Wanted, dryRun bool) (Wanted, Image, operation.Report, error) {
	next, image, err := s.begun(view, want)
	if err != nil || s.CopyImage == nil || image.Pool == "" || image.Pool == next.Pool {
		return next, image, operation.Report{}, err
	}
	if !dryRun { // nothing is copied for a volume that is refused
		if _, report, err := s.Create(ctx, env, want, true, false); err != nil {
			return next, image, report, err
		}
	}
	env.Wait = true // several volumes may need the same copy at once
	snapshot, report, err := s.CopyImage(ctx, env, image.Name, next.Pool, dryRun)
	image.Pool, image.Snapshot = next.Pool, snapshot
	return next, image, report, err
}

// AsWanted finds a volume that is recorded as it is wanted, and made, and which no operation has
// begun to change or to delete.
func (s Settings) AsWanted(view ledger.View, want Wanted) (Record, bool) {
	want, _, err := s.begun(view, want)
	if err != nil {
		return Record{}, false
	}
	r, err := Find(view, want.Name)
	return r, err == nil && r.GUID != "" && r.Arrives == "" && r.differs(want) == nil && (r.Follows || !want.Follow) && (r.Protected || !want.Protect) &&
		!operation.IsOpen(view, Subject(r.ID))
}

// begun checks what is wanted, and completes it by the image that the volume begins as. One that was
// made from it needs that no more.
func (s Settings) begun(view ledger.View, want Wanted) (Wanted, Image, error) {
	if want.Stream == nil { // one that is received has the size that was sent
		want.Size = zfs.VolumeSize(want.Size)
	}
	if want.Image == "" {
		return want, Image{}, want.check()
	}
	if r, err := Find(view, want.Name); err == nil && r.GUID != "" && r.Image == want.Image {
		want.Size = cmp.Or(want.Size, r.Size)
		return want, Image{}, want.check()
	}
	image, err := s.Image(view, want.Image, want.Pool)
	if err != nil {
		return want, image, err
	}
	size, block, pool := cmp.Or(want.Size, image.Size), cmp.Or(want.Block, image.Block), cmp.Or(want.Pool, image.Pool)
	switch {
	case size < image.Size:
		return want, image, &InputError{Field: "size", Value: sizeText(size), Want: "at least " + sizeText(image.Size) + ", the size of image " + image.Name}
	case block != image.Block:
		return want, image, &InputError{Field: "block size", Value: sizeText(block), Want: sizeText(image.Block) + ", as image " + image.Name + " has"}
	case pool != image.Pool && !image.Copied:
		return want, image, &InputError{Field: "pool", Value: pool, Want: image.Pool + ", where image " + image.Name + " lies"}
	}
	want.Size, want.Block, want.Pool = size, block, pool
	return want, image, want.check()
}

// explained says who holds what where zfs itself found no room: another program was faster, or a
// quota is further up.
func (s Settings) explained(ctx context.Context, env operation.Env, err error, r Record) error {
	if !errors.Is(err, zfs.ErrSpace) {
		return err
	}
	view, verr := operation.Decided(ctx, env, true)
	inv, ierr := look(ctx, env.Host)
	if verr != nil || ierr != nil {
		return err
	}
	e := s.full(view, inv, r.Pool, zfs.Reservation(r.Size, r.Block))
	e.Err = err
	return e
}

func (w Wanted) check() error {
	switch {
	case !naming.ValidVolume(w.Name):
		return badName(w.Name)
	case w.Size == 0 || w.Size > zfs.MostVolume:
		return &InputError{Field: "size", Value: sizeText(w.Size), Want: "more than 0, and less than 8E"}
	case w.Block != 0 && (w.Block < zfs.LeastBlock || w.Block > zfs.MostBlock || w.Block&(w.Block-1) != 0):
		return &InputError{Field: "block size", Value: sizeText(w.Block), Want: "a power of 2 from 512 to 128K"}
	}
	return nil
}

func badName(name string) error {
	return &InputError{Field: "volume", Value: name, Want: fmt.Sprintf("1 to %d letters, digits, '-', '_' and '.', the first a letter or digit, and no UUID", naming.VolumeNameMax)}
}

// decide is pure but for the question whether another operation is alive.
func (s Settings) decide(
	ctx context.Context, env operation.Env, view ledger.View, inv *inventory.Inventory, at operation.Stamp, id string, want Wanted, image Image,
) (operation.Decision, Record, error) {
	now, err := s.id(view, want.Name)
	if err == nil && now != id { // it was made, or another was renamed, since the ledger was read
		holder, _ := operation.Alive(ctx, env, Subject(now))
		err = operation.LockedBy(Subject(now), holder)
	}
	old, known := BySubject(view, Subject(id))
	if err != nil {
		return operation.Decision{}, Record{}, err
	}
	r := Record{
		ID: id, Name: want.Name, Size: want.Size, Block: cmp.Or(want.Block, zfs.DefaultBlock), Thin: want.Thin,
		Protected: want.Protect, Follows: want.Follow, Image: want.Image, Received: want.received(), Arrives: want.Arrives, Created: at.Now,
	}
	if known {
		return s.again(view, inv, old, r, want, image)
	}
	if r.Pool, err = s.pool(inv, cmp.Or(want.Pool, near(inv, r, want.Near))); err != nil {
		return operation.Decision{}, r, err
	}
	r.Dataset, _ = naming.Volume(r.Pool, r.Name)
	if is, there := inv.Dataset(r.Dataset); there {
		return operation.Decision{}, r, &TakenError{Dataset: r.Dataset, Marked: mark(is) != ""}
	}
	d, err := s.making(view, inv, r, want, image)
	return d, r, err
}

// again is what is left to do for a volume that has a record: nothing, but to write down that
// it is protected. What was never finished is made as it is wanted now, a clone in any case: it may
// not have its size yet; and so is what was received, which may be a part.
func (s Settings) again(view ledger.View, inv *inventory.Inventory, old, next Record, want Wanted, image Image) (d operation.Decision, r Record, err error) {
	if why := inv.Unseen(old.Pool); why != "" {
		return d, old, &UnseenError{What: fmt.Sprintf("volume %q cannot be seen", old.Name), Why: why}
	}
	if err := old.elsewhere(want); err != nil {
		return d, old, err
	}
	is, there := inv.Dataset(old.Dataset)
	differs := old.differs(want)
	switch {
	case there && !old.is(is):
		return d, old, &TakenError{Dataset: old.Dataset, Marked: mark(is) != ""}
	case old.remade(want): // of another stream
	case old.GUID != "" && differs != nil, want.Pool != "" && want.Pool != old.Pool:
		return d, old, differs
	case old.GUID != "" && !there:
		return d, old, &ConflictError{Name: old.Name, Field: "dataset " + old.Dataset, Is: "gone", Want: "there"}
	case there && differs == nil && (old.GUID != "" || old.Image+old.Received == ""): // made, and not written down
		next = old
		next.GUID, next.Protected = is.GUID, old.Protected || want.Protect
		next.Follows = old.Follows || want.Follow
		if next == old {
			return d, old, nil
		}
		f, err := next.fact()
		d.OnSuccess = []ledger.Fact{f}
		return d, next, err
	}
	next.Pool, next.Dataset = old.Pool, old.Dataset
	if d, err = s.making(view, inv, next, want, image); err == nil && there {
		left := dismantling(old, is, inv.Below(is.Name))
		d.Plan.Actions = plan.Chain(append(left, d.Plan.Actions...)...)
		d.Intent.Removes = []operation.Object{{Kind: kind, Name: is.Name, Identity: is.GUID}}
	}
	return d, next, err
}

// differs says what of a recorded volume is not as it is wanted.
func (r Record) differs(want Wanted) error {
	for _, c := range []struct{ field, is, want string }{
		{"size", sizeText(r.Size), sizeText(want.Size)},
		{"block size", sizeText(r.Block), sizeText(cmp.Or(want.Block, r.Block))},
		{"pool", r.Pool, cmp.Or(want.Pool, r.Pool)},
		{"kind", thickness(r.Thin), thickness(want.Thin)},
		{"image", cmp.Or(r.Image, "none"), cmp.Or(want.Image, r.Image, "none")},
		{"stream", cmp.Or(r.Received, "none"), cmp.Or(want.received(), r.Received, "none")},
	} {
		if c.is != c.want {
			return &ConflictError{Name: r.Name, Field: c.field, Is: c.is, Want: c.want}
		}
	}
	if r.Size != want.Size {
		return &ConflictError{Name: r.Name, Field: "size", Is: fmt.Sprint(r.Size), Want: fmt.Sprint(want.Size)}
	}
	return nil
}

func thickness(thin bool) string {
	if thin {
		return "thin"
	}
	return "thick"
}

// making is the plan that makes a volume, if there is room for it.
func (s Settings) making(view ledger.View, inv *inventory.Inventory, r Record, want Wanted, image Image) (d operation.Decision, err error) {
	if err := prepared(inv, r.Pool); err != nil {
		return d, err
	}
	need := zfs.Reservation(r.Size, r.Block)
	if r.Thin {
		need = 0
	}
	if err := s.room(view, inv, r.Pool, need); err != nil {
		return d, err
	}
	f, err := r.fact()
	return operation.Decision{
		Plan:    plan.Plan{Policy: plan.Undo, Actions: r.steps(want, image)},
		Intent:  operation.Intent{Makes: []operation.Object{{Kind: kind, Name: r.Dataset}}},
		OnStart: []ledger.Fact{f},
		OnUndo:  []ledger.Fact{r.Forget()},
	}, err
}

// steps make a volume: of zeros, of a stream, or as a clone that grows, and for which room is kept then.
func (r Record) steps(want Wanted, image Image) []plan.Action {
	act := func(change plan.Change, why string, step plan.Step) plan.Action {
		return plan.Action{ID: step.Verb() + " " + r.Dataset, Object: kind + " " + r.Dataset, Why: why, Change: change, Step: step}
	}
	size, marks := sizeText(r.Size), []zfs.Property{{Name: naming.PropertyVolume, Value: r.ID}}
	if want.Stream != nil {
		actions := []plan.Action{act(plan.Create, size+" on pool "+r.Pool, zfs.ReceiveVolume{
			Dataset: r.Dataset, Properties: marks, From: want.Stream.Source, Snapshot: r.received(), GUID: r.Received, Keep: r.Arrives != "", Size: r.Size,
		})}
		return r.kept(actions, act)
	}
	if r.Image == "" {
		return []plan.Action{act(plan.Create, size+" on pool "+r.Pool, zfs.CreateVolume{Dataset: r.Dataset, Size: r.Size, Block: r.Block, Thin: r.Thin, Properties: marks})}
	}
	actions := []plan.Action{act(plan.Create, "image "+image.Name, zfs.CloneVolume{Snapshot: image.Snapshot, Dataset: r.Dataset, Properties: marks})}
	if r.Size > image.Size {
		actions = append(actions, act(plan.Modify, "from "+sizeText(image.Size)+" to "+size, zfs.GrowVolume{Dataset: r.Dataset, Size: r.Size}))
	}
	return r.kept(actions, act)
}

// received begins the names of the snapshots that a volume has while it is received.
const received = "received"

// received is the snapshot that a volume is received with. One that moves here keeps it, and gets others.
func (r Record) received() string {
	if r.Arrives == "" {
		return received
	}
	return received + "-" + r.Received
}

// kept has room kept for a volume that is not thin, once it is made.
func (r Record) kept(actions []plan.Action, act func(plan.Change, string, plan.Step) plan.Action) []plan.Action {
	if !r.Thin {
		actions = append(actions, act(plan.Modify, "room for all of it is kept", zfs.Set{Dataset: r.Dataset, Name: "refreservation", Value: "auto"}))
	}
	return plan.Chain(actions...)
}

// dismantling removes a volume that was never finished, with the snapshot that it was being received with.
func dismantling(r Record, is zfs.Dataset, below []zfs.Dataset) (actions []plan.Action) {
	const why = "it was never finished"
	return append(unreceived(below, why), removal(r, is, why)...)
}

// unreceived removes snapshots that a volume was received with.
func unreceived(snapshots []zfs.Dataset, why string) (actions []plan.Action) {
	for _, d := range snapshots {
		step := zfs.DestroySnapshot{Name: d.Name, GUID: d.GUID}
		actions = append(actions, plan.Action{ID: step.Verb() + " " + d.Name, Object: "snapshot " + d.Name, Why: why, Change: plan.Remove, Step: step})
	}
	return actions
}

// removal destroys the dataset of a volume.
func removal(r Record, is zfs.Dataset, why string) []plan.Action {
	step := zfs.Destroy{Dataset: r.Dataset, GUID: is.GUID, Type: zfs.TypeVolume}
	return []plan.Action{{ID: step.Verb() + " " + r.Dataset, Object: kind + " " + r.Dataset, Why: why, Change: plan.Remove, Step: step}}
}

// near is a pool if it has room for a volume; empty: it has not.
func near(inv *inventory.Inventory, r Record, pool string) string {
	if pool != "" && prepared(inv, pool) == nil && (r.Thin || zfs.Reservation(r.Size, r.Block) <= free(inv, pool)) {
		return pool
	}
	return ""
}

// pool is the one on which a new volume goes: the one that was asked for, or of those of zones
// the one with the most room.
func (s Settings) pool(inv *inventory.Inventory, asked string) (string, error) {
	pools, _ := inv.Pools()
	var fit []string
	for _, name := range inventory.ZonePools(pools) {
		if prepared(inv, name) == nil && !inMemory(pools, name) && (s.Pools == nil || slices.Contains(s.Pools, name)) {
			fit = append(fit, name)
		}
	}
	if asked != "" {
		known := slices.ContainsFunc(pools, func(p zfs.Pool) bool { return p.Name == asked })
		_, ok := naming.VolumeParent(asked)
		switch {
		case inMemory(pools, asked):
			return "", forgetful(asked, fit)
		case !known:
			return "", &PoolError{Pool: asked, Why: "is not imported", Pools: fit}
		case !ok:
			return "", &PoolError{Pool: asked, Why: "is that of an M.2 disk", Pools: fit}
		}
		return asked, prepared(inv, asked)
	}
	if i := slices.IndexFunc(pools, zfs.Pool.InMemory); len(fit) == 0 && i >= 0 && prepared(inv, pools[i].Name) == nil {
		return "", forgetful(pools[i].Name, nil)
	}
	if len(fit) == 0 {
		return "", &PoolError{Why: "no pool is ready for volumes"}
	}
	return slices.MaxFunc(fit, func(a, b string) int { // what others write meanwhile makes no difference
		return cmp.Or(cmp.Compare(share(inv, a), share(inv, b)), cmp.Compare(b, a))
	}), nil
}

func forgetful(pool string, others []string) error {
	return &PoolError{Pool: pool, Why: "lies in memory, and a reboot empties it", Pools: others, Forgets: true}
}

// inMemory says whether a pool holds nothing after a reboot.
func inMemory(pools []zfs.Pool, name string) bool {
	return slices.ContainsFunc(pools, func(p zfs.Pool) bool { return p.Name == name && p.InMemory() })
}

// prepared refuses a pool on which there is no place for volumes.
func prepared(inv *inventory.Inventory, pool string) error {
	parent, ok := naming.VolumeParent(pool)
	d, there := inv.Dataset(parent)
	switch why := inv.Unseen(pool); {
	case why != "":
		return &UnseenError{What: "no volume can be made on " + pool, Why: why}
	case !ok || !there || d.Type != zfs.TypeFilesystem:
		return &PoolError{Why: fmt.Sprintf("pool %s is not prepared for volumes: %s is missing", pool, parent)}
	case keyless(inv, pool):
		return &UnseenError{What: "no volume can be made on " + pool, Why: "its key is not loaded"}
	}
	return nil
}
