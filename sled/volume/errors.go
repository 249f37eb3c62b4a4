package volume

import (
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/naming"
)

// NotFoundError is a volume that the ledger does not know. Near is the name that was probably
// meant; empty: none is near.
type NotFoundError struct{ Name, Near string }

// Error names it.
func (e *NotFoundError) Error() string { return fmt.Sprintf("no volume %q", e.Name) }

func (*NotFoundError) Kind() fault.Kind { return fault.NotFound }

// Hint names what was probably meant.
func (e *NotFoundError) Hint() string {
	if e.Near != "" {
		return "did you mean " + e.Near + "? to list the volumes, run: sledctl volume list"
	}
	return "to list the volumes, run: sledctl volume list"
}

// UnfinishedError is a volume that is not made yet.
type UnfinishedError struct{ Name string }

// Error names it.
func (e *UnfinishedError) Error() string { return fmt.Sprintf("volume %q is not made yet", e.Name) }

func (*UnfinishedError) Kind() fault.Kind { return fault.Refused }

// Hint says how to make it.
func (e *UnfinishedError) Hint() string {
	return "to finish it, run the sledctl volume create again that began it; to remove it, run: sledctl reap"
}

// ArrivingError is a volume that moves here with an instance, which has not arrived.
type ArrivingError struct{ Name, Instance string }

// Error names the instance.
func (e *ArrivingError) Error() string {
	return fmt.Sprintf("volume %q moves here with instance %s, which has not arrived", e.Name, e.Instance)
}

func (*ArrivingError) Kind() fault.Kind { return fault.Refused }

// Hint says what ends that.
func (e *ArrivingError) Hint() string {
	return "to finish the move, run on the sled that it comes from: sledctl instance migrate " + e.Instance + "; to drop what has arrived, run: sledctl volume delete " + e.Name
}

// ForeignError is a volume that has the name of one that moves here, and is not a copy of that.
type ForeignError struct{ Name string }

// Error names it.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("volume %q exists, and is no copy of the disk that moves here", e.Name)
}

func (*ForeignError) Kind() fault.Kind { return fault.Conflict }

// Hint says what makes room for it.
func (e *ForeignError) Hint() string {
	return "to give it another name, run: sledctl volume rename " + e.Name + " NEW"
}

// InputError is a value that a volume cannot have.
type InputError struct{ Field, Value, Want string }

// Error says what would be right.
func (e *InputError) Error() string { return fmt.Sprintf("%s %q: want %s", e.Field, e.Value, e.Want) }

func (*InputError) Kind() fault.Kind { return fault.Usage }

// ConflictError is a volume that is not what was asked for; without a field, one that has the name
// already that a volume is to get.
type ConflictError struct{ Name, Field, Is, Want string }

// Error shows both values.
func (e *ConflictError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("volume %q exists", e.Name)
	}
	return fmt.Sprintf("volume %q exists, and its %s is %s, not %s", e.Name, e.Field, e.Is, e.Want)
}

func (*ConflictError) Kind() fault.Kind { return fault.Conflict }

// Hint says how to see it.
func (e *ConflictError) Hint() string {
	if e.Field == "" {
		return "choose another name; to see it, run: sledctl volume get " + e.Name
	}
	return "choose another name; or give it to a VM as it is, with --disk " + e.Name + "; to see it, run: sledctl volume get " + e.Name
}

// TakenError is a dataset that has the name of a volume's, and is not that volume.
type TakenError struct {
	Dataset string
	// Marked says that it carries the mark of a volume: a ledger that was lost knew it.
	Marked bool
}

// Error names it.
func (e *TakenError) Error() string {
	if e.Marked {
		return "dataset " + e.Dataset + " is marked as another volume, which the ledger does not know"
	}
	return "dataset " + e.Dataset + " is not sledctl's own"
}

func (*TakenError) Kind() fault.Kind { return fault.Conflict }

// Hint says what can be done.
func (e *TakenError) Hint() string {
	if e.Marked {
		return "to record it, run: sledctl volume adopt"
	}
	return "choose another name; to see the dataset, run: zfs list " + e.Dataset
}

// AttachedError is a volume that instances have as a disk.
type AttachedError struct {
	Name      string
	Instances []string
}

// Error names them.
func (e *AttachedError) Error() string {
	word := "instance "
	if len(e.Instances) > 1 {
		word = "instances "
	}
	return fmt.Sprintf("volume %q is a disk of %s%s", e.Name, word, strings.Join(e.Instances, ", "))
}

func (*AttachedError) Kind() fault.Kind { return fault.Refused }

// Hint says what to do first.
func (e *AttachedError) Hint() string {
	return "to take it from the instance first, run: sledctl volume detach " + e.Name + " " + e.Instances[0]
}

// ProtectedError is a volume that must not be removed.
type ProtectedError struct{ Name string }

// Error names it.
func (e *ProtectedError) Error() string { return fmt.Sprintf("volume %q is protected", e.Name) }

func (*ProtectedError) Kind() fault.Kind { return fault.Refused }

// Hint says how to remove it all the same.
func (e *ProtectedError) Hint() string {
	return "to delete it all the same, add --yes; to remove the protection, run: sledctl volume set " + e.Name + " --no-protect"
}

// FullError is a volume that is not removed because it has snapshots.
type FullError struct {
	Name   string
	Inside []string
}

// Error names the first.
func (e *FullError) Error() string {
	if more := len(e.Inside) - 1; more > 0 {
		return fmt.Sprintf("volume %q has the snapshot %s and %d more", e.Name, e.Inside[0], more)
	}
	return fmt.Sprintf("volume %q has the snapshot %s", e.Name, e.Inside[0])
}

func (*FullError) Kind() fault.Kind { return fault.Refused }

// Hint says how to remove them.
func (e *FullError) Hint() string {
	if _, short, _ := strings.Cut(e.Inside[0], "@"); strings.HasPrefix(short, naming.SnapshotPrefix) {
		return "to see whose snapshot it is, run: sledctl instance snapshot list"
	}
	return "to remove a snapshot that nobody needs, run: zfs destroy " + e.Inside[0]
}

// UnseenError is a volume whose pool does not answer, or has no key: it can neither be seen nor
// changed, and is not gone.
type UnseenError struct{ What, Why string }

// Error says how the pool is.
func (e *UnseenError) Error() string { return e.What + ": " + e.Why }

func (*UnseenError) Kind() fault.Kind { return fault.Refused }

// Hint says where to look.
func (*UnseenError) Hint() string {
	return "to see the pool and its disk, run: sledctl storage list; when it answers, run: sledctl bootstrap"
}

// PoolError is a pool that cannot hold volumes.
type PoolError struct {
	Pool, Why string
	Pools     []string // that can
	Forgets   bool     // what lies on it is gone after a reboot
}

// Error says why.
func (e *PoolError) Error() string {
	switch {
	case len(e.Pools) == 0 && e.Pool == "":
		return e.Why
	case len(e.Pools) == 0:
		return fmt.Sprintf("pool %s %s; no other pool of this sled can hold volumes", e.Pool, e.Why)
	}
	return fmt.Sprintf("pool %s %s; pools for volumes: %s", e.Pool, e.Why, strings.Join(e.Pools, ", "))
}

func (*PoolError) Kind() fault.Kind { return fault.Refused }

// Hint says how pools become ready, or what does without.
func (e *PoolError) Hint() string {
	switch {
	case len(e.Pools) > 0:
		return "choose one of them with --pool"
	case e.Forgets:
		return "put a U.2 disk into the sled; or give the VM a volume or a file that lies elsewhere, with --disk PATH"
	}
	return "to prepare the pools of the sled, run: sledctl bootstrap"
}
