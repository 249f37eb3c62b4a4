package reap

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/engine/bundle"
	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/zfs"
	"github.com/sledctl/sledctl/zone"
)

// bundler plans bundles. It is pure; the zero one plans none.
type bundler struct {
	bundle.Settings
	places []bundle.Place
	seen   *inventory.Inventory
	at     map[string]string // file systems by mountpoint
	quiet  map[string]bool   // zones of which none is taken: they have never run
	now    time.Time
	seed   string
}

func (s Settings) bundler(k *known, f *Findings, got seen, at operation.Stamp) bundler {
	quiet := maps.Clone(f.bases)
	for name, spare := range k.spares {
		if spare.Unfit == "" { // else a VM may have booted it
			quiet[name] = true
		}
	}
	return bundler{Settings: s.Bundles, places: got.places, seen: f.inv, at: f.at, quiet: quiet, now: at.Now, seed: at.ID}
}

// ofZone takes a bundle of a zone that goes. In a zonepath that is not mounted
// itself there is no directory to mount a root on.
func (b bundler) ofZone(o Object, z zone.Zone) []plan.Action { return b.of(o, z, b.homeOf(z.Path)) }

// of takes a bundle of a zone whose zonepath is a dataset that is mounted, or
// will be.
func (b bundler) of(o Object, z zone.Zone, home zfs.Dataset) []plan.Action {
	if b.quiet[z.Name] {
		return nil
	}
	step, ok := b.Of(b.places, z, causeOf(o), o.Reason, b.now, b.seed)
	if !ok {
		return nil
	}
	return append(b.mounts(z, home), plan.Action{
		ID: step.Verb() + " " + z.Name, Object: "bundle " + step.ID, Why: "of zone " + z.Name + ", before it goes", Change: plan.Create, BestEffort: true, Step: step,
	})
}

// mounts makes the files of a zone be seen that does not run: its root is
// mounted as long as it does, and not after a boot (unmount_active_ds of
// omniosorg/pkg5 src/brand). The uninstallation takes the mount with it.
//
// Guess root-of-halted-zone: the root of a halted zone is mounted by the hooks of sparse and ipkg
// (poststatechange; `zoneadm sysboot` after a boot); where it is not, `mount -F zfs` of its boot
// environment shows it, and `zoneadm uninstall` takes that mount along. Of several boot
// environments the first that is listed is read.
// Check: halt a zone; `ls ZONEPATH/root/var/svc/log`; unmount it, reap, and look into the bundle
func (b bundler) mounts(z zone.Zone, home zfs.Dataset) []plan.Action {
	if z.State != zone.Installed || home.Name == "" {
		return nil
	}
	for _, d := range b.seen.Below(path.Join(home.Name, "ROOT")) {
		direct := strings.Count(d.Name, "/") == strings.Count(home.Name, "/")+2
		if !direct || d.Type != zfs.TypeFilesystem || d.Mountpoint != "legacy" || d.Mounted {
			continue
		}
		step := zfs.MountLegacy{Dataset: d.Name, Directory: path.Join(z.Path, "root")}
		return []plan.Action{{
			ID: step.Verb() + " " + d.Name, Object: "dataset " + d.Name, Why: "for the bundle", Change: plan.Modify, BestEffort: true, Step: step,
		}}
	}
	return nil
}

// homeOf is the dataset that is mounted at a zonepath.
func (b bundler) homeOf(zonepath string) zfs.Dataset {
	name := b.at[zonepath]
	if name == "" {
		return zfs.Dataset{}
	}
	if d, ok := b.seen.Dataset(name); ok && d.Mounted {
		return d
	}
	return zfs.Dataset{}
}

// ofRoot takes a bundle of a zone's root that has lost its zone, as after a
// reboot of a sled that forgets its zones. A root that is not mounted is mounted
// for it: it is unmounted when it is destroyed.
func (b bundler) ofRoot(o Object, inv *inventory.Inventory) []plan.Action {
	d, _ := inv.Dataset(o.Name)
	if isBase(d) || !path.IsAbs(d.Mountpoint) || d.Canmount == "off" {
		return nil
	}
	actions := b.of(o, zone.Zone{Name: path.Base(d.Name), Path: d.Mountpoint, State: zone.Installed}, d)
	if len(actions) == 0 || d.Mounted {
		return actions
	}
	step := zfs.Mount{Dataset: d.Name}
	return append([]plan.Action{{
		ID: step.Verb() + " " + d.Name, Object: o.key(), Why: "for the bundle", Change: plan.Modify, BestEffort: true, Step: step,
	}}, actions...)
}

// unmounts ends the legacy mounts of a zone's root that has lost its zone: those
// for its bundle, and what a reap left that was killed. zfs does not end them,
// and destroys nothing that is mounted.
func (f *Findings) unmounts(name string, before []plan.Action) []plan.Action {
	home, _ := f.inv.Dataset(name)
	var actions []plan.Action
	for _, d := range f.inv.Below(name + "/ROOT") {
		mounts := func(a plan.Action) bool { m, ok := a.Step.(zfs.MountLegacy); return ok && m.Dataset == d.Name }
		if d.Type != zfs.TypeFilesystem || d.Mountpoint != "legacy" || !d.Mounted && !slices.ContainsFunc(before, mounts) {
			continue
		}
		step := zfs.UnmountLegacy{Dataset: d.Name, Directory: path.Join(home.Mountpoint, "root")}
		actions = append(actions, plan.Action{
			ID: step.Verb() + " " + d.Name, Object: KindDataset + " " + d.Name, Why: "is mounted", Change: plan.Modify, BestEffort: true, Step: step,
		})
	}
	return actions
}

func causeOf(o Object) bundle.Cause {
	switch o.Verdict {
	case StaleZone:
		return bundle.StaleZone
	case Orphan:
		return bundle.Orphan
	}
	return bundle.Removed
}

// unkept says that zones go, and there is no place for what they could tell.
func (f *Findings) unkept(nowhere error) []error {
	zones := slices.ContainsFunc(f.Objects, func(o Object) bool { return o.Removed && o.Kind == KindZone })
	if !zones || nowhere == nil {
		return nil
	}
	return []error{fmt.Errorf("nothing is kept of the zones: %w", nowhere)}
}
