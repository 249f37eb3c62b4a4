package reap

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/engine/bundle"
	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/illumos/system"
	"github.com/sledctl/sledctl/sled/base"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/instance/secrets"
	"github.com/sledctl/sledctl/sled/localdisk"
	"github.com/sledctl/sledctl/sled/network"
	"github.com/sledctl/sledctl/sled/volume"
	"github.com/sledctl/sledctl/zfs"
	"github.com/sledctl/sledctl/zone"
)

// Settings is what reap takes from the configuration.
type Settings struct {
	Names naming.Prefixes
	// Links are those over which VNICs lie by the configuration.
	Links []string
	// Keys is the directory in which storage has files with keys while it needs
	// them; empty: there is none.
	Keys string
	// SecretDir is where secrets of machines lie next to those on the pools; nil: none
	// are looked at. Where the ledger was lost they wait for its import.
	SecretDir *string
	// Bundles says where a zone's evidence is kept before the zone
	// does.
	Bundles bundle.Settings
	// BootsAgain reports whether the next ensure of an instance boots the zone that it has
	// from an earlier boot of the sled; nil: none is.
	BootsAgain func(ledger.View, record.Record, *inventory.Inventory) bool
	// JudgeSpares reports which recorded spares are wanted, and why the others are not;
	// nil: all are.
	JudgeSpares func(view ledger.View, inv *inventory.Inventory, memory *system.Swap, boot string) ([]instance.JudgedSpare, error)
}

// seen is the sled, and the boot that it is in.
type seen struct {
	inv  *inventory.Inventory
	boot string
	// memory is what is left, where there are spares; nil: there are none, or it is not known.
	memory *system.Swap
	// lone are configurations that no index names, by the names of their zones.
	lone map[string]zone.Config
	// secrets are the files in which secrets of machines lie.
	secrets []secrets.File
	// before is what the ledger said when the look began.
	before ledger.View
	// places are where bundles can be written; nowhere is why there is none.
	places  []bundle.Place
	nowhere error
}

// Reap judges every object and removes those that nobody needs. All are tried;
// all errors are reported.
func (s Settings) Reap(ctx context.Context, env operation.Env, dryRun bool) (Findings, operation.Report, error) {
	return s.ReapChosen(ctx, env, Choice{}, dryRun)
}

// ReapChosen is Reap as far as the operator's choice goes.
func (s Settings) ReapChosen(ctx context.Context, env operation.Env, choice Choice, dryRun bool) (Findings, operation.Report, error) {
	return s.reap(ctx, env, choice, dryRun, true)
}

// Verdicts judges every object, and says what would be removed. It makes no
// plan of how.
func (s Settings) Verdicts(ctx context.Context, env operation.Env, choice Choice) (Findings, error) {
	findings, _, err := s.reap(ctx, env, choice, true, false)
	return findings, err
}

func (s Settings) reap(ctx context.Context, env operation.Env, choice Choice, dryRun, planned bool) (Findings, operation.Report, error) {
	var findings Findings
	report, err := operation.Run(ctx, env, operation.Request[seen]{
		Verb: "reap", Subject: subject, Wait: true, DryRun: dryRun,
		Look: func(ctx context.Context, h host.Host) (seen, error) { return s.look(ctx, h, env, dryRun) },
		Decide: func(view ledger.View, got seen, at operation.Stamp) (operation.Decision, error) {
			if err := choice.suits(view); err != nil {
				return operation.Decision{}, err
			}
			k, err := s.know(view, got, at.Now, living(ctx, env, dryRun))
			if err != nil {
				return operation.Decision{}, err
			}
			if findings, err = judge(k, got.inv, choice); err != nil {
				return operation.Decision{}, err
			}
			if findings.doubt(view); !planned {
				return operation.Decision{}, nil
			}
			d := findings.removal(s.bundler(k, &findings, got, at))
			d.Warn = findings.unkept(got.nowhere)
			if d.OnStart, err = instance.Reaping(k.instances, got.boot, findings.goesZone); err != nil {
				return d, err
			}
			d.OnSuccess, err = k.forgets(&findings)
			return d, err
		},
	})
	return findings, report, err
}

// know arranges what the ledger says, of now and of when the sled was looked at.
func (s Settings) know(view ledger.View, got seen, now time.Time, alive func(subject string) (operation.Holder, bool)) (*known, error) {
	k, err := know(s.Names, view, got.boot, now, alive)
	if err != nil {
		return nil, err
	}
	k.learnLinks(s.Links)
	k.lone, k.secrets = got.lone, got.secrets
	k.again = func(r record.Record) bool { return s.BootsAgain != nil && s.BootsAgain(view, r, got.inv) }
	if err := k.learnSpares(s, view, got); err != nil {
		return nil, err
	}
	return k, k.learnSince(got.before, view)
}

// learnSpares has the recorded spares judged.
func (k *known) learnSpares(s Settings, view ledger.View, got seen) error {
	judge := s.JudgeSpares
	if judge == nil {
		judge = func(view ledger.View, _ *inventory.Inventory, _ *system.Swap, _ string) (all []instance.JudgedSpare, err error) {
			spares, err := record.Spares(view)
			for _, spare := range spares {
				all = append(all, instance.JudgedSpare{Spare: spare})
			}
			return all, err
		}
	}
	all, err := judge(view, got.inv, got.memory, got.boot)
	for _, spare := range all {
		k.spares[spare.Zone] = spare
	}
	return err
}

// subject is what a reap locks: one at a time.
const subject = "reap"

// living tells whether a run on a subject is alive. One on ours is not: its
// lock is held by this operation now.
func living(ctx context.Context, env operation.Env, dryRun bool) func(string) (operation.Holder, bool) {
	return func(other string) (operation.Holder, bool) {
		if other == subject && !dryRun {
			return operation.Holder{}, false
		}
		return operation.Alive(ctx, env, other)
	}
}

// needed are the parts without which nothing is judged. Of the others, what
// could not be seen is reported.
func needed() []inventory.Part {
	return []inventory.Part{inventory.Rival, inventory.Zones, inventory.Configs, inventory.Links, inventory.Pools, inventory.Datasets}
}

// Wants is what reap looks at.
func (s Settings) Wants() inventory.Want {
	want := inventory.Want{
		Parts: append(needed(), inventory.Addresses, inventory.Homes, inventory.Entries),
		Roots: inventory.ZonePools, User: []string{naming.PropertyInstance, naming.PropertySpec, naming.PropertyBase, naming.PropertyLocalDisk, naming.PropertyImage, naming.PropertyVolume, naming.PropertySnapshot}, Directories: []string{inventory.VMDirectory, zone.Dir},
	}
	if s.Keys != "" {
		want.Directories = append(want.Directories, s.Keys)
	}
	return want
}

// wants is Wants, and the pools of volumes that lie elsewhere than zones.
func (s Settings) wants(view ledger.View) inventory.Want {
	want := s.Wants()
	volumes, err := volume.All(view)
	if err != nil {
		return want
	}
	want.Roots = func(pools []zfs.Pool) []string {
		roots := inventory.ZonePools(pools)
		for _, p := range pools {
			if !slices.Contains(roots, p.Name) && slices.ContainsFunc(volumes, func(v volume.Record) bool { return v.Pool == p.Name }) {
				roots = append(roots, p.Name)
			}
		}
		return roots
	}
	return want
}

func (s Settings) look(ctx context.Context, h host.Host, env operation.Env, dryRun bool) (seen, error) {
	boot, err := operation.Boot(env)
	if err != nil {
		return seen{}, err
	}
	// With what a run that was killed has decided last: else it would look as if
	// that run had ended during the look.
	before, err := operation.Decided(ctx, env, dryRun)
	if err != nil {
		return seen{}, err
	}
	inv := inventory.Look(ctx, h, s.wants(before))
	got := seen{inv: inv, boot: boot, before: before}
	if err := inv.Know(needed()...); err != nil {
		return seen{}, err
	}
	if spares, err := record.Spares(before); err == nil && len(spares) > 0 {
		if got.memory, err = instance.ObserveSpareMemory(ctx, h); err != nil {
			got.memory = nil // memory that cannot be asked for is no reason to remove anything
		}
	}
	got.lone = s.lone(h.Files(), inv)
	if s.SecretDir != nil {
		got.secrets = secrets.Files(*s.SecretDir, h.Files(), inv)
	}
	got.places, got.nowhere = s.Bundles.Ready(h.Files(), inv.Answering())
	return got, nil
}

// lone reads the configurations that no index names, and that are called as
// sledctl's are: the place where such a zone would lie shows its owner.
func (s Settings) lone(files host.Files, inv *inventory.Inventory) map[string]zone.Config {
	found := map[string]zone.Config{}
	entries, _ := inv.Entries()
	for _, e := range entries {
		name, ok := zone.ConfigOf(e.Path)
		if _, zoned := inv.Zone(name); !ok || zoned || !s.Names.NameOfZone(name).Ours() {
			continue
		}
		if c, err := zone.ReadConfig(files, name); err == nil {
			found[name] = c
		}
	}
	return found
}

// goesZone reports whether a zone is removed.
func (f *Findings) goesZone(name string) bool { return f.goes[KindZone+" "+name] }

// forgets are the facts of what is removed, or is already gone: bases, holds, and
// links of an earlier configuration.
func (k *known) forgets(f *Findings) ([]ledger.Fact, error) {
	var facts []ledger.Fact
	for _, o := range f.Objects {
		h, held := k.held[o.key()]
		switch {
		case !o.Removed:
		case o.Kind == KindZone:
			facts = append(facts, k.forgetsZone(o.Name)...)
		case o.Kind == KindVNIC && held:
			facts = append(facts, network.Forget(h))
		case o.Kind == KindDataset && k.localDisks[o.Name].Removing:
			facts = append(facts, k.localDisks[o.Name].Forget())
		case o.Kind == KindVolume:
			if v, recorded := k.volumes[o.Name]; recorded {
				facts = append(facts, v.Forget())
			}
		case o.Kind == KindSnapshot:
			d, _ := f.inv.Dataset(o.Name)
			if r, recorded := k.snapshotOf(d); recorded {
				facts = append(facts, r.Forget())
			}
		case o.Kind == KindRecord:
			facts = append(facts, k.stale(o)...)
		}
	}
	gone := func(l network.Former) bool {
		_, there := f.inv.Link(l.Name)
		return !there || f.goes[l.Kind+" "+l.Name]
	}
	for _, l := range k.net.Former {
		if gone(l) {
			fact, err := k.net.Forgetting(gone)
			return append(facts, fact), err
		}
	}
	return facts, nil
}

// forgetsZone are the facts of a zone that is removed, and has a record of its own: a base
// or a spare.
func (k *known) forgetsZone(name string) (facts []ledger.Fact) {
	if b, based := k.bases[name]; based {
		facts = append(facts, base.Forget(b))
	}
	if spare, ahead := k.spares[name]; ahead {
		facts = append(facts, spare.Forget())
	}
	return facts
}

// leftOf are the facts of the records that a zone has left that is gone: one that a killed
// run has deleted.
func (k *known) leftOf(name string, f *Findings) (facts []ledger.Fact) {
	for _, o := range f.Objects {
		if _, about := o.about[KindZone+" "+name]; about && o.Kind == KindRecord {
			facts = append(facts, k.stale(o)...)
		}
	}
	return facts
}

// stale is the fact that removes a record.
func (k *known) stale(o Object) []ledger.Fact {
	for _, b := range k.bases {
		if recordOfBase(b) == o.Name {
			return []ledger.Fact{base.Forget(b)}
		}
	}
	for _, spare := range k.spares {
		if spare.Key() == o.Name {
			return []ledger.Fact{spare.Forget()}
		}
	}
	for _, r := range k.localDisks {
		if localdisk.Subject(r.ID) == o.Name {
			return []ledger.Fact{r.Forget()}
		}
	}
	for _, v := range k.volumes {
		if volume.Subject(v.ID) == o.Name {
			return []ledger.Fact{v.Forget()}
		}
	}
	if id, is := strings.CutPrefix(o.Name, naming.KeyImage); is {
		return []ledger.Fact{k.images[id].Forget()}
	}
	if r, is := k.snapshots[o.Name]; is {
		return []ledger.Fact{r.Forget()}
	}
	for _, h := range k.held {
		if recordOfHold(h) == o.Name {
			return []ledger.Fact{network.Forget(h)}
		}
	}
	for _, died := range k.died {
		if recordOfIntent(died) == o.Name {
			return []ledger.Fact{operation.Forget(died.ID)}
		}
	}
	return nil
}
