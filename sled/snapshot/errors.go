package snapshot

import (
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/naming"
)

// NameError is a text that cannot name a snapshot.
type NameError struct{ Name string }

// Error says what can.
func (e *NameError) Error() string {
	return fmt.Sprintf("snapshot %q: want 1 to %d letters, digits, '-', '_' and '.', the first a letter or digit, and no UUID", e.Name, naming.VolumeNameMax)
}

func (*NameError) Kind() fault.Kind { return fault.Usage }

// NotFoundError is a snapshot that the ledger does not know. Near is the name that was probably meant;
// empty: none is near.
type NotFoundError struct{ Instance, Name, Near string }

// Error names it.
func (e *NotFoundError) Error() string {
	return fmt.Sprintf("no snapshot %q of instance %q", e.Name, e.Instance)
}

func (*NotFoundError) Kind() fault.Kind { return fault.NotFound }

// Hint names what was probably meant.
func (e *NotFoundError) Hint() string {
	list := "to list the snapshots, run: sledctl instance snapshot list " + e.Instance
	if e.Near != "" {
		return "did you mean " + e.Near + "? " + list
	}
	return list
}

// DiskError is a disk that a snapshot does not have.
type DiskError struct {
	Ref, Snapshot string
	Disks         int // that it has
}

// Error says which there are.
func (e *DiskError) Error() string {
	return fmt.Sprintf("image %q: want %s:N, with a disk from 0 to %d", e.Ref, e.Snapshot, e.Disks-1)
}

func (*DiskError) Kind() fault.Kind { return fault.Usage }

// ExistsError is a snapshot of the name.
type ExistsError struct{ Record }

// Error says when it was taken.
func (e *ExistsError) Error() string {
	return fmt.Sprintf("snapshot %q of instance %q exists, of %s", e.Name, e.Of, e.Created.Format("2006-01-02 15:04:05 MST"))
}

func (*ExistsError) Kind() fault.Kind { return fault.Conflict }

// Hint says what can be done.
func (e *ExistsError) Hint() string {
	return "choose another name; or remove it: sledctl instance snapshot delete " + e.Of + " " + e.Name +
		"; or, to make a VM of it, run: sledctl instance copy " + e.Of + " NEW --snapshot " + e.Name
}

// DisksError is an instance whose disks are not fit for a snapshot.
type DisksError struct {
	Instance string
	Foreign  []string // none: it has no disk that a guest may write to
}

// Error names them.
func (e *DisksError) Error() string {
	if len(e.Foreign) == 0 {
		return fmt.Sprintf("instance %q has no disk that its guest may write to", e.Instance)
	}
	return fmt.Sprintf("instance %q has disks that sledctl did not create as volumes, and that would not be in the snapshot: %s", e.Instance, strings.Join(e.Foreign, ", "))
}

func (*DisksError) Kind() fault.Kind { return fault.Refused }

// Hint names the command.
func (e *DisksError) Hint() string {
	return "to see its disks, run: sledctl instance get " + e.Instance + " -o json"
}

// RunningError is an instance that must be stopped first.
type RunningError struct{ Instance, Why string }

// Error says why.
func (e *RunningError) Error() string {
	return fmt.Sprintf("instance %q is not stopped, and %s", e.Instance, e.Why)
}

func (*RunningError) Kind() fault.Kind { return fault.Refused }

// Hint names the command.
func (e *RunningError) Hint() string {
	return "to stop it, run: sledctl instance stop " + e.Instance
}

// NeededError is a snapshot that volumes were cloned from.
type NeededError struct {
	Instance, Name string
	By             []string // volumes, by name
}

// Error names them.
func (e *NeededError) Error() string {
	return fmt.Sprintf("snapshot %q of instance %q is needed: volumes were cloned from it: %s", e.Name, e.Instance, strings.Join(e.By, ", "))
}

func (*NeededError) Kind() fault.Kind { return fault.Refused }

// Hint names the command.
func (e *NeededError) Hint() string {
	return "to remove one that nobody needs, run: sledctl volume delete " + e.By[0]
}

// HalfError is an instance some of whose disks were taken back to a snapshot, and some not.
type HalfError struct{ Instance, Name string }

// Error names the snapshot.
func (e *HalfError) Error() string {
	return fmt.Sprintf("instance %q: its rollback to snapshot %q did not end, and its disks are of different moments", e.Instance, e.Name)
}

func (*HalfError) Kind() fault.Kind { return fault.Refused }

// Hint names the command.
func (e *HalfError) Hint() string {
	return "to finish it, run: sledctl instance snapshot rollback " + e.Instance + " " + e.Name
}

// LaterError is a snapshot that is not the latest of its disks: to go back to it would destroy the later.
type LaterError struct {
	Instance, Name string
	Later          []string // by name
}

// Error names them.
func (e *LaterError) Error() string {
	return fmt.Sprintf("snapshot %q of instance %q is not the latest of its disks; later are: %s", e.Name, e.Instance, strings.Join(e.Later, ", "))
}

func (*LaterError) Kind() fault.Kind { return fault.Refused }

// Hint says what can be done.
func (e *LaterError) Hint() string {
	return "remove the later ones first, with: sledctl instance snapshot delete " + e.Instance + " NAME"
}

// unfinished is why nothing begins as a snapshot, or goes back to it.
const unfinished = "its taking, or its deletion, did not end"

// GoneError is a snapshot with a part that is missing.
type GoneError struct{ Instance, Name, What string }

// Error says what.
func (e *GoneError) Error() string {
	return fmt.Sprintf("snapshot %q of instance %q: %s", e.Name, e.Instance, e.What)
}

func (*GoneError) Kind() fault.Kind { return fault.Refused }

// Hint names the command.
func (e *GoneError) Hint() string {
	return "to see what there is of it, run: sledctl instance snapshot list " + e.Instance
}

// PoolError is a pool with volumes that does not answer: what is on it is not known to be gone.
type PoolError struct{ Why string }

// Error says how it is.
func (e *PoolError) Error() string { return e.Why }

func (*PoolError) Kind() fault.Kind { return fault.Refused }

// Hint names the command.
func (*PoolError) Hint() string { return "to see the disks, run: sledctl storage list" }

// TakenError is a ZFS snapshot of the name that another program has taken.
type TakenError struct{ Snapshot string }

// Error names it.
func (e *TakenError) Error() string { return e.Snapshot + " is not sledctl's own" }

func (*TakenError) Kind() fault.Kind { return fault.Conflict }

// Hint says what can be done.
func (*TakenError) Hint() string { return "choose another name" }
