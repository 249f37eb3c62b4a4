package world

import (
	"path"
	"slices"
	"strings"
)

// The system attribute immutable, of directories (chmod(1), S+ci): in one that has
// it nothing can be made, removed or renamed, not by root either. It belongs to
// the file system that the directory is in: what is mounted over it has its own.

// memoryDirs are where tmpfs is mounted, which has no such attributes.
func memoryDirs() []string { return []string{"/var/run", "/tmp", "/etc/svc/volatile"} }

// attributesOf is the file system that keeps a directory's attributes, and the
// directory's name from its top. Nil where there are none.
func (tx *Tx) attributesOf(dir string) (*Dataset, string) {
	dir = path.Clean(dir)
	for _, m := range memoryDirs() {
		if Below(m, dir) {
			return nil, ""
		}
	}
	d := tx.DatasetOf(dir)
	if d == nil {
		return nil, ""
	}
	name := strings.TrimPrefix(dir, strings.TrimSuffix(d.Mounted, "/"))
	return d, path.Join("/", name)
}

// Immutable says whether a directory is, and whether its file system knows of the
// attribute.
func (tx *Tx) Immutable(dir string) (is, known bool) {
	d, name := tx.attributesOf(dir)
	return d != nil && slices.Contains(d.Immutable, name), d != nil
}

// SetImmutable sets or clears the attribute. False if the file system has none.
func (tx *Tx) SetImmutable(dir string, on bool) bool {
	d, name := tx.attributesOf(dir)
	if d == nil {
		return false
	}
	d.Immutable = slices.DeleteFunc(d.Immutable, func(n string) bool { return n == name })
	if on {
		d.Immutable = append(d.Immutable, name)
		slices.Sort(d.Immutable)
	}
	return true
}

// fixed says whether a name that is not there cannot be made, since the nearest
// directory above that is there is immutable.
func (tx *Tx) fixed(name string) bool {
	for dir := path.Clean(name); ; dir = path.Dir(dir) {
		if tx.exists(dir) {
			is, _ := tx.Immutable(dir)
			return is && dir != path.Clean(name)
		}
		if dir == "/" {
			return false
		}
	}
}

// removeMountpoint is rmdir(2) of a directory that was made for mounting. It stays
// if something is in it, or it is immutable.
func (tx *Tx) removeMountpoint(dir string) {
	own, _ := tx.Immutable(dir)
	above, _ := tx.Immutable(path.Dir(path.Clean(dir)))
	if !own && !above {
		_ = tx.Files.Remove(path.Clean(dir))
	}
}
