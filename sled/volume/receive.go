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
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/zfs"
)

// A volume moves here with its instance in several streams: the first is of all of it, each of the others of what
// has changed since. Until the instance has arrived, the volume keeps the snapshot that it has reached, and its record says
// which that is and whose the volume will be. Whatever was killed, the snapshots tell how far it came.

// receiveVerb is the operation.
const receiveVerb = "volume receive"

// ReceiveRequest is a stream of a volume that moves here.
type ReceiveRequest struct {
	Wanted        // its description; Stream is of the snapshot that it becomes
	Since  string // the GUID of the snapshot since which the stream is; empty: it is of all
	DryRun bool
}

// Receive makes a volume of a stream, or brings one that an earlier stream has made to a later snapshot. One that is
// there already is left as it is, and the stream is not read. Errors: *ForeignError, *ArrivingError, *AttachedError,
// *BehindError; those of Create.
func (s Settings) Receive(ctx context.Context, env operation.Env, c ReceiveRequest) (Status, operation.Report, error) {
	view, err := operation.Decided(ctx, env, c.DryRun)
	if err != nil {
		return Status{}, operation.Report{}, err
	}
	r, err := Find(view, c.Name)
	switch {
	case errors.As(err, new(*NotFoundError)) && c.Since != "":
		return Status{}, operation.Report{}, &BehindError{Name: c.Name, Want: c.Since}
	case err != nil && !errors.As(err, new(*NotFoundError)):
		return Status{}, operation.Report{}, err
	case err == nil && r.Arrives != c.Arrives:
		return Status{}, operation.Report{}, r.elsewhere(c.Wanted)
	case err == nil && r.GUID != "" && r.Received == c.received(), c.Since != "":
		return s.follow(ctx, env, r, c)
	}
	has, err := s.attached(view, r)
	if err == nil && r.ID != "" && len(has) > 0 {
		err = &AttachedError{Name: r.Name, Instances: has}
	}
	if err != nil {
		return Status{}, operation.Report{}, err
	}
	return s.Create(ctx, env, c.Wanted, c.DryRun, false)
}

// elsewhere is why a volume is not the one that is wanted, by the instance that it moves with; nil: it may be.
func (r Record) elsewhere(want Wanted) error {
	switch {
	case r.Arrives == want.Arrives:
		return nil
	case r.Arrives != "":
		return &ArrivingError{Name: r.Name, Instance: r.Arrives}
	}
	return &ForeignError{Name: r.Name}
}

// remade reports whether a volume that moves here is made again, of another snapshot than it has.
func (r Record) remade(want Wanted) bool {
	return r.Arrives != "" && r.GUID != "" && r.Received != want.received()
}

// BehindError is a volume that does not have the snapshot since which a stream is.
type BehindError struct{ Name, Is, Want string }

// Error names both.
func (e *BehindError) Error() string {
	return fmt.Sprintf("volume %q has snapshot %s, and the stream begins at %s", e.Name, orNone(e.Is), e.Want)
}

func (*BehindError) Kind() fault.Kind { return fault.Conflict }

// Hint says what sends the rest.
func (*BehindError) Hint() string {
	return "to send what is missing, run again on the source: sledctl instance migrate NAME"
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// follow brings a volume to a later snapshot.
func (s Settings) follow(ctx context.Context, env operation.Env, r Record, c ReceiveRequest) (Status, operation.Report, error) {
	var used uint64
	report, err := operation.Run(ctx, env, operation.Request[*inventory.Inventory]{
		Verb: receiveVerb, Subject: Subject(r.ID), DryRun: c.DryRun, Look: c.look,
		Decide: func(view ledger.View, inv *inventory.Inventory, _ operation.Stamp) (d operation.Decision, err error) {
			old, err := Find(view, r.ID)
			if err != nil {
				return d, err
			}
			is, err := old.there(inv)
			if err != nil {
				return d, err
			}
			used = is.Used
			d, r, err = s.following(view, inv, old, c)
			return d, err
		},
	})
	if err != nil {
		return Status{}, report, s.explained(ctx, env, err, r)
	}
	return s.status(report.View, r, used), report, nil
}

// following is pure: what brings a volume to the snapshot of a stream.
func (s Settings) following(view ledger.View, inv *inventory.Inventory, old Record, c ReceiveRequest) (d operation.Decision, r Record, err error) {
	has, err := s.attached(view, old)
	r = old
	r.Received, r.Size, r.Thin, r.Protected, r.Follows = c.received(), c.Size, c.Thin, c.Protect, c.Follow
	switch {
	case err != nil:
		return d, old, err
	case old.Arrives != c.Arrives:
		return d, old, old.elsewhere(c.Wanted)
	case r == old:
		return d, old, nil
	case len(has) > 0:
		return d, old, &AttachedError{Name: old.Name, Instances: has}
	}
	d.Plan.Policy = plan.Stop
	if d.Plan.Actions, err = s.increment(inv, old, r, c); err != nil {
		return d, old, err
	}
	d.Intent.Changes = []operation.Object{{Kind: kind, Name: r.Dataset, Identity: r.GUID, Old: old.Received}}
	f, err := r.fact()
	d.OnSuccess = []ledger.Fact{f}
	return d, r, err
}

// increment is the plan from what there is of a volume to the snapshot that it is to have. An earlier run may have
// received that, or another one after the snapshot that is recorded.
func (s Settings) increment(inv *inventory.Inventory, old, r Record, c ReceiveRequest) (actions []plan.Action, err error) {
	act := func(change plan.Change, why string, step plan.Step) plan.Action {
		return plan.Action{ID: step.Verb() + " " + r.Dataset, Object: kind + " " + r.Dataset, Why: why, Change: change, Step: step}
	}
	var later []zfs.Dataset
	var base, reached *zfs.Dataset
	for _, d := range inv.Below(r.Dataset) {
		switch _, short, _ := strings.Cut(d.Name, "@"); {
		case short == r.received() && d.GUID == r.Received:
			reached = &d
		case short == old.received() && d.GUID == old.Received:
			base = &d
		case strings.HasPrefix(short, received+"-"):
			later = append(later, d)
		}
	}
	switch {
	case reached != nil:
		if base != nil {
			later = append(later, *base)
		}
		actions = unreceived(later, "its successor was received")
	case base == nil || old.Received != c.Since:
		return nil, &BehindError{Name: r.Name, Is: old.Received, Want: c.Since}
	default:
		if len(later) > 0 {
			actions = append(unreceived(later, "its operation did not end"), act(plan.Modify, "to what is recorded", zfs.Rollback{Name: base.Name, GUID: base.GUID}))
		}
		actions = append(actions, act(plan.Modify, "what has changed", zfs.ReceiveChanges{
			Dataset: r.Dataset, From: c.Stream.Source, Since: old.received(), SinceGUID: old.Received, Snapshot: r.received(), GUID: r.Received, Size: r.Size,
		}))
	}
	if !r.Thin && (old.Thin || r.Size != old.Size) {
		return r.kept(actions, act), nil
	}
	return plan.Chain(actions...), nil
}

// Arrived ends the move of the volumes of an instance: they are its own, and other volumes like. What one of them keeps
// of its stream is removed. Those that others have are left alone.
func (s Settings) Arrived(ctx context.Context, env operation.Env, instance string, datasets []string) (reports []operation.Report, err error) {
	view, err := operation.Decided(ctx, env, false)
	if err != nil {
		return nil, err
	}
	for _, dataset := range datasets {
		r, recorded := At(view, dataset)
		if !recorded || r.Arrives != instance {
			continue
		}
		report, err := s.settle(ctx, env, r)
		if reports = append(reports, report); err != nil {
			return reports, err
		}
	}
	return reports, nil
}

func (s Settings) settle(ctx context.Context, env operation.Env, r Record) (operation.Report, error) {
	return operation.Run(ctx, env, operation.Request[content]{
		Verb: receiveVerb, Subject: Subject(r.ID),
		Look: func(ctx context.Context, h host.Host) (content, error) { return lookInto(ctx, h, r.Dataset) },
		Decide: func(view ledger.View, seen content, _ operation.Stamp) (d operation.Decision, err error) {
			old, err := Find(view, r.ID)
			if err != nil || old.Arrives == "" {
				return d, err
			}
			below := seen.received(old)
			d.Plan = plan.Plan{Policy: plan.Stop, Actions: plan.Chain(unreceived(below, "its instance has arrived")...)}
			for _, is := range below {
				d.Intent.Removes = append(d.Intent.Removes, operation.Object{Kind: "snapshot", Name: is.Name})
			}
			old.Arrives = ""
			f, err := old.fact()
			d.OnSuccess = []ledger.Fact{f}
			return d, err
		},
	})
}
