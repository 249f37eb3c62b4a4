package histories

import (
	"fmt"
	"slices"
)

// vm is an instance as the operator knows it. One that is not recorded and runs is
// an unrecorded zone: the ledger was lost.
type vm struct {
	recorded  bool
	wanted    string // running, stopped
	cpus      int
	nics      int
	extra     bool // it has the disks or the spec of the sled's row
	protected bool
	life      life
	steps     int // of the bring-up, that were taken one by one
	// maybe is what else it may be: what a verb that was killed was about to
	// make of it. What a kill left on one copy of the ledger counts from the
	// next change on, of any process.
	maybe *vm
}

// life is what of an instance is on the sled.
type life string

const (
	none     life = "none"     // nothing
	begun    life = "begun"    // the first of its steps are taken
	up       life = "up"       // a machine that runs
	off      life = "off"      // its machine was powered off, its zone is there
	halted   life = "halted"   // a zone, and nothing in it runs
	removed  life = "removed"  // its zone was removed by hand
	lost     life = "lost"     // its Propolis was started again, and has no machine
	outlived life = "outlived" // it is from before the boot of the sled
	stale    life = "stale"    // its first steps are, and no machine was made
	unclear  life = "unclear"  // a verb was killed during it
)

// states are those that sledctl may report for each.
func (v *vm) states() []string {
	switch v.life {
	case none:
		if v.wanted == "stopped" {
			return []string{"stopped"}
		}
		return []string{"absent"}
	case begun:
		return []string{"creating"}
	case up:
		return []string{"running"}
	case off:
		return []string{"destroyed"}
	case halted, lost:
		return []string{"failed"}
	case removed, outlived, stale:
		return []string{"absent"}
	}
	return nil // anything
}

// known says that what is on the sled is of this boot, and certain.
func (v *vm) known() bool { return !slices.Contains([]life{unclear, outlived, stale}, v.life) }

// unrecorded says that sledctl does not know it, and that its zone is there.
func (v *vm) unrecorded() bool { return !v.recorded && v.life != none }

func (v *vm) clone() *vm {
	c := *v
	if v.maybe != nil {
		c.maybe = v.maybe.clone()
	}
	return &c
}

// all are what it may be, each by itself, the likeliest first.
func (v *vm) all() []vm {
	var all []vm
	for ; v != nil; v = v.maybe {
		one := *v
		one.maybe = nil
		all = append(all, one)
	}
	return all
}

// either is an instance that is one of these, the likeliest first.
func either(all []vm) *vm {
	var head *vm
	for i := len(all) - 1; i >= 0; i-- {
		if !slices.Contains(all[:i], all[i]) {
			one := all[i]
			one.maybe, head = head, &one
		}
	}
	return head
}

func (v *vm) String() string {
	if !v.recorded {
		return fmt.Sprintf("not recorded, %s", v.life)
	}
	return fmt.Sprintf("wanted %s, cpus %d, nics %d, extra %v, protected %v, %s", v.wanted, v.cpus, v.nics, v.extra, v.protected, v.life)
}

// what instance ensure gives an instance without a description.
const usualCPUs = 2
