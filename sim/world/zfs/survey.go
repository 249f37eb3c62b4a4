package zfs

import (
	"path"
	"slices"
	"strconv"
	"syscall"

	"github.com/sledctl/sledctl/sim/world"
)

// Survey is the datasets as a transaction sees them at one moment, with what
// takes a look at all of them: order, clones, space. It is made once for a
// command that shows many, and is worth nothing after a change.
type Survey struct {
	tx *world.Tx

	sorted []*world.Dataset
	space  map[string]*space
	pools  map[string]uint64 // what each pool has to give, in bytes

	near       map[string]bool   // the file systems that counted was asked about, and the answer
	allocation map[string]uint64 // what each pool's datasets have written, in bytes
}

// NewSurvey looks at all datasets of imported pools.
func NewSurvey(tx *world.Tx) *Survey { return &Survey{tx: tx} }

// All are the datasets in the order of zfs list.
func (s *Survey) All() []*world.Dataset {
	if s.sorted == nil {
		s.sorted = SelectDatasets(s.tx, func(*world.Dataset) bool { return true })
	}
	return s.sorted
}

// Below are d itself and all below it, snapshots too, in the order of zfs list.
func (s *Survey) Below(d *world.Dataset) []*world.Dataset {
	own, below := s.tx.DatasetsOf(d.Name)
	return append(chosen(own, func(o *world.Dataset) bool { return o == d || isBelow(o.Name, d.Name) }),
		chosen(below, func(*world.Dataset) bool { return true })...)
}

// space is what a file system or volume takes and may take, in bytes. What
// files hold is counted where a limit is near, see own.
type space struct {
	own         uint64 // written to it alone
	referenced  uint64 // what it shows, shared with its origin or not
	children    uint64 // used by what is below, or reserved for it
	reservation uint64 // of refreservation, beyond what is there
	free        uint64 // what it and those below it may still take
}

// used is what it takes with all below it.
func (sp *space) used() uint64 { return sp.own + sp.children + sp.reservation }

// Bytes is one of the sizes of a dataset.
func (s *Survey) Bytes(d *world.Dataset, property string) uint64 {
	if s.space == nil {
		s.account()
	}
	sp := s.space[d.Name]
	switch property {
	case "used":
		return sp.used()
	case "available":
		return sp.free + sp.reservation
	}
	return sp.referenced
}

// account adds up the sizes, from the leaves to the pools, and then shares out
// what is left, from the pools to the leaves.
func (s *Survey) account() {
	s.space = make(map[string]*space, len(s.tx.State.Datasets))
	all := s.All()
	for _, d := range all {
		own := s.own(d)
		s.space[d.Name] = &space{own: own, referenced: referenced(s.tx, d) + own - d.Used}
	}
	for _, d := range slices.Backward(all) {
		sp := s.space[d.Name]
		if want := number(d, "refreservation"); want > sp.referenced {
			sp.reservation = want - sp.referenced
		}
		if above := s.space[parentName(d.Name)]; above != nil {
			above.children += sp.used()
		}
	}
	s.pools = map[string]uint64{}
	for _, d := range all {
		s.space[d.Name].free = s.share(d)
	}
}

// share is what a dataset may still take. What is above it has been shared out.
func (s *Survey) share(d *world.Dataset) uint64 {
	if Kind(d) == TypeSnapshot {
		return 0
	}
	sp := s.space[d.Name]
	used := sp.used()
	above := s.space[parentName(d.Name)]
	var left uint64
	if above == nil {
		s.pools[d.Name] = Capacity(s.tx, d.Name)
		left = minus(s.pools[d.Name], used)
	} else {
		left = above.free
	}
	if quota := number(d, "quota"); quota > 0 {
		left = min(left, minus(quota, used))
	}
	return left
}

// referenced is what a dataset shows: its own and what it shares with its
// origin. A snapshot shows what its file system does.
//
// Guess: real snapshots keep the size of their day; nothing here grows.
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

// own is what is written to a dataset alone, in bytes.
func (s *Survey) own(d *world.Dataset) uint64 {
	if Kind(d) != TypeFilesystem || !s.counted(d) {
		return d.Used
	}
	return d.Used + fileBytes(s.tx, d)
}

// counted is the function of this name, which for what lies below one dataset is asked
// above it once.
func (s *Survey) counted(d *world.Dataset) bool {
	is, known := s.near[parentName(d.Name)]
	if !known {
		is = counted(s.tx, d)
	}
	is = is || number(d, "quota") > 0
	if s.near == nil {
		s.near = map[string]bool{}
	}
	s.near[d.Name] = is
	return is
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
		sp := s.space[at.Name]
		if quota := number(at, "quota"); quota > 0 && sp.used()+n > quota {
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
