// Package snapshot keeps what the disks of an instance held at one moment, each as a ZFS snapshot
// of its volume. A record in the ledger says which snapshots belong together; one without their
// GUIDs is of an operation that died over taking them.
package snapshot

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/zfs"
)

// Record is what the ledger keeps of a snapshot, under snapshot/<id of the instance>/<name>.
type Record struct {
	Instance string `json:"instance"` // its id
	Of       string `json:"of"`       // the name that it had then
	Name     string `json:"name"`
	Disks    []Disk `json:"disks"`
	// Running says that the guest ran: its disks are as after a power failure.
	Running bool      `json:"running"`
	Created time.Time `json:"created"`
	// Scheduled says that it is one of many, of which some are deleted as time goes by.
	Scheduled bool `json:"scheduled,omitempty"`
	// RollingBack says that its disks are being taken back to it: until that has ended, they are of
	// different moments.
	RollingBack bool `json:"rolling_back,omitempty"`
	// Removing says that its deletion has begun.
	Removing bool `json:"removing,omitempty"`
}

// Disk is a volume in a snapshot.
type Disk struct {
	Volume string `json:"volume"` // its id: it may be renamed
	Size   uint64 `json:"size"`   // bytes
	// GUID is that of the ZFS snapshot; empty until it is taken.
	GUID string `json:"guid,omitempty"`
}

// Subject is the key of a record, and what its making and its deletion lock.
func Subject(instance, name string) string { return naming.KeySnapshot + instance + "/" + name }

func (r Record) key() string { return Subject(r.Instance, r.Name) }

func (r Record) fact() (ledger.Fact, error) {
	value, err := json.Marshal(r)
	return ledger.Fact{Key: r.key(), Value: value}, err
}

// Forget is the fact that takes a snapshot out of the ledger.
func (r Record) Forget() ledger.Fact { return ledger.Fact{Key: r.key()} }

// Without is the fact that makes it a snapshot without some volumes, by their ids, or none if it had
// no others; false: it had none of them.
func (r Record) Without(volumes map[string]bool) (f ledger.Fact, had bool, err error) {
	left := slices.DeleteFunc(slices.Clone(r.Disks), func(d Disk) bool { return volumes[d.Volume] })
	if had = len(left) < len(r.Disks); len(left) == 0 {
		return r.Forget(), had, nil
	}
	r.Disks = left
	f, err = r.fact()
	return f, had, err
}

// Unfinished reports whether its taking has not ended, or its deletion has begun.
func (r Record) Unfinished() bool {
	return r.Removing || slices.ContainsFunc(r.Disks, func(d Disk) bool { return d.GUID == "" })
}

// All reads the records, by instance and then by time.
func All(view ledger.View) ([]Record, error) {
	var all []Record
	for key, value := range view.All(naming.KeySnapshot) {
		var r Record
		if err := json.Unmarshal(value, &r); err != nil {
			return nil, fmt.Errorf("record %s: %w", key, err)
		}
		all = append(all, r)
	}
	slices.SortStableFunc(all, func(a, b Record) int {
		return cmp.Or(strings.Compare(a.Of, b.Of), strings.Compare(a.Instance, b.Instance), a.Created.Compare(b.Created), strings.Compare(a.Name, b.Name))
	})
	return all, nil
}

// Of are the records of one instance, by its name or id. It may be deleted: what its disks held stays.
func Of(view ledger.View, ref string) ([]Record, error) {
	all, err := All(view)
	return slices.DeleteFunc(all, func(r Record) bool { return r.Of != ref && r.Instance != ref }), err
}

// Find is the record of a snapshot of an instance. Errors: *NotFoundError.
func Find(view ledger.View, ref, name string) (Record, error) {
	all, err := Of(view, ref)
	if err != nil {
		return Record{}, err
	}
	names := make([]string, len(all))
	for i, r := range all {
		if names[i] = r.Name; r.Name == name {
			return r, nil
		}
	}
	return Record{}, &NotFoundError{Instance: ref, Name: name, Near: naming.Nearest(name, names)}
}

// Pick finds a disk of a snapshot: INSTANCE@NAME or, where there are several, INSTANCE@NAME:N, from 0.
// Planned is one that a dry run would have taken; zero: none is. Errors: *NotFoundError, *GoneError, *DiskError.
func Pick(view ledger.View, ref string, planned Record) (Record, Disk, error) {
	of, rest, _ := strings.Cut(ref, "@")
	name, number, _ := strings.Cut(rest, ":")
	r := planned
	if planned.Of != of || planned.Name != name {
		var err error
		if r, err = Find(view, of, name); err != nil {
			return r, Disk{}, err
		}
		if r.Unfinished() {
			return r, Disk{}, &GoneError{Instance: of, Name: name, What: unfinished}
		}
	}
	n, err := strconv.Atoi(cmp.Or(number, "0"))
	if err != nil || n < 0 || n >= len(r.Disks) || number == "" && len(r.Disks) > 1 {
		return r, Disk{}, &DiskError{Ref: ref, Snapshot: of + "@" + name, Disks: len(r.Disks)}
	}
	return r, r.Disks[n], nil
}

// Whole refuses an instance whose disks are of different moments. Errors: *HalfError.
func Whole(view ledger.View, instance string) error {
	all, err := Of(view, instance)
	if i := slices.IndexFunc(all, func(r Record) bool { return r.RollingBack }); i >= 0 {
		return &HalfError{Instance: all[i].Of, Name: all[i].Name}
	}
	return err
}

// Instance is what is taken of an instance.
type Instance struct {
	ID, Name string
	Running  bool // its zone is there: a guest may be writing
	Volumes  []Volume
	Foreign  []string // disks that a guest may write to and that sledctl did not create as volumes
}

// Volume is a disk as it is now.
type Volume struct {
	ID, Name, Dataset string
	Size              uint64 // bytes
	Thin              bool   // its pool keeps nothing back for it
}

// Settings are what snapshots take from the packages next to this one.
type Settings struct {
	Instance func(view ledger.View, ref string) (Instance, error)
	// Volume finds a volume by its id; false: the ledger knows none.
	Volume func(view ledger.View, id string) (Volume, bool)
	// Clones names the volumes that begin as a snapshot, INSTANCE@NAME.
	Clones func(view ledger.View, name string) []string
	// Resized is the fact that a volume has another size.
	Resized func(view ledger.View, id string, size uint64) (ledger.Fact, error)
}

// Status is a snapshot and what the host shows of it.
type Status struct {
	Record
	State   State    `json:"state"`
	Reason  string   `json:"reason"`  // why it cannot be seen
	Volumes []string `json:"volumes"` // by name
}

// State is what a snapshot is on the host.
type State string

// The states.
const (
	Ready      State = "ready"
	Unfinished State = "unfinished" // an operation takes or deletes it, or died before it had
	Missing    State = "missing"    // one of its ZFS snapshots is gone, or another one
	Unseen     State = "unknown"    // one of its pools does not answer
)

// status compares a record with what there is of its volumes.
func (s Settings) status(view ledger.View, r Record, tree []zfs.Dataset) Status {
	is := Status{Record: r, State: Ready, Volumes: []string{}}
	for _, d := range r.Disks {
		v, known := s.Volume(view, d.Volume)
		is.Volumes = append(is.Volumes, cmp.Or(v.Name, d.Volume))
		if at, there := find(tree, naming.Snapshot(v.Dataset, r.Name)); !known || !there || at.GUID != d.GUID {
			is.State = Missing
		}
	}
	if r.Unfinished() {
		is.State = Unfinished
	}
	return is
}

// find is the dataset of a name.
func find(tree []zfs.Dataset, name string) (zfs.Dataset, bool) {
	i := slices.IndexFunc(tree, func(d zfs.Dataset) bool { return d.Name == name })
	if i < 0 {
		return zfs.Dataset{}, false
	}
	return tree[i], true
}
