package commands

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// What is printed of an instance, here and by the agent.
type shownInstance = api.Instance

func showInstance(i instance.Instance) shownInstance { return api.InstanceOf(i) }

func stateStyle(s shownInstance) terminal.Style {
	switch s.State {
	case record.Running:
		return terminal.Good
	case record.Failed, record.Unknown:
		return terminal.Bad
	case record.Absent, record.Creating, record.Stopping:
		return terminal.Warn
	}
	return terminal.Plain
}

func instanceList(e *Env) terminal.List[shownInstance] {
	vnics := func(s shownInstance) string {
		names := make([]string, len(s.VNICs))
		for i, v := range s.VNICs {
			names[i] = v.Name
		}
		return strings.Join(names, ",")
	}
	type column = terminal.Column[shownInstance]
	return terminal.List[shownInstance]{Kind: "Instance", Name: func(s shownInstance) string { return s.Name }, Columns: []column{
		{Name: "name", Value: func(s shownInstance) string { return s.Name }, Whole: true},
		{Name: "state", Value: func(s shownInstance) string { return s.State }, Style: stateStyle},
		{Name: "cpus", Value: func(s shownInstance) string { return strconv.Itoa(s.CPUs) }, Right: true},
		{Name: "memory", Value: func(s shownInstance) string { return strconv.FormatUint(s.Memory, 10) }, Human: func(s shownInstance) string { return terminal.FormatSize(s.Memory) }, Right: true},
		{Name: "address", Value: func(s shownInstance) string { return s.Address }},
		{Name: "updated", Value: func(s shownInstance) string { return s.Updated.Format(time.RFC3339) }, Human: func(s shownInstance) string { return terminal.Ago(e.Now(), s.Updated) }},
		{Name: "reason", Value: func(s shownInstance) string { return s.Reason }},
		{Name: "id", Value: func(s shownInstance) string { return s.ID }, Extra: true},
		{Name: "propolis_id", Value: func(s shownInstance) string { return s.PropolisID }, Extra: true},
		{Name: "zone", Value: func(s shownInstance) string { return s.Zone }, Extra: true},
		{Name: "vnics", Value: vnics, Extra: true},
		{Name: "pool", Value: func(s shownInstance) string { return s.Pool }, Extra: true},
		{Name: "wanted", Value: func(s shownInstance) string { return s.Wanted }, Extra: true},
		{Name: "protected", Value: func(s shownInstance) string { return strconv.FormatBool(s.Protected) }, Extra: true},
		{Name: "generation", Value: func(s shownInstance) string { return strconv.FormatUint(s.Generation, 10) }, Right: true, Extra: true},
	}}
}

// status is how an instance is looked at: instance.Settings.Get, or Brief.
type status func(instance.Settings, context.Context, operation.Env, ledger.View, string) (instance.Instance, error)

// printInstance prints an instance as it is.
func (e *Env) printInstance(ctx context.Context, s instance.Settings, env operation.Env, ref string, look status) error {
	view, err := e.view(ctx)
	if err != nil {
		return err
	}
	i, err := look(s, ctx, env, view, ref)
	if err != nil {
		return err
	}
	return instanceList(e).PrintOne(e.Streams.Out, e.output, showInstance(i))
}

// changeInstance runs one verb on one instance and prints what came of it.
func (e *Env) changeInstance(ctx context.Context, m mutation, change func(context.Context, instance.Settings, operation.Env) (instance.Result, error)) error {
	if err := instanceList(e).Check(e.output); err != nil {
		return err
	}
	s, env, err := e.instances(ctx)
	if err != nil {
		return err
	}
	result, err := change(ctx, s, env)
	if err != nil {
		return withReport(err, result.Report)
	}
	if m.dry() {
		return e.printPlan(m, result.Report)
	}
	err = e.printInstance(context.WithoutCancel(ctx), s, env, result.Record.ID, instance.Settings.Brief)
	if _, gone := errors.AsType[*record.NotFoundError](err); gone { // what was asked for was done; that it is gone is another's doing
		i := instance.Instance{Record: result.Record, Status: instance.Status{State: record.Absent, Reason: "deleted since, by another run"}}
		return instanceList(e).PrintOne(e.Streams.Out, e.output, showInstance(i))
	}
	return err
}

// completeInstances offers the names of the instances that exist.
func (e *Env) completeInstances(ctx context.Context) []string {
	view, err := e.view(ctx)
	if err != nil {
		return nil
	}
	return record.Names(view)
}
