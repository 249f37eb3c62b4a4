package storage

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/disk"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/zfs"
)

// UnknownError is a word that no disk answers to.
type UnknownError struct {
	Word  string
	Disks []string // those that there are
}

// Error lists the disks.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("no disk %s: there are %s", e.Word, strings.Join(e.Disks, ", "))
}

func (*UnknownError) Kind() fault.Kind { return fault.NotFound }

// Unwrap says that it was not found.
func (e *UnknownError) Unwrap() error { return host.ErrNotFound }

// NotBlankError is a disk that is not formatted, because it is not proven blank.
type NotBlankError struct {
	Disk string
	Is   string // what is on it
	Err  error  // why that is not known
}

// Error says what is on it.
func (e *NotBlankError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("did not format disk %s: cannot verify that it is blank: %v", e.Disk, e.Err)
	}
	return fmt.Sprintf("disk %s is not formatted: it is not blank but holds %s", e.Disk, e.Is)
}

func (*NotBlankError) Kind() fault.Kind { return fault.Refused }

// Unwrap gives the reason.
func (e *NotBlankError) Unwrap() error { return e.Err }

// Hint says who can make it blank.
func (e *NotBlankError) Hint() string {
	return "keep the disk as it is: sledctl never overwrites data; if you no longer need it, run: zpool labelclear DEVICE"
}

// FormatDisks makes pools on the disks that s.Format names, and their datasets.
// All of them must be blank, or have a pool that a run which died was making
// there, else nothing is done. Errors: *UnknownError,
// *NotBlankError; those of Ensure.
func (s Settings) FormatDisks(ctx context.Context, env operation.Env, dryRun bool) ([]operation.Report, error) {
	seen, err := s.lookAlone(ctx, host.ReadOnly(env.Host))
	if err != nil {
		return nil, err
	}
	unfinished, err := begun(ctx, env)
	if err != nil {
		return nil, err
	}
	kinds := map[disk.Kind]bool{}
	for _, word := range s.Format {
		f, err := seen.disk(word)
		if err != nil {
			return nil, err
		}
		kinds[f.Kind] = true
		switch {
		case f.Pool != nil && unfinished[f.Pool.Name], f.Importable != nil && unfinished[f.Importable.Name]:
		case f.Pool != nil:
			return nil, &NotBlankError{Disk: f.Name, Is: "pool " + f.Pool.Name}
		case f.Importable != nil:
			return nil, &NotBlankError{Disk: f.Name, Is: "pool " + f.Importable.Name + ", which is not imported"}
		case f.Err != nil:
			return nil, &NotBlankError{Disk: f.Name, Err: f.Err}
		case f.Absent:
			return nil, &NotBlankError{Disk: f.Name, Err: fmt.Errorf("%s does not exist", f.Device)}
		case !f.isBlank():
			return nil, &NotBlankError{Disk: f.Name, Is: f.holds()}
		}
	}
	var which []disk.Kind
	for _, k := range everyKind() {
		if kinds[k] {
			which = append(which, k)
		}
	}
	return s.Ensure(ctx, env, which, dryRun)
}

// disk finds a disk by an operator's word. Errors: *UnknownError.
func (seen Seen) disk(word string) (Found, error) {
	var names []string
	for _, f := range seen.Disks {
		if Is(f.Disk, word) {
			return f, nil
		}
		names = append(names, f.Name)
	}
	if len(names) == 0 {
		names = []string{"none"}
	}
	return Found{}, &UnknownError{Word: word, Disks: names}
}

// Forgotten is the record of a disk, and what lay on its pool.
type Forgotten struct {
	Record
	Also []string // names
}

// Forget drops the record of a disk: one that was taken out for good, or whose
// pool was exchanged on purpose. What lay on its pool is forgotten with it, unless the pool answers, or can be
// imported. Errors: *UnknownError.
func (s Settings) Forget(ctx context.Context, env operation.Env, word string, dryRun bool) (Forgotten, error) {
	var found Forgotten
	_, err := operation.Run(ctx, env, operation.Request[func(string) bool]{
		Verb: "storage forget", Subject: subject, DryRun: dryRun, Look: s.gone,
		Decide: func(view ledger.View, gone func(pool string) bool, _ operation.Stamp) (operation.Decision, error) {
			known, err := Records(view)
			if err != nil {
				return operation.Decision{}, err
			}
			unknown := &UnknownError{Word: word}
			for _, r := range known {
				if Is(disk.Disk{Name: r.Name, Kind: r.Kind, Slot: r.Slot, Identity: r.Identity()}, word) {
					facts := []ledger.Fact{{Key: path.Join(naming.KeyDisk, text(r.Identity()))}}
					found = Forgotten{Record: r}
					if s.On != nil && r.Pool != "" && gone(r.Pool) {
						var more []ledger.Fact
						more, found.Also, err = s.On(view, r.Pool)
						facts = append(facts, more...)
					}
					return operation.Decision{OnSuccess: facts}, err
				}
				unknown.Disks = append(unknown.Disks, r.Name)
			}
			slices.SortFunc(unknown.Disks, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) }) // c2t0d0 before c11t0d0
			return operation.Decision{}, unknown
		},
	})
	return found, err
}

// gone looks which pools there are: one is gone that neither answers nor could be imported, as those can
// that bootstrap has not imported since the sled was booted.
func (s Settings) gone(ctx context.Context, h host.Host) (func(pool string) bool, error) {
	inv := inventory.Look(ctx, h, inventory.Want{Parts: []inventory.Part{inventory.Pools}})
	if err := inv.Know(inventory.Pools); err != nil {
		return nil, err
	}
	importable, err := zfs.FindImportable(ctx, h, s.Dir)
	return func(pool string) bool {
		return inv.Unseen(pool) != "" && !slices.ContainsFunc(importable, func(p zfs.Importable) bool { return p.Name == pool })
	}, err
}
