package storage

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/disk"
	"github.com/sledctl/sledctl/operation"
	"github.com/sledctl/sledctl/plan"
	"github.com/sledctl/sledctl/sled"
	"github.com/sledctl/sledctl/zfs"
)

// comparison is one comparing of what is with what must be. It is pure.
type comparison struct {
	Settings
	seen  Seen
	known map[disk.Identity]Record
	at    operation.Moment

	coming map[string]disk.Disk // disks of the pools that are to be made
	found  []Difference
	new    []Record // disks that are to be remembered, of now
	made   []Record // and those of when all is done
}

// compare lists all differences, of the disks of these kinds only.
func (s Settings) compare(seen Seen, known map[disk.Identity]Record, at operation.Moment, kinds []disk.Kind) *comparison {
	c := &comparison{Settings: s, seen: seen, known: known, at: at, coming: map[string]disk.Disk{}}
	seenPools := map[string]bool{}
	zones := false
	pool := func(name, after string) {
		seenPools[name] = true
		kind, _ := sled.ParsePool(name)
		zones = zones || kind == sled.ExternalPool
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
		if kind, _ := sled.ParsePool(p.Name); !seenPools[p.Name] && slices.Contains(kinds, kindOn(kind)) && !c.disked(p.Name) {
			if c.pool(p) {
				pool(p.Name, "")
			}
			zones = zones || kind == sled.ExternalPool
		}
	}
	if !zones && slices.Contains(kinds, disk.U2) && !c.any(disk.U2) {
		c.dataset(Fallback(), "")
	}
	return c
}

// kindOn is the kind of disk that has pools of a kind.
func kindOn(kind sled.PoolKind) disk.Kind {
	return map[sled.PoolKind]disk.Kind{sled.InternalPool: disk.M2, sled.ExternalPool: disk.U2}[kind]
}

// disked says whether a pool is on a disk that is known as such.
func (c *comparison) disked(pool string) bool {
	return slices.ContainsFunc(c.seen.Disks, func(f Found) bool { return f.Pool != nil && f.Pool.Name == pool })
}

// any says whether the sled has a disk of a kind.
func (c *comparison) any(kind disk.Kind) bool {
	return slices.ContainsFunc(c.seen.Disks, func(f Found) bool { return f.Kind == kind })
}

func (c *comparison) add(d Difference) { c.found = append(c.found, d) }

// disk compares one disk. If datasets can be looked after on its pool now, it
// gives that and the action that comes before.
func (c *comparison) disk(f Found) (pool, after string, ok bool) {
	object := "disk " + f.Name
	ill := func(property, is, wanted string, err error) (string, string, bool) {
		c.add(Difference{Object: object, Property: property, Is: is, Wanted: wanted, Err: err})
		return "", "", false
	}
	switch {
	case f.Absent:
		return ill("presence", "absent", "present", &IllError{Is: "absent: " + f.Device + " is configured, and not there"})
	case f.Pool != nil:
		if err := c.belongs(f, f.Pool.Name); err != nil {
			return ill("pool", f.Pool.Name, c.wanted(f), err)
		}
		c.remember(f, f.Pool.Name)
		return f.Pool.Name, "", c.pool(*f.Pool)
	case f.Importable != nil:
		if err := c.belongs(f, f.Importable.Name); err != nil {
			return ill("pool", f.Importable.Name, c.wanted(f), err)
		}
		if state := f.Importable.State; state != "ONLINE" && state != "DEGRADED" {
			return ill("pool", strings.ToLower(state), "imported", &IllError{Is: fmt.Sprintf("pool %s cannot be imported: it is %s: %s", f.Importable.Name, state, f.Importable.Status)})
		}
		// A sled with a ramdisk root has a new host id after each boot: that its own
		// slots hold its own pools is what the sled agent goes by, too (omicron,
		// illumos-utils/src/zpool.rs).
		c.add(Difference{Object: "pool " + f.Importable.Name, Property: "imported", Is: "no", Wanted: "yes", Why: "lies on disk " + f.Name, Mend: []plan.Action{{
			ID: "zpool.import " + f.Importable.Name, Object: "pool " + f.Importable.Name, Why: "lies on disk " + f.Name, Change: plan.Modify,
			Step: zfs.ImportPool{Name: f.Importable.Name, GUID: f.Importable.GUID, Dir: c.Dir, Force: f.Importable.Foreign},
		}}})
		return "", "", false
	case f.Err != nil:
		return ill("contents", "unknown", "a pool", f.Err)
	case f.isBlank():
		return c.blank(f)
	}
	return ill("contents", f.holds(), c.wanted(f), &ConflictError{Object: object, Property: "contents", Is: f.holds(), Wanted: c.wanted(f)})
}

// wanted is the pool that a disk is to have.
func (c *comparison) wanted(f Found) string {
	if r, ok := c.known[f.Identity]; ok {
		return r.Pool
	}
	return map[disk.Kind]string{disk.M2: "oxi_<uuid>", disk.U2: "oxp_<uuid>"}[f.Kind]
}

// belongs says whether a pool is one that may be on the disk: the one that the
// ledger has for it, or, for a disk that the ledger does not know, one of its
// kind that no other disk here has.
func (c *comparison) belongs(f Found, pool string) error {
	kind, _ := sled.ParsePool(pool)
	r, known := c.known[f.Identity]
	conflict := &ConflictError{Object: "disk " + f.Name, Property: "pool", Is: pool, Wanted: c.wanted(f)}
	switch {
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
	pool = map[disk.Kind]string{disk.M2: "oxi_", disk.U2: "oxp_"}[f.Kind] + newUUID(c.at.ID, text(f.Identity))
	d.Why = "blank, and to be formatted"
	create := "zpool.create " + pool
	d.Mend = []plan.Action{
		{ID: create, Object: "pool " + pool, Why: "disk " + f.Name + " is blank, and to be formatted", Change: plan.Create,
			Step: zfs.CreatePool{Name: pool, Device: f.Content.Device, Properties: props("ashift", "12")}},
		c.failmode(pool, "", create),
	}
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
// again chooses anew, and two disks never get the same.
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
			Err: &IllError{Is: "pool is " + p.Health + ": its disk does not answer as it should", Clear: p.Name}})
		return false
	}
	if p.Failmode != "" && p.Failmode != "continue" {
		c.add(Difference{Object: "pool " + p.Name, Property: "failmode", Is: p.Failmode, Wanted: "continue", Why: failmodeWhy,
			Mend: []plan.Action{c.failmode(p.Name, p.Failmode, "")}})
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

// absent tells of disks that the ledger knows and nobody sees.
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
		c.add(Difference{Object: "disk " + r.Name, Property: "presence", Is: "absent", Wanted: "present",
			Err: &IllError{Is: fmt.Sprintf("absent: serial number %s in slot %d, with pool %s", r.Serial, r.Slot, r.Pool)}})
	}
}

// datasets compares those of a pool, behind the action that makes it.
func (c *comparison) datasets(pool, after string) {
	last := map[string]string{path.Dir(pool): after, pool: after} // the action behind which a dataset is right
	locked := ""
	for _, want := range Of(pool, c.Own) {
		if locked != "" && strings.HasPrefix(want.Dataset, locked+"/") {
			continue // what is below is told when it can be seen
		}
		before := last[path.Dir(want.Dataset)]
		if before == "" {
			before = after
		}
		done, ok := c.dataset(want, before)
		if last[want.Dataset] = done; !ok && want.Root {
			locked = want.Dataset
		}
	}
	if locked == "" {
		c.below(pool, last)
	}
}

// below mounts what lies in the encrypted part beside what is expected, as the
// boot mounts what is not encrypted (svc:/system/filesystem/local runs zfs mount
// -a, which passes by what has no key): zones lie there.
func (c *comparison) below(pool string, last map[string]string) {
	root := pool + "/" + encrypted
	for _, d := range c.seen.Inv.Below(root) {
		_, expected := last[d.Name]
		if expected || d.Type != zfs.TypeFilesystem || d.Mounted || d.Canmount != "on" || d.Zoned || !path.IsAbs(d.Mountpoint) || d.EncryptionRoot != root {
			continue
		}
		mount := plan.Action{ID: "zfs.mount " + d.Name, Object: "dataset " + d.Name, Why: "is not mounted", Change: plan.Modify, Step: zfs.Mount{Dataset: d.Name}}
		for parent := path.Dir(d.Name); parent != "."; parent = path.Dir(parent) {
			if last[parent] != "" {
				mount.After = []string{last[parent]}
				break
			}
		}
		last[d.Name] = mount.ID
		c.add(Difference{Object: mount.Object, Property: "mounted", Is: "no", Wanted: "yes", Why: "what is encrypted is mounted when it is unlocked", Mend: []plan.Action{mount}})
	}
}

// dataset compares one, and gives the action behind which it is right. It is
// false if nothing can be done below it.
func (c *comparison) dataset(want Expected, before string) (after string, ok bool) {
	is, there := c.seen.Inv.Dataset(want.Dataset)
	if !there {
		return c.create(want, before)
	}
	object := "dataset " + want.Dataset
	if err := c.conflict(want, is); err != nil {
		c.add(Difference{Object: object, Property: err.Property, Is: err.Is, Wanted: err.Wanted, Why: want.Why, Err: err})
		return "", false
	}
	after = before
	chain := func(property, was, wanted string, a plan.Action) {
		a.Object, a.Change = object, plan.Modify
		if after != "" {
			a.After = []string{after}
		}
		c.add(Difference{Object: object, Property: property, Is: was, Wanted: wanted, Why: want.Why, Mend: []plan.Action{a}})
	}
	if want.Root && is.Keystatus == zfs.KeyUnavailable {
		a, err := c.unlock(want, is)
		if err != nil {
			c.add(Difference{Object: object, Property: "key", Is: "not loaded", Wanted: "loaded", Why: want.Why, Err: &LockedError{err}})
			return "", false
		}
		chain("key", "not loaded", "loaded", a)
		after = a.ID
	}
	for _, p := range want.Properties {
		if value := current(is, p.Name); value != p.Value {
			chain(p.Name, value, p.Value, plan.Action{
				ID: "zfs.set " + want.Dataset + " " + p.Name, Why: p.Name + " is " + value + ", wanted " + p.Value,
				Step: zfs.Set{Dataset: want.Dataset, Name: p.Name, Value: p.Value, Old: value},
			})
		}
	}
	if !is.Mounted && mounts(want) {
		if a, ok := c.protect(want, after); ok {
			c.add(Difference{Object: object, Property: "mountpoint", Is: "not protected", Wanted: "protected", Why: a.Why, Mend: []plan.Action{a}})
			after = a.ID
		}
		mount := plan.Action{ID: "zfs.mount " + want.Dataset, Why: "is not mounted", Step: zfs.Mount{Dataset: want.Dataset}}
		chain("mounted", "no", "yes", mount)
		after = mount.ID
	}
	return after, true
}

// protect makes the directory below a mount immutable, so that nothing can be
// written there while nothing is mounted: it would lie on the sled's ramdisk
// (omicron#7874).
func (c *comparison) protect(want Expected, before string) (plan.Action, bool) {
	m, seen := c.seen.Under[want.Mountpoint]
	_, coming := c.coming[want.Pool]
	parent := path.Dir(want.Dataset)
	if _, above := c.seen.Inv.Dataset(parent); coming || parent != want.Pool && !above { // it is made in this run, and empty
		m, seen = zfs.Mountpoint{Directory: want.Mountpoint}, true
	}
	if !seen || m.Protected() || !mounts(want) {
		return plan.Action{}, false
	}
	step := m.Protect(newUUID(c.at.ID, want.Mountpoint)[:8])
	a := plan.Action{ID: step.Verb() + " " + want.Mountpoint, Object: "directory " + want.Mountpoint, Why: "nothing is to be written below a mount", Change: plan.Modify, Step: step}
	if before != "" {
		a.After = []string{before}
	}
	return a, true
}

// mounts says whether a dataset is to be mounted by us.
func mounts(want Expected) bool {
	for _, p := range want.Properties {
		if p.Name == "canmount" {
			return p.Value == "on"
		}
	}
	return true
}

// create makes a dataset that is not there.
func (c *comparison) create(want Expected, before string) (after string, ok bool) {
	properties := append([]zfs.Property{{Name: "mountpoint", Value: want.Mountpoint}}, want.Properties...)
	a := plan.Action{ID: "zfs.create " + want.Dataset, Object: "dataset " + want.Dataset, Why: want.Why, Change: plan.Create,
		Step: zfs.Create{Dataset: want.Dataset, Properties: properties}}
	if want.Root {
		step, err := c.createRoot(want, properties)
		if err != nil {
			c.add(Difference{Object: a.Object, Property: "presence", Is: "absent", Wanted: "encrypted", Why: want.Why, Err: &LockedError{err}})
			return "", false
		}
		a.Step = step
	}
	mend := []plan.Action{a}
	if p, ok := c.protect(want, before); ok {
		mend, before = []plan.Action{p, a}, p.ID
	}
	if before != "" {
		mend[len(mend)-1].After = []string{before}
	}
	c.add(Difference{Object: a.Object, Property: "presence", Is: "absent", Wanted: "present", Why: want.Why, Mend: mend})
	return a.ID, true
}

// conflict is what is never changed: someone else made it so, or data would be
// out of sight.
func (c *comparison) conflict(want Expected, is zfs.Dataset) *ConflictError {
	bad := func(property, was, wanted string) *ConflictError {
		return &ConflictError{Object: "dataset " + want.Dataset, Property: property, Is: was, Wanted: wanted}
	}
	root := path.Join(want.Pool, encrypted)
	switch {
	case is.Type != zfs.TypeFilesystem:
		return bad("type", is.Type, zfs.TypeFilesystem)
	case is.Mountpoint != want.Mountpoint:
		return bad("mountpoint", is.Mountpoint, want.Mountpoint)
	case want.inside() && is.Encryption == "":
		return bad("encryption", "unknown", zfs.Cipher) // this zfs cannot tell
	case want.inside() && is.Encryption != zfs.Cipher:
		return bad("encryption", is.Encryption, zfs.Cipher)
	case want.inside() && is.EncryptionRoot != root:
		return bad("encryptionroot", is.EncryptionRoot, root)
	}
	for _, p := range want.Properties {
		if old := is.User[p.Name]; p.Name == propertyUUID && old.Source == zfs.Local && old.Value != p.Value {
			return bad(p.Name, old.Value, p.Value)
		}
	}
	return nil
}

// current is the value that a dataset has of a property that we keep.
func current(d zfs.Dataset, name string) string {
	size := func(n uint64) string {
		if n == 0 {
			return "none"
		}
		return strconv.FormatUint(n, 10)
	}
	switch name {
	case "compression":
		return d.Compression
	case "canmount":
		return d.Canmount
	case "quota":
		return size(d.Quota)
	case "reservation":
		return size(d.Reservation)
	}
	if v := d.User[name]; v.Source == zfs.Local {
		return v.Value
	}
	return ""
}
