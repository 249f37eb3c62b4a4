package nicsync

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/peer/napi"
)

// Options say what a sync may do.
type Options struct {
	Backfill, Reap, State bool
	// MaxDelete is how many records may go; more, and nothing is done. Negative: a
	// quarter of the sled's, and at least 8.
	MaxDelete int
	// ConfirmTwice is how long after the first look the second one is at those that
	// would go; 0: they are looked at once more, at once.
	ConfirmTwice time.Duration
	// DisableDuringMigration forbids every write while any VM of the sled is being
	// moved.
	DisableDuringMigration bool
	DryRun                 bool
}

// What becomes of a finding.
const (
	ToChange = "to change"
	ToRemove = "to remove"
	Changed  = "changed"
	Removed  = "removed"
	Left     = "left" // it should have been changed or removed, and was not
)

// Outcome is what a sync has found and done.
type Outcome struct {
	Findings []Finding
	Results  map[string]string // by MAC; absent: nothing was to be done
	Reports  []operation.Report
}

// subject is what is locked: a sled never has two writers of one record.
const subject = "nics"

// List judges the records and the NICs of the sled, and changes nothing.
func (s Settings) List(ctx context.Context, env operation.Env) ([]Finding, error) {
	found, err := s.lookAtAll(ctx, host.ReadOnly(env.Host), s.bookOf(env), nil)
	if err != nil {
		return nil, err
	}
	return s.findings(found), nil
}

func (s Settings) bookOf(env operation.Env) book {
	return func(ctx context.Context) (ledger.View, error) {
		if s.Ledgerless {
			return ledger.View{}, nil
		}
		l, err := env.Ledger(ctx)
		if err != nil {
			return ledger.View{}, err
		}
		return l.Read(ctx)
	}
}

// rounds is how often a record that somebody else changed is looked at again.
const rounds = 3

// part is what one operation of a sync writes.
type part int

const (
	both part = iota // only in dry runs: nothing is written
	changes
	removals
)

// Sync makes the records match the sled, as far as the options allow: first what
// is changed, then what is removed. Records that others change meanwhile are read and
// judged again. The outcome lists what was found and done also when there is an
// error: *UnknownError, *UnsupportedError, *MovingError, *TooManyError,
// *napi.WritesDisabledError, those of napi.Client, and operation's.
func (s Settings) Sync(ctx context.Context, env operation.Env, o Options) (Outcome, error) {
	return s.sync(ctx, env, o, nil)
}

// SyncTouched is Sync of the records of what something happened to, and of no other:
// what it asks NAPI does not depend on how many there are. Where a VM is gone, what
// told so has seen it first: the second look is debounce later.
func (s Settings) SyncTouched(ctx context.Context, env operation.Env, o Options, t Touched) (Outcome, error) {
	s.also = t.marked
	if t.All {
		return s.sync(ctx, env, o, nil)
	}
	o.ConfirmTwice = max(0, min(o.ConfirmTwice, debounce)-time.Since(t.Seen))
	return s.sync(ctx, env, o, &scope{macs: t.MACs, ids: t.IDs})
}

func (s Settings) sync(ctx context.Context, env operation.Env, o Options, of *scope) (Outcome, error) {
	outcome := Outcome{Results: map[string]string{}}
	if o.DryRun {
		_, err := s.once(ctx, env, o, both, of, &outcome)
		return outcome, err
	}
	err := s.write(ctx, env, o, changes, of, &outcome)
	var going []string
	for _, f := range outcome.Findings {
		if f.Removed && o.Reap {
			going = append(going, f.MAC)
		}
	}
	if len(going) == 0 || err != nil && !mayContinue(err) {
		return outcome, err
	}
	return outcome, errors.Join(err, s.write(ctx, env, o, removals, &scope{macs: going}, &outcome))
}

// mayContinue says whether what failed was the write of single records, which keeps no
// other one from being removed.
func mayContinue(err error) bool {
	_, single := errors.AsType[*plan.StepError](err)
	return single && !errors.Is(err, host.ErrRefused)
}

// write does one part, of the records of a scope only, and again for those that
// were another version by then.
func (s Settings) write(ctx context.Context, env operation.Env, o Options, what part, of *scope, outcome *Outcome) error {
	var failures []error
	for round := range rounds {
		report, err := s.once(ctx, env, o, what, of, outcome)
		if err == nil || len(report.Outcome.Failed) == 0 || report.Outcome.Interrupted != nil {
			return errors.Join(append(failures, err)...)
		}
		var macs []string
		for _, f := range report.Outcome.Failed {
			if !changed(f.Err) || round == rounds-1 {
				failures = append(failures, f)
				continue
			}
			macs = append(macs, macOf(f.Action.Step))
			if env.Warn != nil {
				env.Warn(fmt.Errorf("record %s is read and judged again: %w", macOf(f.Action.Step), f.Err))
			}
		}
		if macs == nil {
			break
		}
		of = &scope{macs: macs}
	}
	return errors.Join(failures...)
}

// once is one look, at the records of a scope or at all, and the writes that follow
// from it.
func (s Settings) once(ctx context.Context, env operation.Env, o Options, what part, of *scope, outcome *Outcome) (operation.Report, error) {
	if !o.DryRun {
		if err := s.LockFile.Check(env.Host.Files()); err != nil {
			return operation.Report{}, errors.Join(err, s.noteMarks(ctx, env))
		}
	}
	var wait func(context.Context) error
	if what == removals {
		wait = func(ctx context.Context) error { return sleep(ctx, o.ConfirmTwice) }
	}
	var findings []Finding
	report, err := operation.Run(ctx, env, operation.Request[seen]{
		Verb: "nics sync", Subject: subject, DryRun: o.DryRun, BeforeLedger: s.Ledgerless,
		Look: func(ctx context.Context, h host.Host) (seen, error) {
			if of != nil {
				return s.lookAt(ctx, h, s.bookOf(env), *of, wait)
			}
			return s.lookAtAll(ctx, h, s.bookOf(env), wait)
		},
		Decide: func(view ledger.View, found seen, _ operation.Stamp) (operation.Decision, error) {
			findings = s.findings(found)
			if of != nil {
				findings = slices.DeleteFunc(findings, func(f Finding) bool { return !slices.Contains(found.scope, f.MAC) })
			}
			d, err := s.decide(o, what, found, findings, s.known(env))
			if err != nil {
				return d, err
			}
			if of == nil {
				d.OnSuccess = followed(view, found, s.CN)
			}
			d.OnStart, err = s.marks(view, found.local)
			return d, err
		},
	})
	outcome.merge(findings, report)
	return report, err
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return cmp.Or(context.Cause(ctx), ctx.Err())
	}
}

// findings judges what was seen. A record goes only if it was leaked at the first
// look and at the last, for one reason, and was the same record both times: a VM that
// came meanwhile may be about to get its NICs.
func (s Settings) findings(found seen) []Finding {
	first := map[string]string{}
	for _, f := range Judge(s.Owner, found.first, found.records) {
		if f.Removed {
			first[f.MAC] = f.Reason
		}
	}
	all := Judge(s.Owner, found.local, found.records)
	for i := range all {
		f := &all[i]
		if !f.Removed {
			continue
		}
		now, read := found.again[f.MAC]
		switch {
		case first[f.MAC] != f.Reason:
			f.keep("it was not a moment ago")
		case found.again != nil && !read:
			f.keep("and gone by now")
		case found.again != nil && now != *f.Record:
			f.keep("the record was changed meanwhile")
		case f.Record.Etag == "" && !s.WithoutEtag:
			f.keep("kept: this NAPI has no conditional requests (--without-etag)")
		}
	}
	return all
}

// keep lets a leaked record stay.
func (f *Finding) keep(why string) {
	f.Removed = false
	f.Reason += "; " + why
}

// decide makes the plan of a part: of each record one write. It is a pure
// function.
func (s Settings) decide(o Options, what part, found seen, findings []Finding, known func(context.Context) ([]VM, error)) (operation.Decision, error) {
	if vm, moves := found.local.moving(); moves && o.DisableDuringMigration && !o.DryRun {
		return operation.Decision{}, &MovingError{VM: vm.Name, Why: vm.Moving}
	}
	d := operation.Decision{Plan: plan.Plan{Policy: plan.Continue}}
	going := 0
	var last []plan.Action
	for _, f := range findings {
		change := o.allowed(f.Change)
		switch {
		case f.Removed && o.Reap:
			going++
			if what != changes {
				last = append(last, s.removal(f, o.guard(f, found.local.recorded, known)))
				d.Intent.Removes = append(d.Intent.Removes, operation.Object{Kind: "nic", Name: f.MAC, Identity: f.Record.Etag, Old: f.Record.BelongsToUUID})
			}
		case !change.Empty() && what != removals:
			d.Plan.Actions = append(d.Plan.Actions, s.change(f, change, o.guard(f, found.local.recorded, known)))
			d.Intent.Changes = append(d.Intent.Changes, operation.Object{Kind: "nic", Name: f.MAC, Identity: f.Record.Etag, Old: f.Record.State})
		}
	}
	limit := o.MaxDelete
	if limit < 0 {
		limit = max(8, found.own/4)
	}
	if what != removals && going > limit { // the number is known before anything is written
		return operation.Decision{}, &TooManyError{Going: going, Limit: limit, Records: found.own}
	}
	d.Plan.Actions = append(d.Plan.Actions, last...)
	return d, nil
}

// followed forgets the handovers of VMs that came from another sled, or went to one,
// and whose records no longer name the sled that they left. found is complete:
// all records that say this sled, and those of all MACs that are here. What is
// marked is remembered until it is gone: marks keeps it.
func followed(view ledger.View, found seen, cn string) []ledger.Fact {
	var facts []ledger.Fact
	for _, vm := range found.first.recorded {
		value, there := view.Get(vm.Handover.Key)
		if !there || !bytes.Equal(value, vm.Handover.Value) || vm.Moving != "" {
			continue
		}
		if isMoved(vm) && found.first.hasOne(vm.IDs) >= 0 {
			continue
		}
		if !slices.ContainsFunc(found.records, func(r napi.Record) bool { return vm.stillSays(r, cn) }) {
			facts = append(facts, ledger.Fact{Key: vm.Handover.Key})
		}
	}
	return facts
}

func (s Settings) removal(f Finding, g napi.Guard) plan.Action {
	step := napi.DeleteNIC{Server: s.Server, MAC: f.MAC, Etag: f.Record.Etag, LockFile: s.LockFile, Guard: g}
	return plan.Action{ID: step.Verb() + " " + f.MAC, Object: "nic " + f.MAC, Why: why(f), Change: plan.Remove, Step: step}
}

func (s Settings) change(f Finding, change napi.Change, g napi.Guard) plan.Action {
	step := napi.UpdateNIC{Server: s.Server, MAC: f.MAC, Etag: f.Record.Etag, Change: change, LockFile: s.LockFile, Guard: g}
	return plan.Action{ID: step.Verb() + " " + f.MAC, Object: "nic " + f.MAC, Why: why(f), Change: plan.Modify, Step: step}
}

func why(f Finding) string { return string(f.Verdict) + ": " + f.Reason }

// allowed is the part of a change that the options allow.
func (o Options) allowed(c napi.Change) napi.Change {
	if !o.Backfill {
		c.CNUUID = ""
	}
	if !o.State {
		c.State, c.BelongsToType, c.BelongsToUUID = "", "", ""
	}
	return c
}

func macOf(s plan.Step) string {
	switch s := s.(type) {
	case napi.DeleteNIC:
		return s.MAC
	case napi.UpdateNIC:
		return s.MAC
	}
	return ""
}

// merge adds a round: what it has found of a record is newer.
func (o *Outcome) merge(findings []Finding, report operation.Report) {
	if o.Findings == nil {
		o.Findings = findings
	} else {
		for _, f := range findings {
			if i := slices.IndexFunc(o.Findings, func(old Finding) bool { return old.MAC == f.MAC }); i >= 0 {
				o.Findings[i] = f
			}
		}
	}
	o.Reports = append(o.Reports, report)
	for _, a := range report.Plan.Actions {
		mac, done := macOf(a.Step), Changed
		result := ToChange
		if a.Change == plan.Remove {
			done, result = Removed, ToRemove
		}
		if report.ID != "" {
			result = Left
			if slices.ContainsFunc(report.Outcome.Done, func(d plan.Action) bool { return d.ID == a.ID }) {
				result = done
			}
		}
		o.Results[mac] = result
	}
}
