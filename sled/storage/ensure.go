package storage

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/disk"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/zfs"
)

// Ensure makes the disks of these kinds have what they must: their pools are
// imported, or made if they may be; then their datasets are made, unlocked,
// repaired and mounted. What lies on a pool is seen once it is imported, so that a
// run that imports is followed by another: there is one report for each.
//
// Of M.2s alone it may run before there is a ledger that can be written, because
// the ledger lies on what it makes. Errors: *PartialError if something is left that it does
// not repair; those of operation.Run.
func (s Settings) Ensure(ctx context.Context, env operation.Env, kinds []disk.Kind, dryRun bool) ([]operation.Report, error) {
	var reports []operation.Report
	unfinished, err := begun(ctx, env)
	if err == nil && slices.Contains(kinds, disk.U2) {
		s, err = s.withAssigned(ctx, env)
	}
	if err != nil {
		return nil, err
	}
	if len(unfinished) > 0 && !dryRun { // before their intents end: a process killed then has done all
		s.attest(ctx, env)
	}
	for {
		report, left, err := s.once(ctx, env, kinds, dryRun)
		reports = append(reports, report)
		if len(report.Outcome.Failed) > 0 && report.Outcome.Interrupted == nil && !errors.As(err, new(*operation.OutcomeError)) {
			// What one disk could not give does not keep the others from theirs.
			left, err = append(left, failed(report.Outcome.Failed)...), nil
		}
		if err == nil && !dryRun && imports(report.Outcome.Done) {
			continue
		}
		if err == nil && len(left) > 0 {
			err = &PartialError{left}
		}
		return reports, err
	}
}

// subject is what is locked.
const subject = "sled"

// Import imports the pools of disks that may have them, and does no more: what
// lies on them may be known then. It may run before there is a ledger.
func (s Settings) Import(ctx context.Context, env operation.Env, kinds []disk.Kind) (operation.Report, error) {
	return operation.Run(ctx, env, operation.Request[Seen]{
		Verb: "bootstrap storage", Subject: subject, BeforeLedger: true, Look: s.lookAlone,
		Decide: func(view ledger.View, seen Seen, at operation.Stamp) (operation.Decision, error) {
			known, err := Records(view)
			if err != nil {
				return operation.Decision{}, err
			}
			c := s.compare(seen, known, at, kinds)
			c.new, c.made = nil, nil
			c.found = slices.DeleteFunc(c.found, func(d Difference) bool { return !imports(d.Repair) })
			return c.decision()
		},
	})
}

// failed are the actions that did not do what they should.
func failed(steps []*plan.StepError) []Difference {
	var all []Difference
	for _, f := range steps {
		all = append(all, Difference{Object: f.Action.Object, Property: f.Action.Step.Verb(), Wanted: "done", Why: f.Action.Why, Err: f})
	}
	return all
}

func imports(done []plan.Action) bool {
	return slices.ContainsFunc(done, func(a plan.Action) bool { _, ok := a.Step.(zfs.ImportPool); return ok })
}

// lookWithKeys looks, and then asks the key source, if anything that was seen
// on U.2s needs a key: the source may lie on an M.2 that is only prepared here.
func (s Settings) lookWithKeys(ctx context.Context, h host.Host, kinds []disk.Kind, look func(context.Context, host.Host) (Seen, error)) (Seen, error) {
	seen, err := look(ctx, h)
	if err == nil && slices.Contains(kinds, disk.U2) {
		seen.Keys = s.ask(ctx, h, s.needs(seen))
	}
	return seen, err
}

// once is one look and what follows from it. Left is what it does not repair.
func (s Settings) once(ctx context.Context, env operation.Env, kinds []disk.Kind, dryRun bool) (report operation.Report, left []Difference, err error) {
	var actions []plan.Action
	report, err = operation.Run(ctx, env, operation.Request[Seen]{
		Verb: "bootstrap storage", Subject: subject, DryRun: dryRun, BeforeLedger: dryRun || !slices.Contains(kinds, disk.U2),
		Look: func(ctx context.Context, h host.Host) (Seen, error) {
			seen, err := s.lookWithKeys(ctx, h, kinds, s.lookAlone)
			if err == nil {
				seen.Begun, err = begun(ctx, env)
			}
			return seen, err
		},
		Decide: func(view ledger.View, seen Seen, at operation.Stamp) (operation.Decision, error) {
			known, err := Records(view)
			if err != nil {
				return operation.Decision{}, err
			}
			c := s.compare(seen, known, at, kinds)
			for _, d := range c.found {
				if d.Err != nil {
					left = append(left, d)
				}
			}
			d, err := c.decision()
			actions = d.Plan.Actions
			return d, err
		},
		Seal: func(ctx context.Context, _ host.Host) ([]ledger.Fact, error) {
			if slices.ContainsFunc(actions, bringsZones) {
				s.attest(ctx, env)
			}
			return nil, nil
		},
	})
	return report, left, err
}

// bringsZones says whether an action makes or imports a pool of a U.2.
func bringsZones(a plan.Action) bool {
	name := ""
	switch step := a.Step.(type) {
	case zfs.CreatePool:
		name = step.Name
	case zfs.ImportPool:
		name = step.Name
	}
	kind, _ := naming.ParsePool(name)
	return kind == naming.ExternalPool
}

// attest marks the pools that have come. Without it they are as good: the next
// epoch marks them.
func (s Settings) attest(ctx context.Context, env operation.Env) {
	if s.RefreshWitness == nil {
		return
	}
	if err := s.RefreshWitness(ctx); err != nil && !errors.Is(err, ledger.ErrAbsent) && env.Warn != nil {
		env.Warn(err)
	}
}

// begun are the pools that runs which did not end have begun to make.
func begun(ctx context.Context, env operation.Env) (map[string]bool, error) {
	open, err := operation.Unfinished(ctx, env, subject)
	pools := map[string]bool{}
	for _, intent := range open {
		for _, o := range intent.Makes {
			if o.Kind == "pool" {
				pools[o.Name] = true
			}
		}
	}
	return pools, err
}

// decision is the plan that repairs what can be repaired. What fails on one disk
// does not keep the others from theirs.
func (c *comparison) decision() (operation.Decision, error) {
	d := operation.Decision{Plan: plan.Plan{Policy: plan.Continue, Actions: wipe(c.seen.Left), Drawn: c.drawn}}
	for _, found := range c.found {
		d.Plan.Actions = append(d.Plan.Actions, found.Repair...)
	}
	behindWipes(d.Plan.Actions)
	for _, a := range d.Plan.Actions {
		kind, name, _ := strings.Cut(a.Object, " ")
		object := operation.Object{Kind: kind, Name: name, Old: old(a.Step)}
		switch a.Change {
		case plan.Create:
			d.Intent.Makes = append(d.Intent.Makes, object)
		case plan.Remove:
			d.Intent.Removes = append(d.Intent.Removes, object)
		default:
			d.Intent.Changes = append(d.Intent.Changes, object)
		}
	}
	var err error
	if d.OnStart, err = facts(c.new); err == nil {
		d.OnSuccess, err = facts(c.made)
	}
	return d, err
}

// old is the value that a step changes.
func old(s plan.Step) string {
	switch s := s.(type) {
	case zfs.Set:
		return s.Name + "=" + s.Old
	case zfs.SetPool:
		return s.Name + "=" + s.Old
	}
	return ""
}

func facts(records []Record) ([]ledger.Fact, error) {
	var all []ledger.Fact
	for _, r := range records {
		f, err := r.fact()
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}
