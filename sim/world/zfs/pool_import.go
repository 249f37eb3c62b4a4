package zfs

import (
	"cmp"
	"maps"
	"path"
	"slices"

	"github.com/sledctl/sledctl/sim/world"
)

// Candidate is a pool that can be imported, and the devices it was found on.
type Candidate struct {
	*world.Pool
	Found []string
}

// Importable are the pools that zpool import finds in a directory, by name: those
// that are not imported. The directory of disks is /dev/dsk. A pool whose file lies
// elsewhere than its label says is found where it is (zpool_find_import_impl in
// usr/src/lib/libzutil/common/zutil_import.c). A directory that cannot be read
// is refused.
func Importable(tx *world.Tx, dir string) (pools []Candidate, err error) {
	found, err := labelled(tx, dir)
	for _, name := range slices.Sorted(maps.Keys(found)) {
		p, index := ReadLabel(tx, found[name])
		if p == nil || p.Imported || slices.ContainsFunc(pools, func(c Candidate) bool { return c.Pool == p }) {
			continue
		}
		at := p.Vdevs[index]
		if found[name].Disk == nil {
			at = name
		}
		pools = append(pools, Candidate{p, []string{at}})
	}
	slices.SortFunc(pools, func(a, b Candidate) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.GUID, b.GUID)) })
	return pools, err
}

// labelled are the devices of a directory that may bear a label, by name.
func labelled(tx *world.Tx, dir string) (map[string]Device, error) {
	found := map[string]Device{}
	dir = path.Clean(dir)
	if dir == "/dev/dsk" {
		for _, d := range tx.State.Disks {
			for _, m := range Minors() {
				if name := dir + "/" + d.Name + m.Suffix; m.Number < minorWhole {
					if device, err := OpenDevice(tx, name); err == nil {
						found[name] = device
					}
				}
			}
		}
		return found, nil
	}
	entries, err := tx.Files.ReadDir(dir)
	for _, e := range entries {
		if name := path.Join(dir, e.Name); e.Mode.IsRegular() {
			found[name] = Device{File: name}
		}
	}
	if err != nil {
		err = refuse("cannot open '%s': No such file or directory", dir)
	}
	return found, err
}

// OtherHost says that a pool was last in use on another system, which has not
// let it go: it is imported only if it is forced (zfs_force_import_required in
// usr/src/lib/libzfs/common/libzfs_import.c).
func OtherHost(tx *world.Tx, p *world.Pool) bool {
	return !p.Exported && p.HostID != 0 && p.HostID != HostID(tx)
}
