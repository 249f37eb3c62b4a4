package world

import (
	"path"
	"syscall"
)

// What files hold, and whether there is room for more. Looking through all files
// for every listing would take long, so they are counted where a limit is near:
// below a quota, and in pools that are small or filled on purpose. Elsewhere a
// file system takes what Dataset.Used says, and nobody here writes terabytes.

// smallPool is the size below which the files of a pool are counted.
const smallPool = 64 << 30

// own is what is written to a dataset alone, in bytes.
func (s *Survey) own(d *Dataset) uint64 {
	if d.Kind() != TypeFilesystem || !s.tx.counted(d) {
		return d.Used
	}
	return d.Used + s.tx.fileBytes(d)
}

// counted says whether a limit is near, so that what its files hold is counted.
func (tx *Tx) counted(d *Dataset) bool {
	if p := tx.FindPool(poolName(d.Name)); p != nil && (p.Size < smallPool && p.Name != rootPool || p.Ballast > 0) {
		return true
	}
	for at := d; at != nil; at = tx.State.Datasets[parentName(at.Name)] {
		if at.number("quota") > 0 || at == d && at.number("refquota") > 0 {
			return true
		}
	}
	return false
}

// Scarce says whether what is written to the file system that is mounted on a
// directory may not fit.
func (tx *Tx) Scarce(dir string) bool {
	d := tx.MountedAt(dir)
	return d != nil && tx.counted(d)
}

// fileBytes adds up the files of a file system, without what is mounted in it.
func (tx *Tx) fileBytes(d *Dataset) uint64 {
	top := d.Mounted
	if top == "" {
		top = d.Tree
	}
	if top == "" || top == "/" {
		return 0
	}
	return tx.treeBytes(top)
}

func (tx *Tx) treeBytes(dir string) uint64 {
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
		case e.Mode.IsDir() && tx.MountedAt(name) == nil:
			total += tx.treeBytes(name)
		}
	}
	return total
}

// Room says whether n more bytes can be written to the file system that a path
// lies on: syscall.EDQUOT if a quota forbids it, ENOSPC if the pool, or what is
// reserved for others in it, does (dsl_dir_tempreserve_impl in
// usr/src/uts/common/fs/zfs/dsl_dir.c).
func (tx *Tx) Room(name string, n uint64) error {
	d := tx.DatasetOf(name)
	if d == nil || !tx.counted(d) {
		return nil
	}
	s := tx.Survey()
	if s.bytes(d, "available") >= n {
		return nil
	}
	for at := d; at != nil; at = tx.State.Datasets[parentName(at.Name)] {
		sp := s.space[at.Name]
		if quota := at.number("quota"); quota > 0 && sp.used()+n > quota {
			return syscall.EDQUOT
		}
		if quota := at.number("refquota"); at == d && quota > 0 && sp.referenced+n > quota {
			return syscall.EDQUOT
		}
	}
	return syscall.ENOSPC
}

// MountedReadOnly says that nothing can be written to a mounted file system: its
// property readonly, or that of the pool.
func (tx *Tx) MountedReadOnly(d *Dataset) bool {
	if p := tx.FindPool(poolName(d.Name)); p != nil && p.ReadOnly() {
		return true
	}
	value, _ := tx.nearest(d, "readonly")
	return value == "on"
}
