package storage

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/illumos/disk"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/zfs"
)

// comparison is one comparing of what is with what must be. It is pure.
type comparison struct {
	Settings
	seen  Seen
	known map[disk.Identity]Record
	at    operation.Stamp

	coming map[string]disk.Disk // disks of the pools that are to be made
	drawn  map[string]string    // the UUIDs of their names, and the words for them
	found  []Difference
	new    []Record // disks that are to be remembered, of now
	made   []Record // and those of when all is done
}

// compare lists all differences, of the disks of these kinds only.
func (s Settings) compare(seen Seen, known map[disk.Identity]Record, at operation.Stamp, kinds []disk.Kind) *comparison {
	c := &comparison{Settings: s, seen: seen, known: known, at: at, coming: map[string]disk.Disk{}, drawn: map[string]string{}}
	seenPools := map[string]bool{}
	zones := false
	pool := func(name, after string) {
		seenPools[name] = true
		kind, _ := naming.ParsePool(name)
		zones = zones || kind == naming.ExternalPool
		c.datasets(name, after)
	}
	for _, f := range seen.Disks {
		if slices.Contains(kinds, f.Kind) {
			if name, after, ok := c.disk(f); ok {
				pool(name, after)
			}
		}
	}
	if seen.Unclear != nil {
		c.add(Difference{Object: "disks", Property: "identity", Is: "unknown", Wanted: "known", Err: seen.Unclear})
	} else {
		c.absent(kinds)
	}
	pools, _ := seen.Inv.Pools()
	for _, p := range pools {
		if kind, _ := naming.ParsePool(p.Name); !seenPools[p.Name] && slices.Contains(kinds, kindOn(kind)) && !c.disked(p.Name) {
			if c.pool(p) {
				pool(p.Name, "")
			}
			zones = zones || kind == naming.ExternalPool
		}
	}
	if !zones && slices.Contains(kinds, disk.U2) && !c.any(disk.U2) {
		c.dataset(Fallback(), "")
	}
	return c
}

// kindOn is the kind of disk that has pools of a kind.
func kindOn(kind naming.PoolKind) disk.Kind {
	return map[naming.PoolKind]disk.Kind{naming.InternalPool: disk.M2, naming.ExternalPool: disk.U2}[kind]
}

// disked says whether a pool is on a disk that is known as such.
func (c *comparison) disked(pool string) bool {
	return slices.ContainsFunc(c.seen.Disks, func(f Found) bool {
		return f.Pool != nil && f.Pool.Name == pool || f.Gone != nil && f.Gone.Name == pool && c.mayFormat(f.Disk)
	})
}

// any says whether the sled has a disk of a kind.
func (c *comparison) any(kind disk.Kind) bool {
	return slices.ContainsFunc(c.seen.Disks, func(f Found) bool { return f.Kind == kind })
}

func (c *comparison) add(d Difference) { c.found = append(c.found, d) }

// disk compares one disk. If the datasets of its pool can be compared now, it
// gives that and the action that comes before.
func (c *comparison) disk(f Found) (pool, after string, ok bool) {
	object := "disk " + f.Name
	faulted := func(property, is, wanted string, err error) (string, string, bool) {
		c.add(Difference{Object: object, Property: property, Is: is, Wanted: wanted, Err: err, Disk: c.recorded(f)})
		return "", "", false
	}
	switch {
	case f.Absent:
		return faulted("presence", "absent", "present", &FaultedError{Is: "absent: " + f.Device + " is configured, and not there"})
	case f.Pool != nil:
		if err := c.belongs(f, f.Pool.Name); err != nil {
			return faulted("pool", f.Pool.Name, c.wanted(f), err)
		}
		c.remember(f, f.Pool.Name)
		return f.Pool.Name, "", c.pool(*f.Pool)
	case f.Importable != nil:
		if err := c.belongs(f, f.Importable.Name); err != nil {
			return faulted("pool", f.Importable.Name, c.wanted(f), err)
		}
		if c.seen.Begun[f.Importable.Name] {
			c.remember(f, f.Importable.Name) // the intent ends with the import
		}
		if state := f.Importable.State; state != "ONLINE" && state != "DEGRADED" {
			return faulted("pool", strings.ToLower(state), "imported", &FaultedError{Is: fmt.Sprintf("pool %s cannot be imported: it is %s: %s", f.Importable.Name, state, f.Importable.Status)})
		}
		// A sled with a RAM disk root has a new host id after each boot: that its own
		// slots hold its own pools is what the sled agent goes by, too (omicron,
		// illumos-utils/src/zpool.rs).
		c.add(Difference{Object: "pool " + f.Importable.Name, Property: "imported", Is: "no", Wanted: "yes", Why: "lies on disk " + f.Name, Repair: []plan.Action{{
			ID: "zpool.import " + f.Importable.Name, Object: "pool " + f.Importable.Name, Why: "lies on disk " + f.Name, Change: plan.Modify,
			Step: zfs.ImportPool{Name: f.Importable.Name, GUID: f.Importable.GUID, Dir: c.Dir, Force: f.Importable.Foreign},
		}}})
		return "", "", false
	case f.Err != nil:
		return faulted("contents", "unknown", "a pool", f.Err)
	case f.isBlank():
		return c.blank(f)
	}
	return faulted("contents", f.holds(), c.wanted(f), &ConflictError{Object: object, Property: "contents", Is: f.holds(), Wanted: c.wanted(f)})
}

// recorded is the record of a disk. One that cannot be seen is found by its name.
func (c *comparison) recorded(f Found) *Record {
	if r, ok := c.known[f.Identity]; ok {
		return &r
	}
	for _, r := range c.known {
		if f.Absent && r.Name == f.Name {
			return &r
		}
	}
	return nil
}

// wanted is the pool that a disk is to have.
func (c *comparison) wanted(f Found) string {
	if r, ok := c.known[f.Identity]; ok {
		return r.Pool
	}
	return map[disk.Kind]string{disk.M2: "oxi_<uuid>", disk.U2: "oxp_<uuid>"}[f.Kind]
}

// belongs says whether a pool is one that may be on the disk: the one that the
// ledger has for it, or that a run which died was making on it, or, for a disk that the ledger does not know, one of its
// kind that no other disk here has.
func (c *comparison) belongs(f Found, pool string) error {
	kind, _ := naming.ParsePool(pool)
	r, known := c.known[f.Identity]
	conflict := &ConflictError{Object: "disk " + f.Name, Property: "pool", Is: pool, Wanted: c.wanted(f)}
	switch {
	case c.seen.Begun[pool] && kindOn(kind) == f.Kind:
		return nil
	case known && r.Pool != pool, !known && kindOn(kind) != f.Kind:
		return conflict
	case known:
		return nil
	}
	for _, o := range c.seen.Disks {
		if r, known := c.known[o.Identity]; known && r.Pool == pool {
			conflict.Is += ", which belongs to disk " + o.Name
			return conflict
		}
	}
	return nil
}

func (c *comparison) remember(f Found, pool string) {
	r := recordOf(f.Disk, pool, c.at.Now)
	old, ok := c.known[f.Identity]
	if r.Time = old.Time; !ok || r != old {
		r.Time = c.at.Now
		c.new = append(c.new, r)
	}
}

// blank is a disk that is proven to hold nothing.
func (c *comparison) blank(f Found) (pool, after string, ok bool) {
	d := Difference{Object: "disk " + f.Name, Property: "contents", Is: "blank", Wanted: c.wanted(f), Why: "a disk is formatted only if it is named"}
	if r, ok := c.known[f.Identity]; ok {
		d.Err = &ConflictError{Object: d.Object, Property: "contents", Is: "blank", Wanted: r.Pool}
		if !c.named(f.Disk) {
			c.add(d)
			return "", "", false
		}
		d.Err = nil
	}
	if !c.mayFormat(f.Disk) {
		c.add(d)
		return "", "", false
	}
	id := newUUID(c.at.ID, text(f.Identity))
	c.drawn[id] = "POOL-UUID-" + f.Name
	pool = map[disk.Kind]string{disk.M2: "oxi_", disk.U2: "oxp_"}[f.Kind] + id
	d.Why = "blank, and to be formatted"
	create := "zpool.create " + pool
	var export []string
	if f.Gone != nil {
		export = []string{"zpool.export " + f.Gone.Name}
		d.Repair = []plan.Action{{ID: export[0], Object: "pool " + f.Gone.Name, Why: "nothing is left of it: disk " + f.Name + " is blank", Change: plan.Remove,
			Step: zfs.ExportPool{Name: f.Gone.Name}}}
	}
	d.Repair = append(d.Repair,
		plan.Action{ID: create, Object: "pool " + pool, Why: "disk " + f.Name + " is blank, and to be formatted", Change: plan.Create, Irrevocable: true, After: export,
			Step: zfs.CreatePool{Name: pool, Device: f.Content.Device, Properties: props("ashift", "12")}},
		c.failmode(pool, "", create))
	c.add(d)
	c.made = append(c.made, recordOf(f.Disk, pool, c.at.Now))
	c.coming[pool] = f.Disk
	return pool, create, true
}

// named says whether the operator has named a disk, by what tells it from the
// others.
func (s Settings) named(d disk.Disk) bool {
	return slices.ContainsFunc(s.Format, func(name string) bool { return Is(d, name) })
}

// Is says whether an operator's word means this disk: its name, its serial
// number, its pool device, or its slot as u2:3.
func Is(d disk.Disk, word string) bool {
	return word == d.Name || word == d.Identity.Serial || word == d.Device || word == slot(d)
}

// newUUID derives the uuid of a pool from the intent and the disk: who runs
// again chooses again, and two disks never get the same.
func newUUID(intent, disk string) string {
	space, err := uuid.Parse(intent)
	if err != nil {
		space = uuid.NameSpaceURL
	}
	id := uuid.NewSHA1(space, []byte("pool of "+intent+" "+disk))
	id[6] = id[6]&0x0f | 0x40 // names of pools are of version 4 (omicron, common/src/zpool_name.rs)
	return id.String()
}

// pool compares a pool that is imported. It is false if its datasets must be
// left alone.
func (c *comparison) pool(p zfs.Pool) bool {
	if !p.Answers() {
		c.add(Difference{Object: "pool " + p.Name, Property: "health", Is: p.Health, Wanted: "ONLINE",
			Err: &FaultedError{Is: "pool is " + p.Health + ": its disk does not answer as it should", Clear: p.Name}})
		return false
	}
	if p.Failmode != "" && p.Failmode != "continue" {
		c.add(Difference{Object: "pool " + p.Name, Property: "failmode", Is: p.Failmode, Wanted: "continue", Why: failmodeWhy,
			Repair: []plan.Action{c.failmode(p.Name, p.Failmode, "")}})
	}
	return true
}

const failmodeWhy = "a disk that stops must give errors, not hang"

// failmode makes a lone device that stops give errors (omicron#2766).
func (c *comparison) failmode(pool, old, after string) plan.Action {
	a := plan.Action{ID: "zpool.set " + pool + " failmode", Object: "pool " + pool, Why: failmodeWhy, Change: plan.Modify,
		Step: zfs.SetPool{Pool: pool, Name: "failmode", Value: "continue", Old: old}}
	if after != "" {
		a.After = []string{after}
	}
	return a
}

// absent reports disks that the ledger knows and the sled does not have.
func (c *comparison) absent(kinds []disk.Kind) {
	var gone []Record
	for id, r := range c.known {
		here := slices.ContainsFunc(c.seen.Disks, func(f Found) bool { return f.Identity == id || f.Absent && f.Name == r.Name })
		if !here && slices.Contains(kinds, r.Kind) {
			gone = append(gone, r)
		}
	}
	slices.SortFunc(gone, func(a, b Record) int { return strings.Compare(a.Name, b.Name) })
	for _, r := range gone {
		c.add(Difference{Object: "disk " + r.Name, Property: "presence", Is: "absent", Wanted: "present", Disk: &r,
			Err: &FaultedError{Is: fmt.Sprintf("absent: serial number %s in slot %d, with pool %s", r.Serial, r.Slot, r.Pool)}})
	}
}
