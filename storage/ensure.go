package storage

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/inventory"
	"github.com/sledctl/sledctl/ledger"
	"github.com/sledctl/sledctl/operation"
	"github.com/sledctl/sledctl/plan"
	"github.com/sledctl/sledctl/zfs"
)

// ConflictError is a dataset that is there and is otherwise than it must be, in
// a way that is never changed: nothing that holds data is overwritten.
type ConflictError struct{ Dataset, Property, Is, Wanted string }

// Error shows both values.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("dataset %s: %s is %s, wanted %s", e.Dataset, e.Property, e.Is, e.Wanted)
}

// Ensure makes the expected datasets be there. It is the one operation that
// may run before there is a ledger, because the ledger lies on what it makes.
func Ensure(ctx context.Context, env operation.Env, dryRun bool) (operation.Report, error) {
	return operation.Run(ctx, env, operation.Request[*inventory.Inventory]{
		Verb: "bootstrap storage", Subject: "sled", DryRun: dryRun, BeforeLedger: true,
		Look: Look,
		Decide: func(_ ledger.View, inv *inventory.Inventory, _ operation.Moment) (operation.Decision, error) {
			return decide(inv)
		},
	})
}

// Look lists the pools and what lies on those that are the sled's.
func Look(ctx context.Context, h host.Host) (*inventory.Inventory, error) {
	inv := inventory.Look(ctx, h, inventory.Want{Parts: []inventory.Part{inventory.Rival, inventory.Pools, inventory.Datasets}, Roots: roots})
	return inv, inv.Know(inventory.Rival, inventory.Pools, inventory.Datasets)
}

func roots(pools []zfs.Pool) []string {
	var names []string
	for _, p := range pools {
		if Of(p.Name) != nil {
			names = append(names, p.Name)
		}
	}
	home, _, _ := strings.Cut(Fallback().Dataset, "/")
	if len(names) == 0 && slices.ContainsFunc(pools, func(p zfs.Pool) bool { return p.Name == home }) {
		names = append(names, home)
	}
	return names
}

// decide compares what is expected with what is there. It is pure.
func decide(inv *inventory.Inventory) (operation.Decision, error) {
	pools, err := inv.Pools()
	if err != nil {
		return operation.Decision{}, err
	}
	d := operation.Decision{Plan: plan.Plan{Policy: plan.Stop}}
	last := map[string]string{} // the action behind which a dataset is right
	for _, want := range AllOf(pools) {
		actions, err := want.actions(inv, last[path.Dir(want.Dataset)])
		if err != nil {
			return operation.Decision{}, err
		}
		for _, a := range actions {
			d.Plan.Actions = append(d.Plan.Actions, a)
			last[want.Dataset] = a.ID
			if a.Change == plan.Create {
				d.Intent.Makes = append(d.Intent.Makes, operation.Object{Kind: "dataset", Name: want.Dataset})
			}
		}
	}
	return d, nil
}

func (e Expected) actions(inv *inventory.Inventory, before string) ([]plan.Action, error) {
	object := "dataset " + e.Dataset
	after := []string{}
	if before != "" {
		after = append(after, before)
	}
	is, there := inv.Dataset(e.Dataset)
	if !there {
		properties := append([]zfs.Property{{Name: "mountpoint", Value: e.Mountpoint}}, e.Properties...)
		return []plan.Action{{
			ID: "zfs.create " + e.Dataset, Object: object, Why: e.Why, Change: plan.Create, After: after,
			Step: zfs.Create{Dataset: e.Dataset, Properties: properties},
		}}, nil
	}
	if is.Type != "filesystem" {
		return nil, &ConflictError{Dataset: e.Dataset, Property: "type", Is: is.Type, Wanted: "filesystem"}
	}
	if is.Mountpoint != e.Mountpoint {
		return nil, &ConflictError{Dataset: e.Dataset, Property: "mountpoint", Is: is.Mountpoint, Wanted: e.Mountpoint}
	}
	var actions []plan.Action
	for _, p := range e.Properties {
		if value := current(is, p.Name); value != p.Value {
			actions = append(actions, plan.Action{
				ID: "zfs.set " + e.Dataset + " " + p.Name, Object: object, Why: p.Name + " is " + value + ", wanted " + p.Value, Change: plan.Modify, After: after,
				Step: zfs.Set{Dataset: e.Dataset, Name: p.Name, Value: p.Value, Old: value},
			})
		}
	}
	if !is.Mounted {
		actions = append(actions, plan.Action{
			ID: "zfs.mount " + e.Dataset, Object: object, Why: "is not mounted", Change: plan.Modify, After: after, Step: zfs.Mount{Dataset: e.Dataset},
		})
	}
	return actions, nil
}

// current is the value that a dataset has of a property that we keep.
func current(d zfs.Dataset, name string) string {
	switch name {
	case "compression":
		return d.Compression
	case "quota":
		if d.Quota == 0 {
			return "none"
		}
		return strconv.FormatUint(d.Quota, 10)
	}
	return d.User[name].Value
}
