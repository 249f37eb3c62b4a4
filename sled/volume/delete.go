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
	"github.com/sledctl/sledctl/zfs"
)

// DeleteRequest asks for a volume to be removed with its record.
type DeleteRequest struct {
	Ref    string // NAME or id
	Yes    bool   // also one that is protected
	DryRun bool
}

// Delete removes a volume, with what is on it, and its record. For one that the ledger does not
// know it does nothing: gone is false then. Errors: *AttachedError, *ProtectedError,
// *TakenError, *UnseenError, *FullError; those of operation.Run.
func (s Settings) Delete(ctx context.Context, env operation.Env, c DeleteRequest) (gone bool, report operation.Report, err error) {
	view, err := operation.Decided(ctx, env, c.DryRun)
	if err != nil {
		return false, report, err
	}
	r, err := Find(view, c.Ref)
	if errors.As(err, new(*NotFoundError)) {
		return false, report, nil
	}
	if err != nil {
		return false, report, err
	}
	report, err = operation.Run(ctx, env, operation.Request[content]{
		Verb: "volume delete", Subject: Subject(r.ID), DryRun: c.DryRun,
		Look: func(ctx context.Context, h host.Host) (content, error) { return lookInto(ctx, h, r.Dataset) },
		Decide: func(view ledger.View, seen content, _ operation.Stamp) (operation.Decision, error) {
			r, err := Find(view, r.ID)
			if errors.As(err, new(*NotFoundError)) {
				return operation.Decision{}, nil // another process has
			}
			if err != nil {
				return operation.Decision{}, err
			}
			gone = true
			return s.deletion(view, seen, r, c.Yes)
		},
	})
	return gone, report, err
}

// content is the sled, and what lies in one volume: snapshots.
type content struct {
	*inventory.Inventory
	inside []string
}

func lookInto(ctx context.Context, h host.Host, dataset string) (content, error) {
	inv, err := lookAlone(ctx, h)
	seen := content{Inventory: inv}
	if _, there := inv.Dataset(dataset); err != nil || !there {
		return seen, err
	}
	all, err := zfs.Tops(ctx, h, []string{dataset}, 1, nil)
	for _, d := range all {
		if d.Name != dataset {
			seen.inside = append(seen.inside, d.Name)
		}
	}
	if errors.Is(err, host.ErrNotFound) { // it has gone meanwhile
		err = nil
	}
	return seen, err
}

// received are the snapshots with which a volume moves here.
func (c content) received(r Record) (all []zfs.Dataset) {
	for _, name := range c.inside {
		if strings.HasPrefix(name, r.Dataset+"@"+received+"-") {
			all = append(all, zfs.Dataset{Name: name})
		}
	}
	return all
}

// deletion is what removes a volume.
func (s Settings) deletion(view ledger.View, seen content, r Record, yes bool) (d operation.Decision, err error) {
	inv := seen.Inventory
	has, err := s.attached(view, r)
	switch {
	case err != nil:
		return d, err
	case len(has) > 0:
		return d, &AttachedError{Name: r.Name, Instances: has}
	case r.Protected && !yes:
		return d, &ProtectedError{Name: r.Name}
	}
	if why := inv.Unseen(r.Pool); why != "" {
		return d, &UnseenError{What: fmt.Sprintf("volume %q cannot be seen", r.Name), Why: why}
	}
	is, there := inv.Dataset(r.Dataset)
	if there && !r.is(is) {
		return d, &TakenError{Dataset: r.Dataset, Marked: mark(is) != ""}
	}
	var below []zfs.Dataset
	if r.Arrives != "" {
		below = seen.received(r)
	}
	if there && len(seen.inside) > len(below) {
		return d, &FullError{Name: r.Name, Inside: seen.inside}
	}
	d.OnSuccess = []ledger.Fact{r.Forget()}
	if there {
		d.Plan = plan.Plan{Policy: plan.Stop, Actions: plan.Chain(append(unreceived(below, "deleted"), removal(r, is, "deleted")...)...)}
		d.Intent.Removes = []operation.Object{{Kind: kind, Name: r.Dataset, Identity: is.GUID}}
	}
	return d, nil
}

// Followers are the volumes that are removed with an instance.
type Followers struct {
	Actions []plan.Action
	Removes []operation.Object
	Facts   []ledger.Fact
	Warn    []error
}

// Follow finds which of its disks go with an instance: those that no other instance has, and that
// are not protected. One that cannot be seen stays, and is reported. Of an instance that has moved to another sled
// all go, but for those that have snapshots, which stay here. Errors: *FullError.
func (s Settings) Follow(view ledger.View, inv *inventory.Inventory, datasets []string, moved bool) (f Followers, err error) {
	for _, dataset := range datasets {
		r, recorded := At(view, dataset)
		has, err := s.attached(view, r)
		if err != nil {
			return f, err
		}
		if !recorded || r.Arrives != "" || !moved && (!r.Follows || r.Protected) || len(has) > 1 {
			continue
		}
		if _, there := inv.Dataset(dataset); !there && inv.Unseen(r.Pool) == "" {
			f.Facts = append(f.Facts, r.Forget()) // it is gone already
			continue
		}
		is, err := r.there(inv)
		if err != nil {
			f.Warn = append(f.Warn, fmt.Errorf("keeping volume %q: %w", r.Name, err))
			continue
		}
		if inside := inv.Below(dataset); len(inside) > 0 {
			full := &FullError{Name: r.Name, Inside: []string{inside[0].Name}}
			if !moved {
				return f, full
			}
			f.Warn = append(f.Warn, fmt.Errorf("keeping volume %q, which has moved: %w", r.Name, full))
			continue
		}
		f.Actions = append(f.Actions, removal(r, is, "goes with its instance")...)
		f.Removes = append(f.Removes, operation.Object{Kind: kind, Name: dataset, Identity: is.GUID})
		f.Facts = append(f.Facts, r.Forget())
	}
	return f, nil
}
