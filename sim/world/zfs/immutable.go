package zfs

import (
	"path"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// The system attribute immutable, of directories (chmod(1), S+ci): in one that has
// it nothing can be made, removed or renamed, not by root either. It belongs to
// the file system that the directory is in: what is mounted over it has its own.

// memoryDirs are where tmpfs is mounted, which has no such attributes.
func memoryDirs() []string { return []string{"/var/run", "/tmp", "/etc/svc/volatile"} }

// attributesOf is the file system that keeps a directory's attributes, and the
// directory's name from its top. Nil where there are none.
func attributesOf(tx *world.Tx, dir string) (*world.Dataset, string) {
	dir = path.Clean(dir)
	for _, m := range memoryDirs() {
		if world.Below(m, dir) {
			return nil, ""
		}
	}
	d := DatasetOf(tx, dir)
	if d == nil {
		return nil, ""
	}
	name := strings.TrimPrefix(dir, strings.TrimSuffix(d.Mounted, "/"))
	return d, path.Join("/", name)
}

// Immutable says whether a directory is, and whether its file system knows of the
// attribute.
func Immutable(tx *world.Tx, dir string) (is, known bool) {
	d, name := attributesOf(tx, dir)
	return d != nil && slices.Contains(d.Immutable, name), d != nil
}

// SetImmutable sets or clears the attribute. False if the file system has none.
func SetImmutable(tx *world.Tx, dir string, on bool) bool {
	d, name := attributesOf(tx, dir)
	if d == nil {
		return false
	}
	tx.TouchDataset(d.Name)
	d.Immutable = slices.DeleteFunc(d.Immutable, func(n string) bool { return n == name })
	if on {
		d.Immutable = append(d.Immutable, name)
		slices.Sort(d.Immutable)
	}
	return true
}

// fixed says whether a name that does not exist cannot be made, since the nearest
// directory above that is there is immutable.
func fixed(tx *world.Tx, name string) bool {
	for dir := path.Clean(name); ; dir = path.Dir(dir) {
		if tx.Exists(dir) {
			is, _ := Immutable(tx, dir)
			return is && dir != path.Clean(name)
		}
		if dir == "/" {
			return false
		}
	}
}

// removeMountpoint is rmdir(2) of a directory that was made for mounting. It stays
// if something is in it, or it is immutable.
func removeMountpoint(tx *world.Tx, dir string) {
	own, _ := Immutable(tx, dir)
	above, _ := Immutable(tx, path.Dir(path.Clean(dir)))
	if !own && !above {
		_ = tx.Files.Remove(path.Clean(dir))
	}
}
