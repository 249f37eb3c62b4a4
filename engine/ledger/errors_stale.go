package ledger

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/host/fault"
)

// SupersededError is ErrSuperseded: the witness knows of an epoch, or of a
// ledger, that the copies at hand do not know.
type SupersededError struct {
	Tag   EpochTag
	Files []string // the copies at hand; empty if there is none
}

// Error names the copies and what overrules them.
func (e *SupersededError) Error() string {
	return fmt.Sprintf("%v: epoch %d (%s) of ledger %s was in force, and is unknown to: %s", ErrSuperseded,
		e.Tag.N, e.Tag.Epoch, e.Tag.Ledger, cmp.Or(strings.Join(e.Files, ", "), "no file at all"))
}

func (*SupersededError) Kind() fault.Kind { return fault.Ledger }

// Unwrap gives ErrSuperseded.
func (e *SupersededError) Unwrap() error { return ErrSuperseded }

// Hint says what would be right.
func (e *SupersededError) Hint() string {
	if len(e.Files) > 0 {
		return "bring the disk back that holds the newer copy; if it is gone for good, run: sledctl ledger heal --keep COPY"
	}
	return "bring a disk back that holds a copy; if all are gone for good, run: sledctl bootstrap --new-ledger --format-blank; then, with an export, run: sledctl ledger import FILE; without one, run: sledctl instance adopt --all"
}

// RewoundError is ErrRewound: the copies end before a line that was acknowledged.
type RewoundError struct {
	Seen    uint64 // that line
	Head    Head   // of the best copy
	Files   []string
	History string // the name of the file next to it that says so; empty: this boot's stamp does
}

// Error names the files.
func (e *RewoundError) Error() string {
	files := strings.Join(e.Files, ", ")
	if e.History != "" {
		return fmt.Sprintf("%v: lines up to seq %d were in %s, as %s next to it shows; it ends at %v", ErrRewound, e.Seen, files, e.History, e.Head)
	}
	return fmt.Sprintf("%v: this boot acknowledged seq %d; the copies end at %v: %s", ErrRewound, e.Seen, e.Head, files)
}

func (*RewoundError) Kind() fault.Kind { return fault.Ledger }

// Unwrap gives ErrRewound.
func (e *RewoundError) Unwrap() error { return ErrRewound }

// Hint says what would be right.
func (e *RewoundError) Hint() string { return (&SupersededError{Files: e.Files}).Hint() }

// ForeignError is ErrForeign: the disks that are there belong to another sled.
type ForeignError struct {
	Found string // the ledger of the copies
	Sled  string // the one that the sled has
	Files []string
}

// Error names both ledgers.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("%v: they are of ledger %s, this sled's is %s: %s", ErrForeign, e.Found, e.Sled, strings.Join(e.Files, ", "))
}

func (*ForeignError) Kind() fault.Kind { return fault.Ledger }

// Unwrap gives ErrForeign, and ErrSuperseded: another ledger is in force.
func (e *ForeignError) Unwrap() []error { return []error{ErrForeign, ErrSuperseded} }

// Hint says what would be right.
func (e *ForeignError) Hint() string {
	return "put this sled's disks back; to continue with these for good, run: sledctl ledger heal --keep COPY"
}

// ContradictionError is ErrContradicted: two pools name different epochs of one
// number.
type ContradictionError struct{ Both [2]WitnessTag }

// Error names the pools.
func (e *ContradictionError) Error() string {
	a, b := e.Both[0], e.Both[1]
	return fmt.Sprintf("%v: pool %s says %v, pool %s says %v", ErrContradicted, a.Pool, a.Tag, b.Pool, b.Tag)
}

func (*ContradictionError) Kind() fault.Kind { return fault.Ledger }

// Unwrap gives ErrContradicted.
func (e *ContradictionError) Unwrap() error { return ErrContradicted }

// Hint says what would be right.
func (e *ContradictionError) Hint() string {
	return "take the disk out that is not this sled's; if both are, run for the pool that is wrong: zfs inherit sledctl:ledger POOL"
}
