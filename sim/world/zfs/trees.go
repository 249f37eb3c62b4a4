package zfs

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
)

// Where the contents of file systems lie.
//
// A mounted file system is a real directory at its mountpoint: programs that
// know nothing of this package must find its files there. One that is not
// mounted, and a snapshot, keeps its contents aside in /.datasets/GUID. Mounting
// moves the covered directory to /.datasets/GUID.covered and the contents into
// its place; unmounting moves both back. A file system whose contents nobody has
// seen yet has no directory at all (Dataset.Tree is empty).
//
// A process may be killed between two of these renames, or between the last one
// and the storing of the state. So each move is first noted in
// /.datasets/pending; the next move, or opening the sled, compares the notes
// with the state, and completes or undoes what does not agree with it
// (RecoverDatasets). A destroyed tree is moved to GUID.gone, and removed
// when a later transaction sees that its dataset is not in the state.

const (
	Aside   = "/.datasets"
	Pending = Aside + "/pending"
)

func id(d *world.Dataset) string { return strconv.FormatUint(d.GUID, 16) }

// treeOf is where the contents of the dataset with this id lie aside.
func treeOf(id string) string    { return Aside + "/" + id }
func coveredOf(id string) string { return Aside + "/" + id + ".covered" }
func goneOf(id string) string    { return Aside + "/" + id + ".gone" }

// ensureTree makes the directory for the contents of a dataset that has none.
// One that is there was left by a transaction that was never stored.
func ensureTree(tx *world.Tx, d *world.Dataset) error {
	if d.Tree != "" {
		return nil
	}
	if err := beginMoves(tx); err != nil {
		return err
	}
	tree := treeOf(id(d))
	if err := world.RemoveTree(tx.Files, tree); err != nil {
		return err
	}
	if err := tx.Files.Mkdir(tree, 0o755); err != nil {
		return err
	}
	d.Tree = tree
	return nil
}

// beginMoves settles what earlier transactions noted, once: the notes of this
// one must outlive it.
func beginMoves(tx *world.Tx) error {
	if tx.Moving {
		return nil
	}
	tx.Moving = true
	if err := RecoverDatasets(tx); err != nil {
		return err
	}
	return host.MkdirAll(tx.Files, Aside, 0o700)
}

// note writes down a move that is about to be made.
func note(tx *world.Tx, d *world.Dataset, dir string) error {
	if err := beginMoves(tx); err != nil {
		return err
	}
	line := []byte(id(d) + " " + dir + "\n")
	err := tx.Files.Append(Pending, line)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return world.Put(tx.Files, Pending, line, 0o600)
}

// moveIn puts the contents of a dataset in the place of a directory.
func moveIn(tx *world.Tx, d *world.Dataset, dir string) error {
	if err := ensureTree(tx, d); err != nil {
		return err
	}
	if err := note(tx, d, dir); err != nil {
		return err
	}
	if err := tx.Files.Rename(dir, coveredOf(id(d))); err != nil {
		return err
	}
	return tx.Files.Rename(d.Tree, dir)
}

// moveOut takes the contents of a dataset away from the directory where it is
// mounted, and uncovers what was there.
func moveOut(tx *world.Tx, d *world.Dataset, dir string) error {
	if err := note(tx, d, dir); err != nil {
		return err
	}
	d.Tree = treeOf(id(d))
	if err := world.RemoveTree(tx.Files, d.Tree); err != nil {
		return err
	}
	if err := tx.Files.Rename(dir, d.Tree); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := tx.Files.Rename(coveredOf(id(d)), dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// Mounted when the sled was made: nothing was covered.
	return host.MkdirAll(tx.Files, dir, 0o755)
}

// discard moves the contents of a dataset that is destroyed out of the way.
func discard(tx *world.Tx, d *world.Dataset) error {
	if d.Tree == "" {
		return nil
	}
	if err := note(tx, d, ""); err != nil {
		return err
	}
	if err := tx.Files.Rename(d.Tree, goneOf(id(d))); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// copyContents gives a new dataset the contents of another, which may be
// mounted. What is mounted below it does not belong to it.
func copyContents(tx *world.Tx, from, to *world.Dataset) error {
	source := from.Tree
	if from.Mounted != "" {
		source = from.Mounted
	}
	if source == "" || source == "/" {
		// Guess: nobody looks into a snapshot of the boot environment.
		return nil
	}
	if entries, err := tx.Files.ReadDir(source); err != nil || len(entries) == 0 {
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	if err := ensureTree(tx, to); err != nil {
		return err
	}
	to.Immutable = slices.Clone(from.Immutable)
	return copyTo(tx, from, to.Tree)
}

// copyTree copies what is in a directory to another that is there. A directory
// that something is mounted on is copied as it is below the mount.
func copyTree(files host.Files, from, to string, covered map[string]string) error {
	if under, ok := covered[from]; ok {
		from = under
	}
	info, err := files.Stat(from)
	if err != nil {
		return err
	}
	if err := files.Chmod(to, info.Mode); err != nil {
		return err
	}
	entries, err := files.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		source, target := path.Join(from, e.Name), path.Join(to, e.Name)
		switch {
		case e.Mode.IsDir():
			if err = files.Mkdir(target, 0o700); err == nil {
				err = copyTree(files, source, target, covered)
			}
		case e.Mode.IsRegular():
			err = copyFile(files, source, target, e.Mode)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func copyFile(files host.Files, from, to string, mode fs.FileMode) error {
	data, err := host.ReadFile(files, from)
	if err != nil {
		return err
	}
	return world.Put(files, to, data, mode)
}

// empty says whether the dataset has no contents that anybody has seen.
func empty(d *world.Dataset) bool {
	return Kind(d) == TypeVolume || d.Mounted == "" && d.Tree == "" || d.Mounted == "/"
}

// copyTo copies the contents of a dataset, mounted or not, to a new directory.
func copyTo(tx *world.Tx, d *world.Dataset, dir string) error {
	if err := host.MkdirAll(tx.Files, dir, 0o755); err != nil {
		return err
	}
	source := d.Tree
	covered := map[string]string{}
	if d.Mounted != "" {
		source = d.Mounted
		for _, o := range mountsBelow(tx, source) {
			covered[o.Mounted] = coveredOf(id(o))
		}
	}
	return copyTree(tx.Files, source, dir, covered)
}
