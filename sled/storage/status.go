package storage

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/disk"
	"github.com/sledctl/sledctl/zfs"
)

// Item is a disk, pool or dataset, with what differs.
type Item struct {
	Kind  string `json:"kind"` // disk, pool, dataset
	Name  string `json:"name"`
	State string `json:"state"` // ready, or what is wrong in a word: absent, locked, blank, differs …
	On    string `json:"on"`    // a pool's disk, a disk's slot
	Pool  string `json:"pool"`  // a disk's, or a dataset's
	Size  uint64 `json:"size"`  // bytes; of a dataset, what it uses
	Free  uint64 `json:"free"`  // bytes
	// Used and Available are what the datasets of a pool use, reservations too, and what is
	// left to them, in bytes.
	Used      uint64 `json:"used,omitempty"`
	Available uint64 `json:"available,omitempty"`
	Serial    string `json:"serial"` // a disk's
	// Mountpoint is where a dataset must be mounted.
	Mountpoint string `json:"mountpoint,omitempty"`
	Reason     string `json:"reason"`
	*Remedy           // nil: nothing is to be done
}

// Kinds are those of items.
func Kinds() []string { return []string{"disk", "pool", "dataset"} }

// Encrypted says whether it is a dataset with a key of its own.
func (i Item) Encrypted() bool { return i.Kind == "dataset" && i.Name == i.Pool+"/"+encrypted }

// Drift is one difference as it is reported.
type Drift struct {
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	Property   string `json:"property"`
	Is         string `json:"is"`
	Wanted     string `json:"wanted"`
	RepairedBy string `json:"repaired_by"` // bootstrap, or operator
	Formerly   string `json:"mended_by"`   // RepairedBy under the key that it had before
	Reason     string `json:"reason"`
	// Slot and Serial are those of a disk that the ledger knows; else empty.
	Slot   string `json:"slot,omitempty"`
	Serial string `json:"serial,omitempty"`
	Remedy
}

// kinds of disks, in the order in which they are prepared.
func everyKind() []disk.Kind { return []disk.Kind{disk.M2, disk.U2} }

// see looks and compares, and changes nothing. The view may be empty.
func (s Settings) see(ctx context.Context, h host.Host, view ledger.View) (*comparison, error) {
	known, err := Records(view)
	if err == nil {
		s, err = s.with(view)
	}
	if err != nil {
		return nil, err
	}
	seen, err := s.lookWithKeys(ctx, host.ReadOnly(h), everyKind(), s.Look)
	if err != nil {
		return nil, err
	}
	return s.compare(seen, known, operation.Stamp{Now: time.Time{}}, everyKind()), nil
}

// Check lists what is different from what it must be, and why.
func (s Settings) Check(ctx context.Context, h host.Host, view ledger.View) ([]Drift, error) {
	_, drifts, err := s.Survey(ctx, h, view)
	return drifts, err
}

// List lists disks, their pools, and the datasets that these must have.
func (s Settings) List(ctx context.Context, h host.Host, view ledger.View) ([]Item, error) {
	items, _, err := s.Survey(ctx, h, view)
	return items, err
}

// Survey is List and Check, of one look.
func (s Settings) Survey(ctx context.Context, h host.Host, view ledger.View) ([]Item, []Drift, error) {
	c, err := s.see(ctx, h, view)
	if err != nil {
		return nil, nil, err
	}
	return c.items(), c.drifts(), nil
}

func (c *comparison) drifts() []Drift {
	drifts := []Drift{}
	for _, d := range c.found {
		kind, name, _ := strings.Cut(d.Object, " ")
		drift := Drift{Kind: kind, Name: name, Property: d.Property, Is: d.Is, Wanted: d.Wanted, RepairedBy: "operator", Reason: d.reason(), Remedy: c.remedy(d)}
		if kind == "disk" && d.Disk != nil {
			drift.Slot, drift.Serial = slot(disk.Disk{Kind: d.Disk.Kind, Slot: d.Disk.Slot}), d.Disk.Serial
		}
		if len(d.Repair) > 0 {
			drift.RepairedBy = "bootstrap"
		}
		drift.Formerly = drift.RepairedBy
		drifts = append(drifts, drift)
	}
	return drifts
}

// reason is why it must be otherwise, or why nothing makes it so.
func (d Difference) reason() string {
	if d.Err != nil {
		return d.Err.Error()
	}
	return d.Why
}

func (c *comparison) items() []Item {
	pools, _ := c.seen.Inv.Pools()
	return slices.Concat([]Item{}, c.diskItems(), c.poolItems(pools), c.datasetItems(pools))
}

func (c *comparison) diskItems() (items []Item) {
	for _, f := range c.seen.Disks {
		item := Item{Kind: "disk", Name: f.Name, On: slot(f.Disk), Size: f.Size, Serial: f.Identity.Serial}
		switch {
		case f.Pool != nil:
			item.Pool = f.Pool.Name
		case f.Importable != nil:
			item.Pool = f.Importable.Name
		}
		items = append(items, c.judged(item))
	}
	for _, d := range c.found {
		if name, ok := strings.CutPrefix(d.Object, "disk "); ok && d.Property == "presence" {
			items = append(items, c.judged(Item{Kind: "disk", Name: name}))
		}
	}
	return items
}

func (c *comparison) poolItems(pools []zfs.Pool) (items []Item) {
	for _, p := range pools {
		if Of(p.Name, nil) == nil && p.Name != Fallback().Pool {
			continue
		}
		item := Item{Kind: "pool", Name: p.Name, Size: p.Size, Free: p.Free}
		if p.Answers() {
			item.Used, item.Available = p.Size-p.Free, p.Free
		}
		if root, ok := c.seen.Inv.Dataset(p.Name); ok && p.Answers() {
			item.Used, item.Available = max(root.Used, item.Used), root.Available
		}
		if !p.Answers() {
			item.Free = 0
		}
		for _, f := range c.seen.Disks {
			if f.Pool != nil && f.Pool.Name == p.Name {
				item.On = f.Name
			}
		}
		items = append(items, c.room(c.judged(item)))
	}
	return items
}

func (c *comparison) datasetItems(pools []zfs.Pool) (items []Item) {
	for _, p := range pools {
		wanted := Of(p.Name, c.Custom)
		if p.Name == Fallback().Pool && !c.any(disk.U2) {
			wanted = []Expected{Fallback()}
		}
		for _, want := range wanted {
			is, there := c.seen.Inv.Dataset(want.Dataset)
			item := c.judged(Item{
				Kind: "dataset", Name: want.Dataset, Pool: want.Pool, Mountpoint: want.Mountpoint, Size: is.Used, Free: is.Available,
			})
			switch {
			case there && item.State == "ready" && is.Available == 0 && p.Answers():
				item.State, item.Reason, item.Remedy = "full", "nothing more fits", inPool(p.Name)
			case !p.Answers():
				item.State, item.Reason = "unknown", "pool "+p.Name+" is "+p.Health+": what lies on it cannot be seen"
			}
			items = append(items, item)
		}
	}
	return items
}

// judged says how an item is.
func (c *comparison) judged(i Item) Item {
	i.State = "ready"
	var reasons []string
	var remedies []Remedy
	for _, d := range c.found {
		if d.Object != i.Kind+" "+i.Name {
			continue
		}
		switch {
		case d.Property == "presence":
			i.State = "absent"
		case d.Property == "key":
			i.State = "locked"
		case d.Property == "contents", d.Property == "health":
			i.State = strings.ToLower(d.Is)
		default:
			i.State = "differs"
		}
		remedies = append(remedies, c.remedy(d))
		if d.Err != nil {
			reasons = append(reasons, d.Err.Error())
		} else {
			reasons = append(reasons, d.Property+" is "+d.Is+", wanted "+d.Wanted)
		}
	}
	if _, ok := c.find(i); i.Kind == "disk" && i.State == "ready" && !ok {
		i.State = "exported"
	}
	i.Reason = strings.Join(slices.Compact(reasons), "; ")
	i.Remedy = worst(remedies)
	return i
}

// fullFrom is the share of a pool from which on it is full, in percent: ZFS slows
// down long before it refuses, and keeps some for itself (zpool(8), slop space).
const fullFrom = 95

// room reports whether a pool that is online is full: by what its datasets use, or by
// what zpool counts, as CAP does.
func (c *comparison) room(i Item) Item {
	used := percent(i.Used, i.Used+i.Available)
	if i.State == "ready" && used >= fullFrom {
		i.State, i.Free, i.Reason = "full", i.Available, fmt.Sprintf("%d%% of it is in use", used)
		i.Remedy = inPool(i.Name)
	}
	return i
}

func percent(part, all uint64) uint64 {
	if all < 100 {
		return 0
	}
	return part / (all / 100)
}

// find says whether a disk's pool is imported.
func (c *comparison) find(i Item) (Found, bool) {
	for _, f := range c.seen.Disks {
		if f.Name == i.Name {
			return f, f.Pool != nil
		}
	}
	return Found{}, false
}

// slot is where a disk is, as an operator may name it: u2:3.
func slot(d disk.Disk) string {
	if d.Slot == disk.NoSlot {
		return string(d.Kind)
	}
	return fmt.Sprintf("%s:%d", d.Kind, d.Slot)
}
