package instance

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/illumos/system"
	"github.com/sledctl/sledctl/propolis/packaging"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/zfs"
	"github.com/sledctl/sledctl/zone"
)

// A spare is a zone that is cloned ahead, under a Propolis id drawn ahead. It has all that
// does not depend on the instance; the incarnation that takes it adds the rest. Some are
// booted ahead, too: they get their links when they are taken.

// JudgedSpare is a recorded spare, and why it is not wanted; empty: it is.
type JudgedSpare struct {
	record.Spare
	Why string
}

// JudgeSpares judges all recorded spares in a boot of the sled. Memory is what ObserveSpareMemory
// has seen.
func (s Settings) JudgeSpares(view ledger.View, inv *inventory.Inventory, memory *system.Swap, boot string) ([]JudgedSpare, error) {
	recorded, err := record.Spares(view)
	if err != nil || len(recorded) == 0 {
		return nil, err
	}
	c := newChooser(s, view, inv, "", "")
	c.boot = boot
	pools, err := inv.Pools()
	if err != nil {
		return nil, err
	}
	all, kept, booted := make([]JudgedSpare, len(recorded)), map[string]int{}, map[string]int{}
	for i, spare := range recorded {
		j := JudgedSpare{Spare: spare, Why: c.spareDoubt(spare)}
		short, z := shortage(pools, spare.Pool, memory), c.zone(spare)
		runs := z.State == zone.Running
		switch {
		case j.Why != "":
		case short != "":
			j.Why = short
		case kept[spare.Pool] >= s.Spares:
			j.Why = fmt.Sprintf("instance.spares is %d", s.Spares)
		case runs && booted[spare.Pool] >= s.SparesBooted:
			j.Why = fmt.Sprintf("instance.spares_booted is %d", s.SparesBooted)
		default:
			kept[spare.Pool]++
			if runs {
				booted[spare.Pool]++
			}
		}
		all[i] = j
	}
	return all, nil
}

// spareDoubt is why no incarnation may take a spare; empty: one may. One from before a boot of
// the sled is as good as any: the incarnation that takes it rolls it back to its snapshots.
//
// Guess cloned-root-stays-mounted: the root of a cloned sparse zone stays mounted until the sled
// reboots; `zfs rollback` of its datasets works with it mounted.
// Check: `mount -p | grep ZONE` after `bootstrap` with `instance.spares = 1`
func (c chooser) spareDoubt(spare record.Spare) string {
	base, ok := c.Base(c.view, spare.Pool)
	switch {
	case !ok || base.Planned || base.Zone != spare.Base || !c.valid(base):
		return "its base is not the one that zones are cloned from now"
	}
	return layout.SpareDoubt(c.Blueprint(), spare, c.inv, c.boot)
}

// zone is a spare's, as it was seen.
func (c chooser) zone(spare record.Spare) zone.Zone {
	z, _ := c.inv.Zone(spare.Zone)
	return z
}

// spare is one that an incarnation may take, best one that runs already; nil: there is none.
func (c chooser) spare(r record.Record) (found *record.Spare, err error) {
	recorded, err := record.Spares(c.view)
	for _, spare := range recorded {
		if spare.Pool != r.Spec.Pool || c.leaving["zone "+spare.Zone] || c.spareDoubt(spare) != "" {
			continue
		}
		switch runs := c.zone(spare).State == zone.Running; {
		case runs && layout.TakesBooted(c.Blueprint(), r, spare):
			return &spare, err
		case !runs && found == nil:
			found = &spare
		}
	}
	return found, err
}

// takeSpare gives the incarnation the zone of a spare, and says how far that zone is. Where
// the Propolis id is given there is none with that id.
func takeSpare(b layout.Blueprint, choose chooser, old record.Record, next *record.Record, seen Observed, c EnsureRequest) (p progress, err error) {
	incarnation := *next.Incarnation
	p = startOf(b, incarnation, seen)
	if c.Only != "" || incarnation.Base == "" {
		return p, nil
	}
	if old.VMM != nil || next.VMM != nil || c.Wanted.PropolisID != "" {
		p.freed, err = choose.freeRoom(next.Spec.Pool)
		return p, err
	}
	spare, err := choose.spare(*next)
	if err != nil || spare == nil {
		return p, err
	}
	taken := spare.Incarnation()
	taken.Boot, taken.Control, taken.Guests = incarnation.Boot, incarnation.Control, incarnation.Guests
	next.Incarnation = &taken
	home, _ := seen.Inv.Dataset(spare.Dataset)
	p.dataset, p.mounted, p.private, p.configured, p.installed = true, home.Mounted, true, true, true
	p.spare = spare
	if choose.zone(*spare).State == zone.Running {
		p.booted, p.settled, p.lends, next.Incarnation.BootedAhead = true, true, true, true
		return p, nil
	}
	p.root, p.back = layout.UnmountedRoot(spare.Dataset, seen.Inv), layout.Snapshots(taken, seen.Inv, layout.CleanSnapshot)
	return p, nil
}

// upRoot mounts the root of a zone from before a boot of the sled, so that the profile can be
// written there.
//
// Guess root-mounted-by-hand-boots: a sparse zone whose root `mount -F zfs` has mounted without its
// overlays boots as one whose root its brand has mounted.
// Check: reboot a sled with `instance.spares = 1`; `sledctl bootstrap`, `sledctl instance ensure web1`
func upRoot(w *way, p progress, zonepath string, back []string) []string {
	if p.root == "" {
		return back
	}
	step := zfs.MountLegacy{Dataset: p.root, Directory: path.Join(zonepath, "root")}
	return append(back, w.add(StageZone, false, plan.Action{
		ID: step.Verb() + " " + p.root, Object: "dataset " + p.root, Why: "the sled was rebooted since it was cloned", Change: plan.Modify,
		After: back, Step: step,
	}))
}

// upSpare gives a spare's zone what an instance's has.
func upSpare(b layout.Blueprint, w *way, r record.Record, p progress) string {
	spare := *p.spare
	mark := zfs.Set{Dataset: spare.Dataset, Name: naming.PropertyInstance, Value: r.ID, Old: naming.MarkSpare, OldSource: zfs.Local}
	marked := w.add(StageZone, false, plan.Action{
		ID: "zfs.set-mark " + spare.Dataset, Object: "dataset " + spare.Dataset, Why: "is instance " + r.Name + "'s now", Change: plan.Modify,
		Step: mark, Cleanup: unset(mark),
	})
	step := zone.Reconfigure{Name: spare.Zone, Old: layout.SpareConfig(b, spare), New: layout.ZoneConfig(b, r), Running: p.lends}
	return w.add(StageZone, false, plan.Action{
		ID: step.Verb() + " " + spare.Zone, Object: "zone " + spare.Zone, Why: "a spare; instance " + r.Name + " takes it", Change: plan.Modify,
		After: after(marked), Step: step,
	})
}

// unset takes a property of a spare's dataset back also where the command that set it has
// failed: it may have done so all the same, and the dataset stays.
func unset(step zfs.Set) []plan.Action {
	back, ok := step.Undo().(plan.Step)
	if !ok {
		return nil
	}
	return []plan.Action{{
		ID: "undo " + step.Verb() + " " + step.Name + " " + step.Dataset, Object: "dataset " + step.Dataset, Why: "undo", Change: plan.Modify, Step: back,
	}}
}

// takes writes down that the spare is taken, with the record of who takes it, and which ones are
// removed for its sake. If that is undone nobody takes it again: why it failed may lie in it.
func takes(d *operation.Decision, p progress) error {
	d.OnStart, d.OnSuccess = append(d.OnStart, p.freed.Begun...), append(d.OnSuccess, p.freed.Ended...)
	d.Intent.Removes = append(d.Intent.Removes, p.freed.Removes...)
	if p.spare == nil {
		return nil
	}
	d.OnStart = append(d.OnStart, p.spare.Forget())
	failed := *p.spare
	failed.Unfit = "a VM could not use it"
	fact, err := failed.Fact()
	d.OnUndo = append(d.OnUndo, fact)
	return err
}

// spareSeen is what the spares of a pool are decided by.
type spareSeen struct {
	inv    *inventory.Inventory
	boot   string
	memory *system.Swap
	// cloned reports whether zones are cloned on this host.
	cloned bool
}

// SpareSubject is the lock under which spares of a pool are made.
func SpareSubject(pool string) string { return naming.KeySpare + pool }

// FillSpares makes a pool have as many spares as are wanted, boots as many of them as are wanted,
// and removes those that are not. One that somebody else has booted is left alone. A dry run is bootstrap's, whose reap says what it removes.
func (s Settings) FillSpares(ctx context.Context, env operation.Env, pool string, dryRun bool) (operation.Report, error) {
	var made []record.Spare
	var decided plan.Plan
	return operation.Run(ctx, env, operation.Request[spareSeen]{
		Verb: "spare ensure", Subject: SpareSubject(pool), DryRun: dryRun,
		Look: func(ctx context.Context, h host.Host) (spareSeen, error) { return s.lookAtSpares(ctx, env, h) },
		Decide: func(view ledger.View, seen spareSeen, at operation.Stamp) (d operation.Decision, err error) {
			d, made, err = s.decideSpares(view, seen, at, pool, !dryRun)
			decided = d.Plan
			return d, err
		},
		Seal: func(ctx context.Context, h host.Host) ([]ledger.Fact, error) {
			return sealSpares(ctx, h, made, decided)
		},
	})
}

func (s Settings) lookAtSpares(ctx context.Context, env operation.Env, h host.Host) (seen spareSeen, err error) {
	if seen.boot, err = operation.Boot(env); err != nil {
		return seen, err
	}
	if seen.memory, err = ObserveSpareMemory(ctx, h); err != nil {
		return seen, err
	}
	parts := []inventory.Part{inventory.Rival, inventory.Zones, inventory.Configs, inventory.Links, inventory.Pools, inventory.Datasets}
	seen.inv = inventory.Look(ctx, h, inventory.Want{
		Parts: parts, Roots: inventory.ZonePools, User: []string{naming.PropertyInstance, naming.PropertySpec, naming.PropertyBase},
	})
	if err = seen.inv.Know(parts...); err != nil {
		return seen, err
	}
	found, err := s.Propolis.Packaging.Look(h.Files())
	if err != nil {
		return seen, err
	}
	kind, err := s.Propolis.Packaging.Decide(found)
	seen.cloned = err == nil && kind == packaging.Lofs
	return seen, nil
}

// decideSpares is pure. The records of those that are removed go first, so that no
// incarnation takes one.
func (s Settings) decideSpares(view ledger.View, seen spareSeen, at operation.Stamp, pool string, removes bool) (operation.Decision, []record.Spare, error) {
	d := operation.Decision{Plan: plan.Plan{Policy: plan.Undo}}
	all, err := s.JudgeSpares(view, seen.inv, seen.memory, seen.boot)
	if err != nil {
		return d, nil, err
	}
	c := newChooser(s, view, seen.inv, at.ID, "")
	run, rest, gone, err := c.sortSpares(all, pool, seen, removes)
	if err != nil {
		return d, nil, err
	}
	wanted, boots := s.Spares-run-len(rest), min(s.Spares, s.SparesBooted)-run
	d.OnStart, d.OnSuccess, d.Intent.Removes, d.Plan.Actions = gone.Begun, gone.Ended, gone.Removes, gone.Actions
	pools, err := seen.inv.Pools()
	if err != nil {
		return d, nil, err
	}
	if short := shortage(pools, pool, seen.memory); short != "" && s.Spares > 0 {
		wanted, boots, d.Plan.Why = 0, 0, "no spares are kept on pool "+pool+": "+short
	}
	base, ok := s.Base(view, pool)
	if !seen.cloned || !ok || !base.Planned && !c.valid(base) || !c.takesSpares(pool) {
		wanted = 0
	}
	made, err := bootRest(&d, seen, rest, boots)
	boots -= len(made)
	for n := range max(wanted, 0) {
		spare := c.newSpare(base, pool, seen.boot, n)
		if n < boots {
			spare.BootedIn = seen.boot
		}
		made, err = append(made, spare), errors.Join(err, makeSpare(s.Blueprint(), &d, spare, n))
	}
	return d, made, err
}

// sortSpares counts the spares of a pool that run and are wanted, finds the others that are, and gives up the
// rest. Those that somebody else works on, or has booted, are not touched.
func (c chooser) sortSpares(all []JudgedSpare, pool string, seen spareSeen, removes bool) (run int, rest []record.Spare, gone GivenUp, err error) {
	for _, spare := range all {
		switch z := c.zone(spare.Spare); {
		case spare.Pool != pool || othersUse(spare.Spare, seen.inv, seen.boot) || c.reaped(c.view, spare.Spare):
		case spare.Why == "" && z.State == zone.Running:
			run++
		case spare.Why == "":
			rest = append(rest, spare.Spare)
		case removes:
			err = errors.Join(err, gone.add(spare.Spare, seen.inv, spare.Why))
		}
	}
	return run, rest, gone, err
}

// makeSpare adds the n-th new spare to a decision.
func makeSpare(b layout.Blueprint, d *operation.Decision, spare record.Spare, n int) error {
	fact, err := spare.Fact()
	d.OnStart, d.OnUndo = append(d.OnStart, fact), append(d.OnUndo, spare.Forget())
	d.Intent.Makes, d.Intent.Base = append(d.Intent.Makes, spare.Objects()...), spare.Base
	d.Plan.Actions = append(d.Plan.Actions, cloneAhead(b, spare)...)
	if d.Plan.Drawn == nil {
		d.Plan.Drawn = map[string]string{}
	}
	d.Plan.Drawn[spare.PropolisID] = fmt.Sprintf("SPARE%d-UUID", n)
	return err
}

// othersUse reports whether a spare runs that sledctl has not booted in this boot of the sled, or is
// an instance's by now.
func othersUse(spare record.Spare, inv *inventory.Inventory, boot string) bool {
	z, _ := inv.Zone(spare.Zone)
	return z.State == zone.Running && !layout.BootedAhead(spare, z, boot) || layout.Taken(spare, inv)
}

// GivenUp is what removes spares. Begun is written first, so that no incarnation takes one,
// and Ended when they are gone.
type GivenUp struct {
	Zones   []string
	Begun   []ledger.Fact
	Ended   []ledger.Fact
	Removes []operation.Object
	Actions []plan.Action
}

func giveUp(spare record.Spare, inv *inventory.Inventory, why string) (GivenUp, error) {
	leaving, seen := spare.Incarnation(), Observed{Inv: inv}
	spare.Unfit = "its removal did not end"
	begun, err := spare.Fact()
	return GivenUp{
		Zones: []string{spare.Zone}, Begun: []ledger.Fact{begun}, Ended: []ledger.Fact{spare.Forget()},
		Removes: removes([]record.Incarnation{leaving}, seen)[:2],
		Actions: because(downRun(leaving, nil, seen, ""), "a spare; "+why),
	}, err
}

// GiveUpSpares removes the spares that were cloned from a base, but for those that somebody else
// has booted.
func GiveUpSpares(view ledger.View, inv *inventory.Inventory, base, boot string) (all GivenUp, err error) {
	recorded, err := record.Spares(view)
	for _, spare := range recorded {
		if spare.Base != base || othersUse(spare, inv, boot) {
			continue
		}
		if err := all.add(spare, inv, "its base is retired"); err != nil {
			return all, err
		}
	}
	return all, err
}

// add has one more removed.
func (all *GivenUp) add(spare record.Spare, inv *inventory.Inventory, why string) error {
	g, err := giveUp(spare, inv, why)
	all.Zones, all.Begun, all.Ended = append(all.Zones, g.Zones...), append(all.Begun, g.Begun...), append(all.Ended, g.Ended...)
	all.Removes, all.Actions = append(all.Removes, g.Removes...), append(all.Actions, g.Actions...)
	return err
}

// FewSpares reports whether fewer spares of a pool are recorded than are wanted, or fewer that
// run.
func (s Settings) FewSpares(view ledger.View, pool string) bool {
	recorded, err := record.Spares(view)
	there, booted := 0, 0
	for _, r := range recorded {
		if r.Pool != pool || r.Unfit != "" {
			continue
		}
		if there++; r.ZoneID != 0 {
			booted++
		}
	}
	return err == nil && (s.Spares > there || min(s.Spares, s.SparesBooted) > booted)
}

// reaped reports whether an operation on something else, a reap, removes a spare.
func (c chooser) reaped(view ledger.View, spare record.Spare) bool {
	return slices.ContainsFunc(operation.Open(view), func(open operation.OpenIntent) bool {
		return open.Subject != SpareSubject(spare.Pool) && slices.ContainsFunc(open.Removes, func(o operation.Object) bool { return o.Name == spare.Zone })
	})
}

// takesSpares reports whether a pool is one for zones, in full health.
func (c chooser) takesSpares(pool string) bool {
	pools, err := c.zonePools()
	return err == nil && slices.ContainsFunc(pools, func(p zfs.Pool) bool { return p.Name == pool && p.Health == "ONLINE" })
}

func (c chooser) newSpare(base Base, pool, boot string, n int) record.Spare {
	id := c.uuid(fmt.Sprintf("spare %d", n))
	spare := record.Spare{
		PropolisID: id.String(), Pool: pool, Zone: c.Names.ZoneName(id), Base: base.Zone, BaseDataset: base.Dataset, Brand: base.Brand, Boot: boot,
	}
	at, _ := naming.Zone(pool, spare.Zone)
	spare.Zonepath, spare.Dataset = at.Mountpoint, at.Dataset
	return spare
}

// because gives actions a reason.
func because(actions []plan.Action, why string) []plan.Action {
	for i := range actions {
		actions[i].Why = why
	}
	return actions
}

// cloneAhead makes one spare.
func cloneAhead(b layout.Blueprint, spare record.Spare) []plan.Action {
	zoned := "zone " + spare.Zone
	clone := installZone(b, spare.Incarnation(), nil, nil)
	kept := keepClean(spare.Incarnation(), layout.CleanSnapshot, nil)
	kept.BestEffort, kept.Why = false, "for the VM that takes it"
	chain := []plan.Action{
		{
			ID: "zfs.create " + spare.Dataset, Object: "dataset " + spare.Dataset, Why: "zonepath of a spare, marked as sledctl's", Change: plan.Create,
			Step: zfs.Create{
				Dataset: spare.Dataset, Mountpoint: spare.Zonepath, Mode: layout.ZonepathMode,
				Properties: []zfs.Property{{Name: naming.PropertyInstance, Value: naming.MarkSpare}},
			},
		},
		{
			ID: "zone.configure " + spare.Zone, Object: zoned, Why: "a spare of pool " + spare.Pool, Change: plan.Create,
			Step: zone.Configure{Name: spare.Zone, Config: layout.SpareConfig(b, spare)},
		},
		clone, kept,
	}
	if spare.BootedIn != "" {
		chain = append(chain, bootAhead(spare)...)
	}
	return plan.Chain(chain...)
}
