package storage

import (
	"errors"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/zfs"
)

// Remedy is what to do about a difference.
type Remedy struct {
	// Hands is what must be done by hand before Next; empty: nothing.
	Hands string `json:"hands,omitempty"`
	// Next are the commands to type, as they stand.
	Next []string `json:"next"`
	// Instead is the command where that is not possible, because a disk is lost; empty: none.
	Instead string `json:"instead,omitempty"`
}

// inPool shows what a pool that is full is full of.
func inPool(pool string) *Remedy {
	return &Remedy{Next: []string{"sledctl storage list --pool " + pool}}
}

// worst is the remedy that wants an operator, of several; nil: there is none.
func worst(all []Remedy) *Remedy {
	for i := range all {
		if !slices.Equal(all[i].Next, []string{bootstrap}) || all[i].Hands != "" {
			return &all[i]
		}
	}
	if all == nil {
		return nil
	}
	return &all[0]
}

// Said is a remedy for people, a line for each thing that may be done.
func (r Remedy) Said() []string {
	then := strings.Join(r.Next, " && ")
	if r.Hands != "" {
		then = r.Hands + ", then: " + then
	}
	if r.Instead == "" {
		return []string{then}
	}
	return []string{then, "if it is lost: " + r.Instead}
}

const bootstrap = "sledctl bootstrap"

// remedy says what to do about a difference.
func (c *comparison) remedy(d Difference) Remedy {
	if len(d.Repair) > 0 {
		return Remedy{Next: []string{bootstrap}}
	}
	kind, name, _ := strings.Cut(d.Object, " ")
	switch kind {
	case "disk":
		return c.diskRemedy(d, name)
	case "pool":
		if gone, ok := c.absentWith(name); ok {
			return AbsentDisk(gone, name, true)
		}
		return Remedy{Hands: "check its disk", Next: []string{"zpool clear " + name}}
	case "dataset":
		return datasetRemedy(d, name)
	}
	return Remedy{Next: []string{"sledctl storage list"}} // of the disks as a whole
}

const putBack = "put it back"

// AbsentDisk is what to do about a disk that the ledger knows and the sled lacks. A pool
// that is imported without it is suspended; else bootstrap imports it once the disk is back.
func AbsentDisk(name, pool string, imported bool) Remedy {
	r := Remedy{Hands: putBack, Next: []string{bootstrap}, Instead: "sledctl storage forget " + name}
	if imported {
		r.Next = []string{"zpool clear " + pool}
	}
	return r
}

func (c *comparison) diskRemedy(d Difference, name string) Remedy {
	known := d.Disk != nil
	forget := "sledctl storage forget " + name
	switch {
	case d.Property == "presence":
		if known {
			return AbsentDisk(name, d.Disk.Pool, c.imported(d.Disk.Pool))
		}
		return Remedy{Hands: putBack, Next: []string{bootstrap}}
	case d.Is == "blank":
		return Remedy{Next: []string{"sledctl storage format " + name}}
	case d.Is == "unknown":
		return Remedy{Hands: "make it readable, or take it out", Next: []string{bootstrap}}
	case d.Property == "contents":
		return Remedy{Hands: "take it out; or, if its data may go, empty it", Next: []string{"sledctl storage format " + name}}
	}
	if _, faulted := errors.AsType[*FaultedError](d.Err); faulted { // its pool cannot be imported
		return Remedy{Hands: "check the disk", Next: []string{bootstrap}}
	}
	other := Remedy{Hands: "put the right disk in its slot", Next: []string{bootstrap}}
	if known {
		other.Instead = forget
	}
	return other
}

// datasetRemedy is that of a dataset that bootstrap does not touch.
func datasetRemedy(d Difference, name string) Remedy {
	if locked, ok := errors.AsType[*LockedError](d.Err); ok {
		conflict, kept := errors.AsType[*ConflictError](locked.Err)
		switch {
		case kept:
			return Remedy{Next: []string{"zfs inherit " + conflict.Property + " " + name, bootstrap}}
		case errors.Is(locked.Err, errNoSource):
			return Remedy{Hands: "set storage.key", Next: []string{bootstrap}}
		}
		return Remedy{Hands: "make the key source answer", Next: []string{bootstrap}}
	}
	switch d.Property {
	case "mountpoint":
		return Remedy{Next: []string{"zfs set mountpoint=" + d.Wanted + " " + name}}
	case PropertyUUID:
		return Remedy{Hands: "set it in storage.datasets, or on the dataset", Next: []string{"sledctl storage check"}}
	}
	return Remedy{Hands: "rename it, and keep its data", Next: []string{bootstrap}}
}

// absentWith is the disk that has a pool, if it is absent.
func (c *comparison) absentWith(pool string) (name string, absent bool) {
	for _, d := range c.found {
		if d.Property == "presence" && d.Disk != nil && d.Disk.Pool == pool {
			return d.Disk.Name, true
		}
	}
	return "", false
}

func (c *comparison) imported(pool string) bool {
	pools, _ := c.seen.Inv.Pools()
	return slices.ContainsFunc(pools, func(p zfs.Pool) bool { return p.Name == pool })
}
