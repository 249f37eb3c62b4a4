package storage

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/disk"
	"github.com/sledctl/sledctl/illumos/key"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/zfs"
)

// Settings are the configuration of the sled's storage, and what the
// operator asks of this operation.
type Settings struct {
	Disks  []disk.Source
	Dir    string // of the files that stand for disks; empty: disks are disks
	Custom []CustomDataset
	Keys   *key.Ring // nil: no source is configured

	Format      []string // disks that may be formatted if they are proven blank, by name, slot or serial number
	FormatBlank bool     // every blank one may
	// Lost says that what was on the M.2s is lost for good: a pool of theirs that
	// could not be loaded, and whose disk is blank now, blocks nothing.
	Lost bool

	// On gives the facts by which what lay on a pool is forgotten, and its names; nil: nothing is.
	On func(view ledger.View, pool string) ([]ledger.Fact, []string, error)

	// RefreshWitness puts the mark of the ledger on pools that do not have it yet; nil:
	// there is none to put.
	RefreshWitness func(context.Context) error
}

// Seen is what Look saw.
type Seen struct {
	Inv   *inventory.Inventory // pools and datasets
	Disks []Found
	Keys  Keys     // for what has to be unlocked or made
	Left  []string // key files of a run that was killed
	// Begun are the pools that runs which died have begun to make, by their
	// intents: who runs again finishes them.
	Begun map[string]bool
	// Under are the directories that something is to be mounted on, of datasets
	// of imported pools, as far as they can be seen.
	Under map[string]zfs.Mountpoint
	// Unclear are disks that are there and cannot be made out: what is recorded
	// and not seen is not known to be absent then.
	Unclear error
}

// Found is a disk and what is on it.
type Found struct {
	disk.Disk
	Pool       *zfs.Pool       // imported; else
	Gone       *zfs.Pool       // listed as imported, with nothing left of it, and
	Importable *zfs.Importable // not imported; else
	Content    disk.Content    // what was found otherwise
	Err        error           // why it is not known
}

// Wants is what storage looks at, next to the disks themselves, before it changes
// something.
func (s Settings) Wants() inventory.Want { return wants(inventory.Rival) }

// Observes is what storage looks at to say how it is: datasets as far down as the ones
// lie that must exist, for below them are those of all the zones.
func (s Settings) Observes() inventory.Want {
	want := wants()
	want.Narrow = &inventory.Narrow{Depth: strings.Count(Fallback().Dataset, "/")}
	deepest := func(name string) { want.Narrow.Depth = max(want.Narrow.Depth, strings.Count(name, "/")+1) }
	for _, k := range append(internal(), external()...) {
		deepest(k.name)
	}
	for _, c := range s.Custom {
		deepest(c.Name)
	}
	return want
}

func wants(also ...inventory.Part) inventory.Want {
	return inventory.Want{
		Parts: append(also, inventory.Pools, inventory.Datasets), Roots: roots,
		User: append(zfs.Extended(), PropertyKeyID, PropertyEpoch, PropertyNextEpoch, propertyAgentEpoch, PropertyUUID),
	}
}

// Look lists disks, pools and datasets, and looks closer at the disks that no
// imported pool is on. What is on a disk that cannot be read is unknown; that
// does not keep the rest from being seen. It does not ask whose sled this is.
func (s Settings) Look(ctx context.Context, h host.Host) (Seen, error) {
	return s.look(ctx, h, s.Observes())
}

// lookAlone is Look for a change: it refuses next to another owner.
func (s Settings) lookAlone(ctx context.Context, h host.Host) (Seen, error) {
	return s.look(ctx, h, s.Wants())
}

func (s Settings) look(ctx context.Context, h host.Host, want inventory.Want) (Seen, error) {
	seen := Seen{}
	var disks []disk.Disk
	var left error
	var wg sync.WaitGroup
	wg.Go(func() { disks, seen.Unclear = s.lookForDisks(ctx, h) })
	if s.Keys != nil {
		wg.Go(func() { seen.Left, left = key.Left(h.Files(), s.Keys.Dir()) })
	}
	inv := inventory.Look(ctx, h, want)
	wg.Wait()
	if err := errors.Join(left, inv.Know(want.Parts...)); err != nil {
		return Seen{}, err
	}
	seen.Inv = inv
	pools, _ := inv.Pools()
	bare := false
	for _, d := range disks {
		f := Found{Disk: d}
		for _, p := range pools {
			switch {
			case !bears(d, p.Devices):
			case s.Lost && d.Kind == disk.M2 && p.Health == unloaded:
				f.Gone = &p
			default:
				f.Pool = &p
			}
		}
		bare = bare || f.Pool == nil && !d.Absent
		seen.Disks = append(seen.Disks, f)
	}
	if bare {
		s.lookCloser(ctx, h, pools, &seen)
	}
	return seen, s.lookUnder(ctx, h, &seen)
}

// unloaded is the health of a pool that is known by its name alone, since no label
// of it was found when the system started. One whose disk was taken out since waits
// for it, and does not let itself be exported.
//
// Guess faulted-pool-can-be-exported: a pool that `zpool list` calls FAULTED was not loaded when
// the system started, and is exported at once; one that is UNAVAIL or SUSPENDED since its disk was
// taken out is not, and `zpool export` waits (zpool_get_state_str of libzfs, txg_wait_synced).
// Check: `zpool list; zpool export POOL` after a boot without its disk
const unloaded = "FAULTED"

// lookUnder looks at the directories of what is not mounted. Those that lie in
// a file system which is not mounted itself cannot be seen.
func (s Settings) lookUnder(ctx context.Context, h host.Host, seen *Seen) error {
	pools, _ := seen.Inv.Pools()
	var dirs []string
	for _, p := range pools {
		if !p.Answers() {
			continue
		}
		for _, want := range Of(p.Name, s.Custom) {
			is, there := seen.Inv.Dataset(want.Dataset)
			above, known := seen.Inv.Dataset(path.Dir(want.Dataset))
			visible := path.Dir(want.Dataset) == want.Pool || known && above.Mounted
			if visible && mounts(want) && (!there || !is.Mounted && is.Mountpoint == want.Mountpoint) {
				dirs = append(dirs, want.Mountpoint)
			}
		}
	}
	if len(dirs) == 0 {
		return nil
	}
	found, err := zfs.Mountpoints(ctx, h, dirs...)
	seen.Under = map[string]zfs.Mountpoint{}
	for _, m := range found {
		seen.Under[m.Directory] = m
	}
	return err
}

// lookForDisks asks all sources. A machine without slots has no disks in them.
func (s Settings) lookForDisks(ctx context.Context, h host.Host) (all []disk.Disk, unclear error) {
	for _, source := range s.Disks {
		disks, err := disk.Look(ctx, h, source)
		if !errors.Is(err, disk.ErrNoSlots) {
			unclear = errors.Join(unclear, err)
		}
		all = append(all, disks...)
	}
	return all, unclear
}

// Waiting are the names of pools of a sled's disks that are there and not imported: a root on
// a RAM disk forgets them, and with them the ledger, at each boot.
func Waiting(ctx context.Context, h host.Host) ([]string, error) {
	importable, err := zfs.FindImportable(ctx, h, "")
	var names []string
	for _, p := range importable {
		if kind, _ := naming.ParsePool(p.Name); kind != naming.OtherPool {
			names = append(names, p.Name)
		}
	}
	return names, err
}

// lookCloser finds out what is on disks without an imported pool: one listing
// of pools that can be imported, and a look at each disk that none is on.
func (s Settings) lookCloser(ctx context.Context, h host.Host, imported []zfs.Pool, seen *Seen) {
	importable, err := zfs.FindImportable(ctx, h, s.Dir)
	there := slices.DeleteFunc(slices.Clone(imported), func(p zfs.Pool) bool {
		return slices.ContainsFunc(seen.Disks, func(f Found) bool { return f.Gone != nil && f.Gone.Name == p.Name })
	})
	pools := listed(there, importable)
	var wg sync.WaitGroup
	for i := range seen.Disks {
		f := &seen.Disks[i]
		if f.Pool != nil || f.Absent {
			continue
		}
		for _, p := range importable {
			if bears(f.Disk, p.Devices) {
				f.Importable = &p
			}
		}
		switch {
		case f.Importable != nil:
		case err != nil:
			f.Err = err
		default:
			wg.Go(func() { f.Content, f.Err = disk.Probe(ctx, h, f.Disk, pools) })
		}
	}
	wg.Wait()
	for i, f := range seen.Disks {
		if f.Gone != nil && !f.isBlank() {
			seen.Disks[i].Pool, seen.Disks[i].Gone = f.Gone, nil // it may be what is on the disk
		}
	}
}

// listed are all pools that zpool shows.
func listed(imported []zfs.Pool, importable []zfs.Importable) []disk.Pool {
	names := func(devices []zfs.Device) []string {
		var all []string
		for _, d := range devices {
			all = append(all, d.Name)
		}
		return all
	}
	var all []disk.Pool
	for _, p := range imported {
		all = append(all, disk.Pool{Name: p.Name, GUID: p.GUID, Imported: true, Devices: names(p.Devices)})
	}
	for _, p := range importable {
		all = append(all, disk.Pool{Name: p.Name, GUID: p.GUID, Devices: names(p.Devices)})
	}
	return all
}

// bears says whether a pool has a device of the disk.
func bears(d disk.Disk, devices []zfs.Device) bool {
	return slices.ContainsFunc(devices, func(v zfs.Device) bool { return d.Owns(v.Name) })
}

// roots are the datasets below which to look: the pools of the sled, and where
// zones lie on one that has none for them.
func roots(pools []zfs.Pool) []string {
	var names []string
	external := false
	for _, p := range pools {
		if kind, _ := naming.ParsePool(p.Name); kind != naming.OtherPool {
			names = append(names, p.Name)
			external = external || kind == naming.ExternalPool
		}
	}
	if !external && slices.ContainsFunc(pools, func(p zfs.Pool) bool { return p.Name == Fallback().Pool }) {
		names = append(names, Fallback().Pool)
	}
	return names
}

// isBlank says whether a disk is proven to hold nothing.
func (f Found) isBlank() bool {
	return f.Pool == nil && f.Importable == nil && f.Err == nil && f.Content.State == disk.Blank
}

// holds says what else is on a disk.
func (f Found) holds() string {
	if f.Content.State == disk.HasPool {
		return "pool " + f.Content.Pool.Name + ", which zpool does not offer for import"
	}
	return f.Content.Other
}

// mayFormat says whether the operator lets a disk be formatted.
func (s Settings) mayFormat(d disk.Disk) bool { return s.FormatBlank || s.named(d) }

// ZonePools lists the pools that zones can be put on: those of U.2s where the
// parent of zone roots is mounted, or rpool on a sled without such disks.
func ZonePools(ctx context.Context, h host.Host) ([]string, error) {
	inv := inventory.Look(ctx, h, inventory.Want{Parts: []inventory.Part{inventory.Pools, inventory.Datasets}, Roots: roots})
	if err := inv.Know(inventory.Pools, inventory.Datasets); err != nil {
		return nil, err
	}
	pools, _ := inv.Pools()
	return slices.DeleteFunc(inventory.ZonePools(pools), func(pool string) bool {
		parent, _ := naming.ZoneParent(pool)
		is, there := inv.Dataset(parent.Dataset)
		return !there || !is.Mounted
	}), nil
}
