package zfs

import (
	"path"
	"syscall"

	"github.com/sledctl/sledctl/sim/world"
)

// What files hold, and whether there is room for more. Looking through all files
// for every listing would take long, so they are counted where a limit is near:
// below a quota, and in pools that are small or filled on purpose. Elsewhere a
// file system takes what Dataset.Used says, and nobody here writes terabytes.

// smallPool is the size below which the files of a pool are counted.
const smallPool = 64 << 30

// own is what is written to a dataset alone, in bytes.
func (s *Survey) own(d *world.Dataset) uint64 {
	if Kind(d) != TypeFilesystem || !counted(s.tx, d) {
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
		if number(at, "quota") > 0 || at == d && number(at, "refquota") > 0 {
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
	entries, err := tx.Files.ReadDir(dir)
	if err != nil {
		return 0
	}
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
		if quota := number(at, "refquota"); at == d && quota > 0 && sp.referenced+n > quota {
			return syscall.EDQUOT
		}
	}
	return syscall.ENOSPC
}

// MountedReadOnly says that nothing can be written to a mounted file system: its
// property readonly, or that of the pool.
func MountedReadOnly(tx *world.Tx, d *world.Dataset) bool {
	if p := FindPool(tx, PoolName(d.Name)); p != nil && ReadOnly(p) {
		return true
	}
	value, _ := nearest(tx, d, "readonly")
	return value == "on"
}
