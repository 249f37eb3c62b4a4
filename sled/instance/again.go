package instance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/smf"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/zfs"
	"github.com/sledctl/sledctl/zone"
)

// A zone that outlives a boot of the sled is not cloned again where it is proven to be
// as it was cloned: it is rolled back to the snapshots of before its first boot, and
// booted. What is proven, and what not, is in layout.Fingerprint and layout.Doubt.

// doubtOf is why the recorded incarnation's zone cannot be booted again as it was cloned; empty:
// it can.
func (c chooser) doubtOf(r record.Record) string {
	if why := layout.Doubt(c.Blueprint(), r, c.inv); why != "" {
		return why
	}
	base, ok := c.Base(c.view, r.Spec.Pool)
	switch {
	case !ok || base.Planned || base.Zone != r.Incarnation.Base || !c.valid(base):
		return "its base is not the one that zones are cloned from now"
	case r.Migration != nil || r.Ending != nil:
		return "its VM was on its way"
	}
	return ""
}

// BootsAgain reports whether the next ensure of an instance boots the zone of its incarnation
// as it was cloned: a zone from an earlier boot of the sled, which is kept for that.
func (s Settings) BootsAgain(view ledger.View, r record.Record, inv *inventory.Inventory) bool {
	return r.Incarnation != nil && r.Wanted == record.WantedRunning && newChooser(s, view, inv, "", r.ID).doubtOf(r) == ""
}

// bootAgain has the zone of the recorded incarnation rolled back. Its VM is another one, with a
// Propolis id of its own: the zone keeps the name that it has from the earlier one.
func bootAgain(
	s Settings, choose chooser, d *operation.Decision, old record.Record, next *record.Record, seen Observed, at operation.Stamp,
) (clearing []plan.Action, p progress, err error) {
	b := s.Blueprint()
	if err := fits(next.Spec, seen, old, false); err != nil {
		return nil, progress{}, err
	}
	incarnation := *old.Incarnation
	if incarnation.Ensured {
		incarnation.Was = incarnation.PropolisID
	}
	if incarnation.Boot != seen.Boot {
		incarnation.PropolisID = choose.uuid("propolis").String()
	}
	incarnation.Boot, incarnation.Ensured, incarnation.Rolling, incarnation.Limiting, incarnation.Migration = seen.Boot, false, true, false, ""
	next.Incarnation = &incarnation
	p = progressOf(b, *next, seen)
	p.profiled, p.back = true, layout.CleanSnapshots(incarnation, seen.Inv)
	if incarnation.BootedAhead {
		p.profiled, p.root = false, layout.UnmountedRoot(incarnation.Dataset, seen.Inv)
	}
	clearing = slices.Concat(leaving(old, seen), keepEvidence(s, old, seen, at, "before it is rolled back"))
	d.Warn = unkept(b, old, seen)
	d.Plan.Why = fmt.Sprintf("would boot the zone of instance %q again: it is as it was cloned, and is rolled back to that", old.Name)
	return clearing, p, nil
}

// keepClean keeps how a zone is before its first boot, so that it can be taken back to
// that. Where it fails the zone is cloned again after the next boot of the sled.
func keepClean(incarnation record.Incarnation, called string, before []string) plan.Action {
	step := zfs.SnapshotTree{Dataset: incarnation.Dataset, Snapshot: called, Found: new([]zfs.Dataset)}
	return plan.Action{
		ID: step.Verb() + " " + incarnation.Dataset, Object: "dataset " + incarnation.Dataset, Why: "as it was cloned, for the sled's next boot",
		Change: plan.Modify, After: before, BestEffort: true, Step: step,
	}
}

// upBack takes each dataset of a zone back to what was cloned.
//
// Guess rollback-under-sysboot: `zfs rollback` of a zone's root works while `zoneadm sysboot` has
// it mounted in the global zone, with the overlays of sparse mounted in it (zfs_ioc_rollback
// suspends and resumes the file system).
// Check: `sledctl instance ensure --all` after a reboot; `sledctl trace`
func upBack(w *way, p progress, before string) []string {
	var ids []string
	for _, snapshot := range p.back {
		dataset, _, _ := strings.Cut(snapshot.Name, "@")
		step := zfs.Rollback{Name: snapshot.Name, GUID: snapshot.GUID}
		ids = append(ids, w.add(StageZone, false, plan.Action{
			ID: step.Verb() + " " + dataset, Object: "dataset " + dataset, Why: "to what was cloned", Change: plan.Modify,
			After: after(before), Step: step,
		}))
	}
	return ids
}

// sealClean writes down what the zone was before its first boot, as the plan's own step
// found it then. Without that it is cloned again after the next boot of the sled, and
// nothing else is lost.
func sealClean(ctx context.Context, b layout.Blueprint, h host.Host, r record.Record, p plan.Plan) ([]ledger.Fact, error) {
	datasets, err := cloned(ctx, b, h, r, p)
	if err != nil || len(datasets) == 0 {
		return nil, err
	}
	c, err := zone.ReadConfig(h.Files(), r.Incarnation.Zone)
	if err != nil {
		return nil, nil // it is not proven then
	}
	incarnation := *r.Incarnation
	incarnation.Clean = layout.Fingerprint(b, r, c, datasets)
	r.Incarnation = &incarnation
	facts, err := r.Facts()
	return facts[:min(1, len(facts))], err
}

// cloned are the datasets of a zone that this plan has cloned, or taken over, with the snapshots
// of before its first boot.
func cloned(ctx context.Context, b layout.Blueprint, h host.Host, r record.Record, p plan.Plan) ([]zfs.Dataset, error) {
	for _, a := range p.Actions {
		switch step := a.Step.(type) {
		case zfs.SnapshotTree:
			if step.Found != nil {
				return *step.Found, nil
			}
		case zone.Reconfigure:
			if r.Incarnation.BootedAhead && layout.KeepsClean(b, r) {
				return zfs.List(ctx, h, []string{r.Incarnation.Dataset}, nil)
			}
		}
	}
	return nil, nil
}

// sealing is sealClean for an operation, once it was decided.
func sealing(s Settings, result *record.Record, decided *plan.Plan) func(context.Context, host.Host) ([]ledger.Fact, error) {
	return func(ctx context.Context, h host.Host) ([]ledger.Fact, error) {
		return sealClean(ctx, s.Blueprint(), h, *result, *decided)
	}
}

// bootRest boots that many of the spares that are there. Nobody takes one meanwhile.
func bootRest(d *operation.Decision, seen spareSeen, rest []record.Spare, boots int) (booted []record.Spare, err error) {
	for _, spare := range rest[:max(0, min(len(rest), boots))] {
		before, berr := spare.Fact()
		spare.BootedIn, spare.ZoneID = seen.boot, 0
		waits := spare
		waits.Unfit = "its boot did not end"
		begun, err := waits.Fact()
		if err = errors.Join(err, berr); err != nil {
			return nil, err
		}
		d.OnStart, d.OnUndo = append(d.OnStart, begun), append(d.OnUndo, before)
		d.Plan.Actions = append(d.Plan.Actions, plan.Chain(append(readied(spare, seen.inv), bootAhead(spare)...)...)...)
		booted = append(booted, spare)
	}
	return booted, nil
}

// readied takes a spare's zone back to what was cloned.
func readied(spare record.Spare, inv *inventory.Inventory) []plan.Action {
	w := way{actions: map[Stage][]plan.Action{}}
	p := progress{root: layout.UnmountedRoot(spare.Dataset, inv), back: layout.Snapshots(spare.Incarnation(), inv, layout.CleanSnapshot)}
	upRoot(&w, p, spare.Zonepath, upBack(&w, p, ""))
	return w.actions[StageZone]
}

// bootAhead boots a spare's zone up to the milestone.
func bootAhead(spare record.Spare) []plan.Action {
	object := "zone " + spare.Zone
	return []plan.Action{
		{ID: "zone.boot " + spare.Zone, Object: object, Why: "ahead, for a VM to come", Change: plan.Modify, Step: zone.Boot{Name: spare.Zone}},
		{
			ID: "smf.await " + spare.Zone + " single-user", Object: object, Change: plan.Wait, Why: "a VM takes it as it is then",
			Step: smf.Await{Zone: spare.Zone, Root: path.Join(spare.Zonepath, "root"), FMRI: layout.Milestone, State: smf.Online},
		},
	}
}

// sealSpares writes down what each spare is, as its own snapshots found it, and as which zone
// it runs.
func sealSpares(ctx context.Context, h host.Host, made []record.Spare, decided plan.Plan) ([]ledger.Fact, error) {
	var facts []ledger.Fact
	for _, spare := range made {
		if err := sealClone(h.Files(), &spare, decided); err != nil {
			return nil, err
		}
		if spare.BootedIn != "" {
			z, _, err := zone.Find(ctx, h, spare.Zone)
			if err != nil {
				return nil, err
			}
			if z.State == zone.Running && z.ID != nil {
				spare.ZoneID = *z.ID
			}
		}
		fact, err := spare.Fact()
		if err != nil {
			return nil, err
		}
		facts = append(facts, fact)
	}
	return facts, nil
}

// sealClone writes down what a spare that was just cloned is.
func sealClone(files host.Files, spare *record.Spare, decided plan.Plan) error {
	for _, a := range decided.Actions {
		step, ok := a.Step.(zfs.SnapshotTree)
		if !ok || step.Dataset != spare.Dataset || step.Found == nil {
			continue
		}
		c, err := zone.ReadConfig(files, spare.Zone)
		if err != nil {
			return err
		}
		if home := slices.IndexFunc(*step.Found, func(d zfs.Dataset) bool { return d.Name == spare.Dataset }); home >= 0 {
			spare.GUID, spare.Clean = (*step.Found)[home].GUID, layout.SpareFingerprint(c, *step.Found)
		}
	}
	return nil
}

// madeVolumes are the volumes that were made for an instance, or would be.
type madeVolumes struct {
	names   []string
	paths   map[string]bool
	actions []plan.Action
	left    []string // of one that could not be made
}

// makeVolumes makes the volumes that an instance is to be made with, and puts their paths among its
// disks, on one pool if they fit there. They are called after the instance, and by the place among its disks: the same request
// means the same volumes, also after one that was killed.
func (s Settings) makeVolumes(ctx context.Context, env operation.Env, c *EnsureRequest) (made madeVolumes, err error) {
	made.paths = map[string]bool{}
	c.Wanted.Disks = slices.Clone(c.Wanted.Disks)
	id, name := c.Wanted.parts()
	near := ""
	for i, d := range c.Wanted.Disks {
		if d.New == nil {
			continue
		}
		if s.MakeVolume == nil {
			return made, &record.InputError{Field: "disk", Value: "size", Want: "a disk that exists"}
		}
		volume, wanted := fmt.Sprintf("%s-%d", cmp.Or(name, id), i), *d.New
		wanted.Near = near
		path, report, err := s.MakeVolume(ctx, env, volume, wanted, c.DryRun, c.Keep)
		if err != nil {
			made.left = report.Outcome.Leftovers
			return made, err
		}
		if report.ID != "" {
			made.names = append(made.names, volume)
		}
		dataset, _ := record.Disk{Path: path}.Volume()
		near, _, _ = strings.Cut(dataset, "/")
		made.paths[path], made.actions = true, append(made.actions, report.Plan.Actions...)
		c.Wanted.Disks[i] = record.Disk{Path: path, ReadOnly: d.ReadOnly}
	}
	return made, nil
}

// dropTime is what taking back the volumes of an instance may take, beyond the time of its making.
const dropTime = time.Minute

// dropVolumes takes back the volumes that were made for an instance that was not, and lists those
// that stay: what is left of the instance has them as disks.
func (s Settings) dropVolumes(ctx context.Context, env operation.Env, made madeVolumes) (all []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropTime)
	defer cancel()
	for _, name := range made.names {
		left, err := s.DropVolume(ctx, env, name)
		if err != nil && env.Warn != nil {
			env.Warn(fmt.Errorf("keeping volume %q: %w", name, err))
		}
		if left != "" {
			all = append(all, left)
		}
	}
	return all
}
