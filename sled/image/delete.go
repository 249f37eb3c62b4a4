package image

import (
	"context"
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
)

// List is the status of every recorded image.
func List(ctx context.Context, h host.Host, view ledger.View) ([]Status, error) {
	records, err := All(view)
	if err != nil || len(records) == 0 {
		return nil, err
	}
	inv, err := look(ctx, h)
	if err != nil {
		return nil, err
	}
	var all []Status
	for _, r := range records {
		all = append(all, StatusOf(r, inv))
	}
	return all, nil
}

// NeededError is an image that cannot be deleted.
type NeededError struct {
	Name string
	By   []string
}

// Error names what needs it.
func (e *NeededError) Error() string {
	return fmt.Sprintf("image %q is needed by %s", e.Name, strings.Join(e.By, ", "))
}

func (*NeededError) Kind() fault.Kind { return fault.Refused }

// Hint says how to find them.
func (*NeededError) Hint() string {
	return "remove these first; to see which volume is of which image, run: sledctl volume list -o wide"
}

// Delete removes an image that nothing was cloned from (*NeededError), and whose pools all answer (*UnseenError), by its name or id. Of one
// that does not exist nothing is done: there is false then.
func Delete(ctx context.Context, env operation.Env, ref string, dryRun bool) (there bool, report operation.Report, err error) {
	before, err := operation.Decided(ctx, env, dryRun)
	if err != nil {
		return false, report, err
	}
	r, there, err := Find(before, ref)
	if err != nil || !there {
		return false, report, err
	}
	report, err = operation.Run(ctx, env, operation.Request[*inventory.Inventory]{
		Verb: "image delete", Subject: subject(r.Name), DryRun: dryRun, Look: look,
		Decide: func(view ledger.View, inv *inventory.Inventory, _ operation.Stamp) (operation.Decision, error) {
			r, there, err := Find(view, r.ID)
			if err != nil || !there {
				return operation.Decision{}, err
			}
			if why := r.unseen(inv); why != "" {
				return operation.Decision{}, &UnseenError{Name: r.Name, Why: why}
			}
			if by := clonesOf(r, inv); len(by) > 0 {
				return operation.Decision{}, &NeededError{Name: r.Name, By: by}
			}
			return removal(r, inv), nil
		},
	})
	return true, report, err
}

// Prune removes every image that nothing was cloned from, one after the other, and ends with the
// first that cannot be. What cannot be seen stays. It names those that it has removed, or would.
func Prune(ctx context.Context, env operation.Env, dryRun bool) (names []string, reports []operation.Report, err error) {
	view, err := operation.Decided(ctx, env, dryRun)
	if err != nil {
		return nil, nil, err
	}
	all, err := List(ctx, env.Host, view)
	for _, i := range all {
		if len(i.Clones) > 0 || i.Reason != "" {
			continue
		}
		_, report, failed := Delete(ctx, env, i.ID, dryRun)
		reports = append(reports, report)
		if failed != nil {
			return names, reports, failed
		}
		names = append(names, i.Name)
	}
	return names, reports, err
}

// removal removes what exists of an image. A volume of its name that is another one is
// left alone.
func removal(r Record, inv *inventory.Inventory) operation.Decision {
	d := operation.Decision{Plan: plan.Plan{Policy: plan.Stop}, OnSuccess: []ledger.Fact{r.Forget()}}
	for _, p := range append(r.Places(), r.unfinished(inv)...) {
		volume, there := inv.Dataset(p.Dataset)
		if !there || volume.GUID != p.GUID {
			continue
		}
		for _, dataset := range append(inv.Below(p.Dataset), volume) {
			d.Plan.Actions = append(d.Plan.Actions, remove(dataset, fmt.Sprintf("image %q", r.Name)))
			d.Intent.Removes = append(d.Intent.Removes, operation.Object{Kind: "dataset", Name: dataset.Name, Identity: dataset.GUID})
		}
	}
	d.Plan.Actions = plan.Chain(d.Plan.Actions...)
	return d
}
