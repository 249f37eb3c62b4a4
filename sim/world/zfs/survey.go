package zfs

import (
	"iter"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/sledctl/sledctl/sim/world"
)

// Survey is the datasets as a transaction sees them at one moment, with what takes a
// look at many of them: order, space. It is made once for a command that shows many, and
// is worth nothing after a change.
type Survey struct {
	tx *world.Tx

	sorted []*world.Dataset
	taken  map[*world.Dataset]uint64 // what used has added up

	allocation map[*world.Pool]uint64 // and allocated
}

// NewSurvey looks at the datasets of imported pools.
func NewSurvey(tx *world.Tx) *Survey {
	return &Survey{tx: tx, taken: map[*world.Dataset]uint64{}, allocation: map[*world.Pool]uint64{}}
}

// All are the datasets in the order of zfs list.
func (s *Survey) All() []*world.Dataset {
	if s.sorted == nil {
		s.sorted = SelectDatasets(s.tx, func(*world.Dataset) bool { return true })
	}
	return s.sorted
}

// Below are d itself and all below it, snapshots too, in the order of zfs list.
func (s *Survey) Below(d *world.Dataset) []*world.Dataset {
	if Kind(d) == TypeSnapshot {
		return []*world.Dataset{d}
	}
	own, below := s.tx.DatasetsOf(d.Name)
	return slices.Concat(own, below)
}

// Bytes is one of the sizes of a dataset.
func (s *Survey) Bytes(d *world.Dataset, property string) uint64 {
	switch property {
	case "used":
		return s.used(d)
	case "available":
		return s.free(d) + s.reservation(d, s.own(d, counted(s.tx, d)))
	}
	return referenced(s.tx, d) + s.own(d, counted(s.tx, d)) - d.Used
}

// used is what a dataset takes with all below it: what is written, and what is reserved
// beyond that.
func (s *Survey) used(d *world.Dataset) uint64 {
	total, known := s.taken[d]
	if !known {
		for o, own := range s.written(d) {
			total += own + s.reservation(o, own)
			if o != d {
				total += s.reserved(o)
			}
		}
		s.taken[d] = total
	}
	return total
}

// reserved is what reservation keeps for a dataset with all below it, beyond what they use: what
// is above it counts that as used, and the dataset itself does not (parent_delta of
// usr/src/uts/common/fs/zfs/dsl_dir.c).
func (s *Survey) reserved(d *world.Dataset) uint64 {
	wanted := number(d, "reservation")
	if wanted == 0 {
		return 0
	}
	return minus(wanted, s.used(d))
}

// written gives d and all below it, with what is written to each alone.
func (s *Survey) written(d *world.Dataset) iter.Seq2[*world.Dataset, uint64] {
	return func(yield func(*world.Dataset, uint64) bool) {
		near := counted(s.tx, d)
		var limited []string // those below it that have a quota: an ancestor stands before what is below it
		for _, o := range s.Below(d) {
			if number(o, "quota") > 0 {
				limited = append(limited, o.Name)
			}
			is := near || slices.ContainsFunc(limited, func(name string) bool { return o.Name == name || isBelow(o.Name, name) })
			if !yield(o, s.own(o, is)) {
				return
			}
		}
	}
}

// reservation is what refreservation keeps for a dataset beyond what is its own: what a clone shares
// with its origin does not count (dsl_dataset_set_refreservation_sync of
// usr/src/uts/common/fs/zfs/dsl_dataset.c).
func (s *Survey) reservation(d *world.Dataset, own uint64) uint64 {
	return minus(number(d, "refreservation"), own)
}

// free is what a dataset and those below it may still take: what is above it has, as far
// as its quota allows.
func (s *Survey) free(d *world.Dataset) uint64 {
	if Kind(d) == TypeSnapshot {
		return 0
	}
	var left uint64
	if above := s.tx.State.Datasets[parentName(d.Name)]; above != nil {
		left = s.free(above)
	} else {
		left = minus(Capacity(s.tx, d.Name), s.used(d))
	}
	if strings.Contains(d.Name, "/") {
		left += s.reserved(d)
	}
	if quota := number(d, "quota"); quota > 0 {
		left = min(left, minus(quota, s.used(d)))
	}
	return left
}

// referenced is what a dataset shows: its own and what it shares with its
// origin. A snapshot shows what its file system does.
//
// Guess snapshots-refer-to-now: a snapshot refers to what its file system does now; real ones keep
// the size of their day, and nothing here grows.
// Check: `zfs list -p`
func referenced(tx *world.Tx, d *world.Dataset) uint64 {
	total := d.Used
	for hops := 0; d.Origin != "" && hops < maxDatasetDepth; hops++ {
		origin := tx.State.Datasets[parentName(d.Origin)]
		total += origin.Used
		d = origin
	}
	if Kind(d) == TypeSnapshot {
		if head := tx.State.Datasets[parentName(d.Name)]; head != nil {
			return total + referenced(tx, head)
		}
	}
	return total
}

// Capacity is what the datasets of a pool can take together: its size without
// the slop that the kernel keeps back (spa_get_slop_space in spa_misc.c).
func Capacity(tx *world.Tx, pool string) uint64 {
	p := FindPool(tx, pool)
	slop := max(p.Size>>5, min(p.Size/2, 128<<20))
	return minus(p.Size-slop, p.Ballast)
}

// number is a local size; 0 if it is not set.
func number(d *world.Dataset, property string) uint64 {
	if d.Local == nil {
		return 0
	}
	n, _ := strconv.ParseUint(d.Local[property], 10, 64)
	return n
}

func minus(a, b uint64) uint64 { return max(a, b) - b }

// What files hold, and whether there is room for more. Looking through all files
// for every listing would take long, so they are counted where a limit is near:
// below a quota, and in pools that are small or filled on purpose. Elsewhere a
// file system takes what Dataset.Used says, and nobody here writes terabytes.

// smallPool is the size below which the files of a pool are counted.
const smallPool = 64 << 30

// own is what is written to a dataset alone, in bytes, its files if they are counted.
func (s *Survey) own(d *world.Dataset, counted bool) uint64 {
	if Kind(d) != TypeFilesystem || !counted {
		return d.Used
	}
	return d.Used + fileBytes(s.tx, d)
}

// counted says whether a limit is near, so that what its files hold is counted.
func counted(tx *world.Tx, d *world.Dataset) bool {
	if p := FindPool(tx, PoolName(d.Name)); p != nil && (p.Size < smallPool && p.Name != RootPool || p.Ballast > 0) {
		return true
	}
	for at := d; at != nil; at = tx.State.Datasets[parentName(at.Name)] {
		if number(at, "quota") > 0 {
			return true
		}
	}
	return false
}

// Scarce says whether what is written to the file system that is mounted on a
// directory may not fit.
func Scarce(tx *world.Tx, dir string) bool {
	d := MountedAt(tx, dir)
	return d != nil && counted(tx, d)
}

// fileBytes adds up the files of a file system, without what is mounted in it.
func fileBytes(tx *world.Tx, d *world.Dataset) uint64 {
	top := d.Mounted
	if top == "" {
		top = d.Tree
	}
	if top == "" || top == "/" {
		return 0
	}
	return treeBytes(tx, top)
}

func treeBytes(tx *world.Tx, dir string) uint64 {
	entries, _ := tx.Files.ReadDir(dir)
	var total uint64
	for _, e := range entries {
		name := path.Join(dir, e.Name)
		switch {
		case e.Mode.IsRegular():
			total += uint64(e.Size)
		case e.Mode.IsDir() && MountedAt(tx, name) == nil:
			total += treeBytes(tx, name)
		}
	}
	return total
}

// Room says whether n more bytes can be written to the file system that a path
// lies on: syscall.EDQUOT if a quota forbids it, ENOSPC if the pool, or what is
// reserved for others in it, does (dsl_dir_tempreserve_impl in
// usr/src/uts/common/fs/zfs/dsl_dir.c).
func Room(tx *world.Tx, name string, n uint64) error {
	d := DatasetOf(tx, name)
	if d == nil || !counted(tx, d) {
		return nil
	}
	s := NewSurvey(tx)
	if s.Bytes(d, "available") >= n {
		return nil
	}
	for at := d; at != nil; at = tx.State.Datasets[parentName(at.Name)] {
		if quota := number(at, "quota"); quota > 0 && s.used(at)+n > quota {
			return syscall.EDQUOT
		}
	}
	return syscall.ENOSPC
}

// MountedReadOnly says that nothing can be written to a mounted file system: its
// property readonly.
func MountedReadOnly(tx *world.Tx, d *world.Dataset) bool {
	value, _ := nearest(tx, d, "readonly")
	return value == "on"
}
