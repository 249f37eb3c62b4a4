package volume

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/zfs"
)

// ChangeRequest asks for a volume to be otherwise. What is nil, or empty, stays.
type ChangeRequest struct {
	Verb   string
	Ref    string // NAME or id
	Size   *uint64
	Name   string
	Guard  *bool // whether Delete refuses it
	Follow *bool // whether it goes with the instance that has it
	DryRun bool
}

// Change makes a volume larger, renames it, or writes down how it is deleted. One that is as it is
// wanted needs nothing. Errors: *NotFoundError, *ShrinkError, *AttachedError for one that is to be
// renamed and is a disk, *InputError, *TakenError, *SpaceError, *UnseenError, *UnfinishedError;
// those of operation.Run.
func (s Settings) Change(ctx context.Context, env operation.Env, c ChangeRequest) (Status, operation.Report, error) {
	view, err := operation.Decided(ctx, env, c.DryRun)
	if err != nil {
		return Status{}, operation.Report{}, err
	}
	r, err := Find(view, c.Ref)
	if err != nil {
		return Status{}, operation.Report{}, view.Absent(err)
	}
	var used uint64
	report, err := operation.Run(ctx, env, operation.Request[*inventory.Inventory]{
		Verb: c.Verb, Subject: Subject(r.ID), DryRun: c.DryRun, Look: lookAlone,
		Decide: func(view ledger.View, inv *inventory.Inventory, _ operation.Stamp) (operation.Decision, error) {
			old, err := Find(view, r.ID)
			if err != nil {
				return operation.Decision{}, err
			}
			if old.Arrives != "" {
				return operation.Decision{}, &ArrivingError{Name: old.Name, Instance: old.Arrives}
			}
			if c.Name != "" {
				old = old.renamed(inv, c.Name)
			}
			is, err := old.there(inv)
			if err != nil {
				return operation.Decision{}, err
			}
			used = is.Used
			var d operation.Decision
			d, r, err = s.changed(view, inv, old, is, c)
			return d, err
		},
	})
	if err != nil {
		return Status{}, report, s.explained(ctx, env, err, r)
	}
	if report.ID != "" { // it takes something else now
		if is, err := zfs.Get(ctx, env.Host, r.Dataset); err == nil {
			used = is.Used
		}
	}
	return s.status(report.View, r, used), report, nil
}

// there is the dataset of a volume that is made and can be seen.
func (r Record) there(inv *inventory.Inventory) (zfs.Dataset, error) {
	is, there := inv.Dataset(r.Dataset)
	switch why := inv.Unseen(r.Pool); {
	case r.GUID == "":
		return is, &UnfinishedError{Name: r.Name}
	case why != "":
		return is, &UnseenError{What: fmt.Sprintf("volume %q cannot be seen", r.Name), Why: why}
	case !there:
		state, why := r.absent(inv)
		return is, &UnseenError{What: fmt.Sprintf("volume %q %s", r.Name, map[State]string{Missing: "is missing", Differs: "has another name"}[state]), Why: why}
	case !r.is(is):
		return is, &TakenError{Dataset: r.Dataset, Marked: mark(is) != ""}
	}
	return is, nil
}

// renamed is the record of a volume that has the new name on the host already: a rename that was
// killed has not written it down.
func (r Record) renamed(inv *inventory.Inventory, name string) Record {
	at, _ := naming.Volume(r.Pool, name)
	if is, there := inv.Dataset(at); there && r.GUID != "" && r.is(is) {
		r.Name, r.Dataset = name, at
	}
	return r
}

// changed is pure: what makes a volume as it is wanted.
func (s Settings) changed(view ledger.View, inv *inventory.Inventory, old Record, is zfs.Dataset, c ChangeRequest) (d operation.Decision, r Record, err error) {
	r = old
	if c.Guard != nil {
		r.Protected = *c.Guard
	}
	if c.Follow != nil {
		r.Follows = *c.Follow
	}
	var actions []plan.Action
	if c.Size != nil {
		r.Size = zfs.VolumeSize(*c.Size)
		if actions, err = s.growth(view, inv, old, r, is); err != nil {
			return d, old, err
		}
	}
	if c.Name != "" && c.Name != old.Name {
		more, err := s.renaming(view, inv, old, &r, c.Name)
		if err != nil {
			return d, old, err
		}
		actions = append(actions, more...)
	}
	if recorded, _ := BySubject(view, Subject(old.ID)); r == recorded && len(actions) == 0 {
		return d, old, nil
	}
	f, err := r.fact()
	d.OnSuccess = []ledger.Fact{f}
	d.Plan = plan.Plan{Policy: plan.Undo, Actions: plan.Chain(actions...)}
	for _, a := range actions {
		d.Intent.Changes = append(d.Intent.Changes, operation.Object{Kind: kind, Name: strings.TrimPrefix(a.Object, kind+" "), Identity: old.GUID, Old: old.Name + " " + sizeText(old.Size)})
	}
	return d, r, err
}

// Resized is the fact that a volume has another size. Errors: *NotFoundError.
func Resized(view ledger.View, id string, size uint64) (ledger.Fact, error) {
	r, err := Find(view, id)
	if err != nil {
		return ledger.Fact{}, err
	}
	r.Size = size
	return r.fact()
}

// growth is what makes a volume larger.
func (s Settings) growth(view ledger.View, inv *inventory.Inventory, old, r Record, is zfs.Dataset) ([]plan.Action, error) {
	switch {
	case r.Size < is.Volsize:
		return nil, &ShrinkError{Name: old.Name, Is: is.Volsize, Want: r.Size}
	case r.Size == is.Volsize:
		return nil, nil
	case r.Size > zfs.MostVolume:
		return nil, &InputError{Field: "size", Value: sizeText(r.Size), Want: "less than 8E"}
	}
	if !old.Thin {
		need := zfs.Reservation(r.Size, r.Block) - zfs.Reservation(is.Volsize, r.Block)
		if err := s.room(view, inv, r.Pool, need); err != nil {
			return nil, err
		}
	}
	step := zfs.GrowVolume{Dataset: old.Dataset, GUID: old.GUID, Size: r.Size}
	return []plan.Action{{
		ID: step.Verb() + " " + old.Dataset, Object: kind + " " + old.Dataset, Why: "from " + sizeText(is.Volsize) + " to " + sizeText(r.Size), Change: plan.Modify, Step: step,
	}}, nil
}

// renaming is what gives a volume that no instance has another name.
func (s Settings) renaming(view ledger.View, inv *inventory.Inventory, old Record, r *Record, name string) ([]plan.Action, error) {
	if !naming.ValidVolume(name) {
		return nil, badName(name)
	}
	if other, err := Find(view, name); err == nil {
		return nil, &ConflictError{Name: other.Name}
	} else if !errors.As(err, new(*NotFoundError)) {
		return nil, err
	}
	has, err := s.attached(view, old)
	if err == nil && len(has) > 0 {
		err = &AttachedError{Name: old.Name, Instances: has}
	}
	if err != nil {
		return nil, err
	}
	r.Name = name
	r.Dataset, _ = naming.Volume(old.Pool, name)
	if is, there := inv.Dataset(r.Dataset); there {
		return nil, &TakenError{Dataset: r.Dataset, Marked: mark(is) != ""}
	}
	step := zfs.RenameVolume{Dataset: old.Dataset, GUID: old.GUID, To: r.Dataset}
	return []plan.Action{{ID: step.Verb() + " " + old.Dataset, Object: kind + " " + old.Dataset, Why: "to " + name, Change: plan.Modify, Step: step}}, nil
}

// ShrinkError is a volume that is larger than it is to become.
type ShrinkError struct {
	Name     string
	Is, Want uint64
}

// Error shows both sizes.
func (e *ShrinkError) Error() string {
	return fmt.Sprintf("volume %q has %s, and is not made smaller: what lies behind %s would be lost", e.Name, sizeText(e.Is), sizeText(e.Want))
}

func (*ShrinkError) Kind() fault.Kind { return fault.Refused }

// Hint says what can be done instead.
func (e *ShrinkError) Hint() string {
	return "to have a smaller one, create another volume and copy to it what is needed: sledctl volume create NAME --size " + sizeText(e.Want)
}
