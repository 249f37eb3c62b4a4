package localdisk

import (
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/naming"
)

// UnavailableError is a pool that can hold no local disk now: it does not answer, or the dataset in
// which local disks lie does not exist or is not mounted. Its text is the sled agent's.
type UnavailableError struct {
	Pool      string
	Encrypted bool
}

// Error is the sled agent's message.
func (e *UnavailableError) Error() string {
	kind := "local storage unencrypted dataset"
	if e.Encrypted {
		kind = "local storage dataset"
	}
	_, id := naming.ParsePool(e.Pool)
	return fmt.Sprintf("%s for pool %s missing!", kind, id)
}

func (*UnavailableError) Kind() fault.Kind { return fault.Refused }

// Hint says how to get the dataset.
func (e *UnavailableError) Hint() string {
	_, name, _ := strings.Cut(naming.LocalStorage(e.Pool, e.Encrypted).Dataset, "/")
	return `add "u2:` + name + ` compression=off" to storage.datasets, and run: sledctl bootstrap`
}

// PoolError is a local disk for which no pool was given, where not exactly one can hold it.
type PoolError struct {
	Pools     []string
	Encrypted bool
}

// Error lists those that can.
func (e *PoolError) Error() string {
	if len(e.Pools) == 0 {
		return "no pool of a U.2 has a dataset for local disks"
	}
	return "several pools can hold the local disk: " + strings.Join(e.Pools, ", ")
}

// Kind separates a choice that is missing from a sled that has none.
func (e *PoolError) Kind() fault.Kind {
	if len(e.Pools) == 0 {
		return fault.Refused
	}
	return fault.Usage
}

// Hint says how to choose, or to get one.
func (e *PoolError) Hint() string {
	if len(e.Pools) == 0 {
		return (&UnavailableError{Pool: "oxp_", Encrypted: e.Encrypted}).Hint()
	}
	return "give one of them with --pool"
}

// ElsewhereError is a local disk that is recorded in another place than the one that was named.
type ElsewhereError struct{ Record Record }

// Error says where it is.
func (e *ElsewhereError) Error() string {
	return fmt.Sprintf("local disk %s is %s", e.Record.ID, e.Record.Dataset())
}

func (*ElsewhereError) Kind() fault.Kind { return fault.Conflict }

// Hint says where to see it.
func (*ElsewhereError) Hint() string {
	return "to list the local disks, run: sledctl storage local-disk list"
}

// MismatchError is a dataset that exists and differs in what is never changed.
type MismatchError struct{ Dataset, Property, Is, Want string }

// Error shows both.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s of dataset %s is %s, wanted %s", e.Property, e.Dataset, e.Is, e.Want)
}

func (*MismatchError) Kind() fault.Kind { return fault.Conflict }

// Hint says what can be done instead.
func (*MismatchError) Hint() string {
	return "ask for the local disk as it is, or for another one; to list the local disks, run: sledctl storage local-disk list"
}

// ForeignError is a dataset that nothing shows to be sledctl's own.
type ForeignError struct{ Dataset string }

// Error names it.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("dataset %s is not sledctl's own: it has no record and no mark", e.Dataset)
}

func (*ForeignError) Kind() fault.Kind { return fault.Refused }

// Hint says how it would become sledctl's.
func (*ForeignError) Hint() string {
	return "to record it with its size first, run: sledctl storage local-disk ensure"
}

// BusyError is a local disk that is a disk of an instance.
type BusyError struct {
	ID       uuid.UUID
	Instance string
}

// Error names the instance.
func (e *BusyError) Error() string {
	return fmt.Sprintf("local disk %s is a disk of instance %q", e.ID, e.Instance)
}

func (*BusyError) Kind() fault.Kind { return fault.Refused }

// Hint says what has to go first.
func (e *BusyError) Hint() string { return "run: sledctl instance delete " + e.Instance }

// SizeError is a size that no local disk can have.
type SizeError struct{ Size uint64 }

// Error says which it can.
func (e *SizeError) Error() string {
	return fmt.Sprintf("size %d: want a multiple of %d bytes above 0", e.Size, Block)
}

func (*SizeError) Kind() fault.Kind { return fault.Usage }
