package zfs

import (
	"path"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// What is written to a volume is kept as a file system's contents are, in a file of this name; a
// volume that nobody has written to has none, and reads as zeros.
const volumeFile = ".volume"

// VolumeAt is the volume whose device has this name; empty: it is none.
func VolumeAt(name string) string {
	for _, dir := range volumeDirectories {
		if volume, ok := strings.CutPrefix(name, dir+"/"); ok {
			return volume
		}
	}
	return ""
}

// OpenVolume is where the bytes of a volume are kept, and its size. Empty: it has none yet, and
// it was not opened to be written to.
func OpenVolume(tx *world.Tx, name string, write bool) (file string, size int64, err error) {
	d, err := OpenDataset(tx, name, TypeVolume)
	if err != nil {
		return "", 0, err
	}
	size = int64(number(d, "volsize"))
	if d.Tree == "" && !write {
		return "", size, nil
	}
	if err := ensureTree(tx, d); err != nil {
		return "", 0, err
	}
	file = path.Join(d.Tree, volumeFile)
	if !tx.Exists(file) && write {
		err = world.Put(tx.Files, file, nil, 0o600)
	}
	return file, size, err
}
