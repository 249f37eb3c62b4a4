package moves

import (
	"context"

	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/migration"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/snapshot"
	"github.com/sledctl/sledctl/sled/volume"
	"github.com/sledctl/sledctl/zfs"
)

// nowhere is the id of a migration that is only rehearsed, and noGUID that of a snapshot that is not taken.
const nowhere, noGUID = "00000000-0000-0000-0000-000000000000", "1"

// rehearse asks the target whether it could take the instance, before anything is written down on either side: whether
// there is room for each volume that it does not have, and for the instance without them.
func (m *moving) rehearse(ctx context.Context) error {
	if m.Target == nil {
		return instance.ErrNoTarget
	}
	_, volumes, err := m.volumes(ctx)
	if err != nil {
		return err
	}
	to := m.to()
	ask := func(words []string, stdin []byte) error {
		answer, err := m.Run(ctx, migration.Words(to, append(words, "--dry-run")), stdin)
		_, err = migration.Asked(to, answer, err)
		return migration.Rehearsed(err)
	}
	var held map[string]Held
	if len(volumes) > 0 {
		if held, err = m.held(ctx); err != nil {
			return err
		}
	}
	for _, v := range volumes {
		if held[v.Name].Arrives == m.done.Record.ID {
			continue
		}
		if err := ask(SendVolume{Volume: v, Instance: m.done.Record.ID, GUID: noGUID}.words(), nil); err != nil {
			return err
		}
	}
	bare := m.done.Record
	bare.Spec.Disks, bare.Later = nil, nil
	to.ID = nowhere
	step, err := m.handing(bare, to)
	if err != nil {
		return err
	}
	document, err := step.Complete(m.env.Host.Files())
	if err != nil {
		return err
	}
	return ask(step.expect(), document)
}

// plan is a dry run: what would be done here, in its order. How often what has changed would be sent is not known.
func (m *moving) plan(ctx context.Context) error {
	r := m.done.Record
	if r.Migration == nil && m.Target == nil {
		return instance.ErrNoTarget
	}
	view, volumes, err := m.volumes(ctx)
	if err != nil {
		return err
	}
	to := m.to()
	add := func(report operation.Report, more ...plan.Action) {
		report.Plan.Actions = append(report.Plan.Actions, more...)
		m.done.Reports = append(m.done.Reports, report)
	}
	_, next, err := m.passing(view)
	if err != nil {
		return err
	}
	if r.Migration == nil {
		result, err := instance.Vacate(ctx, m.Instances, m.env, m.Verb, r.ID, m.Target, true)
		if err != nil {
			return err
		}
		add(result.Report)
		to = *result.Record.Migration
	}
	if !to.Departed && len(volumes) > 0 {
		_, report, err := m.Snapshots.Create(ctx, m.env, snapshot.Request{Ref: r.ID, Name: next, DryRun: true})
		if err != nil {
			return err
		}
		var sends []plan.Action
		for _, v := range volumes {
			sends = append(sends, m.sendAction(v, next, to))
			m.paths[v.Dataset] = "/dev/zvol/rdsk/POOL/" + v.Name
		}
		add(report, sends...)
	}
	if !to.Departed {
		step, err := m.handing(r, to)
		if err != nil {
			return err
		}
		add(operation.Report{Verb: m.Verb, View: view}, m.handAction(step))
	}
	return nil
}

func (m *moving) sendAction(v volume.Record, name string, to record.Migration) plan.Action {
	step := SendVolume{Volume: v, Instance: m.done.Record.ID, To: to, GUID: noGUID, Sent: zfs.Sent{Snapshot: naming.Snapshot(v.Dataset, name)}}
	return plan.Action{ID: step.Verb() + " " + v.Dataset, Object: "volume " + v.Dataset, Why: "to " + to.Sled(), Change: plan.Modify, Step: step}
}
