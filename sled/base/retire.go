package base

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/zfs"
	"github.com/sledctl/sledctl/zone"
)

// Status is a recorded base and what the host shows of it.
type Status struct {
	Record
	Valid  bool   `json:"valid"`
	Reason string `json:"reason"` // why it is not valid
	Clones int    `json:"clones"` // zones
}

// List tells the status of every recorded base.
func (s Settings) List(ctx context.Context, h host.Host, view ledger.View) ([]Status, error) {
	records, err := All(view)
	if err != nil || len(records) == 0 {
		return nil, err
	}
	seen, err := s.look(ctx, h)
	if err != nil {
		return nil, err
	}
	var all []Status
	for _, r := range records {
		st := Status{Record: r, Clones: zonesOf(r, clonesOf(r, seen))}
		st.Valid, st.Reason = r.valid(seen)
		all = append(all, st)
	}
	return all, nil
}

// clonesOf lists the datasets whose origin lies in a base.
func clonesOf(r Record, seen Look) []string {
	datasets, _ := seen.Inv.Datasets()
	var clones []string
	for _, d := range datasets {
		if strings.HasPrefix(d.Origin, r.Dataset+"@") || strings.HasPrefix(d.Origin, r.Dataset+"/") {
			clones = append(clones, d.Name)
		}
	}
	return clones
}

// zonesOf counts the zones that cloned datasets belong to: a clone of a base is
// made of several.
func zonesOf(r Record, clones []string) int {
	zones := map[string]bool{}
	for _, clone := range clones {
		if below, ok := strings.CutPrefix(clone, path.Dir(r.Dataset)+"/"); ok {
			clone, _, _ = strings.Cut(below, "/")
		}
		zones[clone] = true
	}
	return len(zones)
}

// NeededError is a base that cannot be retired.
type NeededError struct {
	Zone   string
	Reason string
}

// Error says why.
func (e *NeededError) Error() string { return fmt.Sprintf("base %s: %s", e.Zone, e.Reason) }

func (*NeededError) Kind() fault.Kind { return fault.Refused }

// Cloned names who has cloned a base between two views, by the name of its zone;
// empty: nobody has.
type Cloned func(before, now ledger.View, base string) (name string, err error)

// Ahead is what removes the zones that were cloned from a base and that nobody has yet.
type Ahead struct {
	Zones   []string
	Begun   []ledger.Fact // written before the first change
	Ended   []ledger.Fact // written when they are gone
	Removes []operation.Object
	Actions []plan.Action
}

// Clones is what others know of the clones of a base.
type Clones struct {
	Since Cloned
	Ahead func(view ledger.View, inv *inventory.Inventory, base string) (Ahead, error)
}

// Retire removes a base that nothing is cloned from but spares, which go first; also not
// since the sled was looked at. One without a record needs nothing: there is false then.
func (s Settings) Retire(ctx context.Context, env operation.Env, name string, clones Clones, dryRun bool) (there bool, report operation.Report, err error) {
	before, err := operation.Decided(ctx, env, dryRun)
	if err != nil {
		return false, report, err
	}
	r, there, err := find(before, name)
	if err != nil || !there {
		return false, report, err
	}
	report, err = operation.Run(ctx, env, operation.Request[Look]{
		Verb: "base retire", Subject: Subject(r.Pool), DryRun: dryRun, Look: s.lookAlone,
		Decide: func(view ledger.View, seen Look, _ operation.Stamp) (operation.Decision, error) {
			r, there, err := find(view, name)
			if err != nil || !there {
				return operation.Decision{}, err
			}
			ahead, err := clones.Ahead(view, seen.Inv, name)
			if err != nil {
				return operation.Decision{}, err
			}
			if err := r.needed(view, seen, ahead.Zones); err != nil {
				return operation.Decision{}, err
			}
			switch user, err := clones.Since(before, view, name); {
			case err != nil:
				return operation.Decision{}, err
			case user != "":
				return operation.Decision{}, &NeededError{Zone: name, Reason: user + " was cloned from it meanwhile"}
			}
			return r.removal(seen, ahead), nil
		},
	})
	return true, report, err
}

func find(view ledger.View, name string) (r Record, there bool, err error) {
	all, err := All(view)
	if err != nil {
		return Record{}, false, err
	}
	i := slices.IndexFunc(all, func(r Record) bool { return r.Zone == name })
	if i < 0 {
		return Record{}, false, nil
	}
	return all[i], true, nil
}

// needed refuses a base that something is cloned from, but for some zones.
func (r Record) needed(view ledger.View, seen Look, but []string) error {
	clones := slices.DeleteFunc(clonesOf(r, seen), func(clone string) bool {
		return slices.ContainsFunc(but, func(zone string) bool { return strings.HasPrefix(clone+"/", path.Dir(r.Dataset)+"/"+zone+"/") })
	})
	if len(clones) > 0 {
		return &NeededError{Zone: r.Zone, Reason: strings.Join(clones, ", ") + " is cloned from it"}
	}
	for _, open := range operation.Open(view) {
		if open.Base == r.Zone {
			return &NeededError{Zone: r.Zone, Reason: open.Verb + " has begun to clone it"}
		}
	}
	return nil
}

// removal removes what was cloned ahead from a base, and what exists of it.
func (r Record) removal(seen Look, ahead Ahead) operation.Decision {
	d := operation.Decision{Plan: plan.Plan{Policy: plan.Stop, Actions: ahead.Actions}, OnStart: ahead.Begun, OnSuccess: append(ahead.Ended, ledger.Fact{Key: r.key()})}
	z, there := seen.Inv.Zone(r.Zone)
	dataset, exists := seen.Inv.Dataset(r.Dataset)
	d.Intent.Removes = append(ahead.Removes, operation.Object{Kind: "zone", Name: r.Zone, Identity: z.UUID}, operation.Object{Kind: "dataset", Name: r.Dataset, Identity: dataset.GUID})
	add := func(object, why string, step plan.Step) {
		d.Plan.Actions = append(d.Plan.Actions, plan.Action{ID: step.Verb() + " " + object, Object: object, Why: why, Change: plan.Remove, Step: step})
	}
	if there {
		for _, step := range zone.Removal(z) {
			add("zone "+r.Zone, "nothing is cloned from it", step.(plan.Step))
		}
	}
	destroyed := there && z.State != zone.Configured && z.State != zone.Incomplete && zone.UninstallDestroys(z.Brand)
	if exists && !destroyed {
		for _, child := range slices.Backward(seen.Inv.Below(r.Dataset)) {
			if child.Type == "snapshot" {
				add("dataset "+child.Name, "of the base", zfs.DestroySnapshot{Name: child.Name, GUID: child.GUID})
				continue
			}
			add("dataset "+child.Name, "of the base", zfs.Destroy{Dataset: child.Name, GUID: child.GUID, Type: child.Type})
		}
		add("dataset "+r.Dataset, "zonepath of the base", zfs.Destroy{Dataset: r.Dataset, GUID: dataset.GUID, Type: dataset.Type})
	}
	d.Plan.Actions = plan.Chain(d.Plan.Actions...)
	return d
}
