package storage

import (
	"path"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/zfs"
)

// datasets compares those of a pool, behind the action that makes it.
func (c *comparison) datasets(pool, after string) {
	last := map[string]string{path.Dir(pool): after, pool: after} // the action behind which a dataset is right
	locked := ""
	for _, want := range Of(pool, c.Custom) {
		if locked != "" && strings.HasPrefix(want.Dataset, locked+"/") {
			continue // what is below is reported once it can be seen
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

// below mounts what lies in the encrypted part next to what is expected, as the
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
		c.add(Difference{Object: mount.Object, Property: "mounted", Is: "no", Wanted: "yes", Why: "what is encrypted is mounted when it is unlocked", Repair: []plan.Action{mount}})
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
		c.add(Difference{Object: object, Property: property, Is: was, Wanted: wanted, Why: want.Why, Repair: []plan.Action{a}})
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
			c.add(Difference{Object: object, Property: "mountpoint", Is: "not protected", Wanted: "protected", Why: a.Why, Repair: []plan.Action{a}})
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

// create makes a dataset that does not exist.
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
	repair := []plan.Action{a}
	if p, ok := c.protect(want, before); ok {
		repair, before = []plan.Action{p, a}, p.ID
	}
	if before != "" {
		repair[len(repair)-1].After = []string{before}
	}
	c.add(Difference{Object: a.Object, Property: "presence", Is: "absent", Wanted: "present", Why: want.Why, Repair: repair})
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
		if old := is.User[p.Name]; p.Name == PropertyUUID && old.Source == zfs.Local && old.Value != p.Value {
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
