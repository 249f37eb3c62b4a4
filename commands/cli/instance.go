package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// Instance is what is printed of an instance, here and by the agent.
type Instance = api.Instance

// ShowInstance is an instance as it is printed.
func ShowInstance(i instance.Instance) Instance { return api.InstanceOf(i) }

// StateStyle is the meaning of a state: good, bad, or on its way.
func StateStyle(s Instance) terminal.Style {
	switch s.State {
	case record.Running:
		if len(s.Changed) > 0 || s.AtRisk {
			return terminal.Warn
		}
		return terminal.Good
	case record.Failed, record.Unknown, record.Absent:
		return terminal.Bad
	case record.Stopped:
		return terminal.Plain
	}
	return terminal.Warn
}

// StatesOf are the states that are counted, in the order in which a VM has them; others, of
// which Propolis may have more, come last.
func StatesOf(count map[record.State]int) []record.State {
	order := []record.State{
		record.Running, "migrating", "rebooting", "starting", record.Creating, record.Stopping, record.Failed, record.Absent, record.Unknown, record.Stopped,
	}
	for _, state := range slices.Sorted(maps.Keys(count)) {
		if !slices.Contains(order, state) {
			order = append(order, state)
		}
	}
	return slices.DeleteFunc(order, func(state record.State) bool { return count[state] == 0 })
}

// ShownState is a state as people see it: what is wrong is in upper case, so that it is
// seen without colours, and a star says that others have changed the instance.
func ShownState(s Instance) string {
	state := s.State
	switch state {
	case record.Failed, record.Absent, record.Unknown: // whatever differs, the reason says why
		return strings.ToUpper(state)
	}
	if len(s.Changed) > 0 {
		state += " *"
	}
	return state
}

// ShownSince is how long an instance has been in its state. Where that is not known, it
// is less than since its record was written.
func ShownSince(now time.Time, s Instance) string {
	if s.Since.IsZero() {
		return "<" + terminal.Bound(now, s.Updated)
	}
	return terminal.Age(now, s.Since)
}

func written(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339)
}

func nicsOf(s Instance) string {
	var nics []string
	for i, v := range s.VNICs {
		switch {
		case i == 0: // its own, for control
		case v.OPTE:
			nics = append(nics, "opte:"+strconv.Itoa(v.VNI))
		case v.VLAN == 0:
			nics = append(nics, v.Over)
		default:
			nics = append(nics, v.Over+":"+strconv.Itoa(v.VLAN))
		}
	}
	return strings.Join(nics, ",")
}

// startOrder is the number of an instance, if it has one.
func startOrder(s Instance) string {
	if s.StartOrder == 0 {
		return ""
	}
	return s.StartOrder.String()
}

// lastResult is how the last operation on an instance ended.
func lastResult(s Instance) string {
	if s.Last == nil {
		return ""
	}
	return string(s.Last.Result)
}

// shownLast is that for people: "ensure ok 4m ago".
func shownLast(now time.Time, s Instance) string {
	if s.Last == nil {
		return ""
	}
	verb := strings.TrimPrefix(s.Last.Verb, "instance ")
	return fmt.Sprintf("%s %s %s", verb, s.Last.Result, terminal.Ago(now, s.Last.End))
}

// InstanceList is how instances are printed.
func InstanceList(e *Env) terminal.List[Instance] {
	vnics := func(s Instance) string {
		names := make([]string, len(s.VNICs))
		for i, v := range s.VNICs {
			names[i] = v.Name
		}
		return strings.Join(names, ",")
	}
	disks := func(s Instance) string {
		paths := make([]string, len(s.Disks))
		for i, d := range s.Disks {
			paths[i] = d.Path
		}
		return strings.Join(paths, ",")
	}
	short := terminal.ShortPools(nil)
	type column = terminal.Column[Instance]
	return terminal.List[Instance]{
		Kind: "Instance", Name: func(s Instance) string { return s.Name },
		Table: []string{"name", "state", "cpus", "memory", "address", "since", "reason"},
		Wide:  []string{"name", "state", "cpus", "memory", "address", "since", "pool", "nics", "disks", "last", "id", "zone", "reason"},
		Columns: []column{
			{Name: "name", Value: func(s Instance) string { return s.Name }},
			{Name: "state", Value: func(s Instance) string { return s.State }, Human: ShownState, Style: StateStyle},
			{Name: "cpus", Value: func(s Instance) string { return strconv.Itoa(s.CPUs) }, Right: true},
			{Name: "cpu_cap", Value: capText, Right: true, Extra: true},
			{Name: "memory", Value: func(s Instance) string { return strconv.FormatUint(s.Memory, 10) }, Human: func(s Instance) string { return terminal.FormatSize(s.Memory) }, Right: true},
			{Name: "address", Value: func(s Instance) string { return s.Address }, Human: func(s Instance) string { ip, _, _ := strings.Cut(s.Address, "/"); return ip }},
			{Name: "updated", Value: func(s Instance) string { return s.Updated.Format(time.RFC3339) }, Human: func(s Instance) string { return terminal.Ago(e.Now(), s.Updated) }},
			{Name: "reason", Value: func(s Instance) string { return s.Reason }, Human: func(s Instance) string { return short(s.Reason) }, Note: true},
			{Name: "id", Value: func(s Instance) string { return s.ID }, Extra: true},
			{Name: "propolis_id", Value: func(s Instance) string { return s.PropolisID }, Extra: true},
			{Name: "zone", Value: func(s Instance) string { return s.Zone }, Extra: true},
			{Name: "vnics", Value: vnics, Extra: true},
			{Name: "pool", Value: func(s Instance) string { return s.Pool }, Extra: true},
			{Name: "wanted", Value: func(s Instance) string { return s.Wanted }, Extra: true},
			{Name: "protected", Value: func(s Instance) string { return strconv.FormatBool(s.Protected) }, Extra: true},
			{Name: "keeper", Value: func(s Instance) string { return string(s.Keeper) }, Extra: true},
			{Name: "start_order", Value: startOrder, Right: true, Extra: true},
			{Name: "generation", Value: func(s Instance) string { return strconv.FormatUint(s.Generation, 10) }, Right: true, Extra: true},
			{Name: "since", Value: func(s Instance) string { return written(s.Since) }, Human: func(s Instance) string { return ShownSince(e.Now(), s) }, Extra: true},
			{Name: "nics", Value: nicsOf, Extra: true},
			{Name: "disks", Value: disks, Extra: true},
			{Name: "last", Value: lastResult, Human: func(s Instance) string { return shownLast(e.Now(), s) }, Extra: true},
		},
	}
}

// capText is the cap of an instance in processors; empty: it has none.
func capText(s Instance) string {
	if s.CPUCap == 0 {
		return ""
	}
	return s.CPUCap.String()
}

// status is how an instance is looked at: instance.Settings.Get, or Summary.
type status func(instance.Settings, context.Context, operation.Env, ledger.View, string) (instance.Instance, error)

// PrintInstance prints an instance as it is.
func (e *Env) PrintInstance(ctx context.Context, s instance.Settings, env operation.Env, ref string, look status) error {
	view, err := e.View(ctx)
	if err != nil {
		return err
	}
	i, err := look(s, ctx, env, view, ref)
	if err != nil {
		return err
	}
	return e.printFound(i)
}

func (e *Env) printFound(i instance.Instance) error {
	return InstanceList(e).PrintOne(e.Streams.Out, e.Output, ShowInstance(i))
}

// ChangeInstance runs one operation on one instance and prints the result.
func (e *Env) ChangeInstance(ctx context.Context, m Mutation, change func(context.Context, instance.Settings, operation.Env) (instance.Result, error)) error {
	if err := InstanceList(e).Check(e.Output); err != nil {
		return err
	}
	s, env, err := e.Instances(ctx)
	if err != nil {
		return err
	}
	result, err := change(ctx, s, env)
	if err != nil {
		return failure.WithReport(err, result.Report)
	}
	if m.Dry() {
		return e.PrintPlan(m, result.Report)
	}
	ctx = context.WithoutCancel(ctx)
	if i, err := s.Summary(ctx, env, result.Report.View, result.Record.ID); err == nil && i.State != record.Absent {
		return e.printFound(i)
	}
	err = e.PrintInstance(ctx, s, env, result.Record.ID, instance.Settings.Summary)
	if _, gone := errors.AsType[*record.NotFoundError](err); gone { // the operation succeeded, and another process has deleted the instance since
		i := instance.Instance{Record: result.Record, Status: instance.Status{State: record.Absent, Reason: "deleted since, by another run"}}
		return e.printFound(i)
	}
	return err
}

// CompleteInstances offers the names of the instances that exist.
func (e *Env) CompleteInstances(ctx context.Context) []string {
	view, err := e.View(ctx)
	if err != nil {
		return nil
	}
	return record.Names(view)
}

// Propolis is the Propolis of an instance that has an incarnation.
func (e *Env) Propolis(ctx context.Context, ref string) (propolis.Client, record.Record, error) {
	if ref == "" {
		return propolis.Client{}, record.Record{}, NoInstanceFlag()
	}
	s, env, err := e.Instances(ctx)
	if err != nil {
		return propolis.Client{}, record.Record{}, err
	}
	view, err := e.View(ctx)
	if err != nil {
		return propolis.Client{}, record.Record{}, err
	}
	r, err := s.Find(view, ref)
	if err != nil {
		return propolis.Client{}, record.Record{}, err
	}
	if r.Incarnation == nil {
		return propolis.Client{}, r, &NotFoundError{What: "Propolis of instance " + r.Name, List: "sledctl instance get " + r.Name}
	}
	target := s.Target(r)
	target.ID = r.ID
	return propolis.Client{Host: env.Host, Target: target}, r, nil
}

// NoInstanceFlag is a command line that does not say which instance.
func NoInstanceFlag() error {
	return &UsageError{Text: "--instance is missing", Advice: "give --instance NAME"}
}
