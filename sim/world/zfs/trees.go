package zfs

import (
	"errors"
	"fmt"
	"io/fs"

	"path"
	"slices"
	"strconv"
	"strings"

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
// /.datasets/pending; whoever moves next, or opens the sled, compares the notes
// with the state, and completes or takes back what does not agree with it
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
	// Mounted by whoever made the sled: nothing was covered.
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

// RecoverDatasets makes the directories of file systems agree with the state
// after a process was killed while it moved them. It is for opening a sled, and
// must not follow moves of the same transaction; the first move of every
// transaction does it too.
func RecoverDatasets(tx *world.Tx) error {
	notes, err := host.ReadFile(tx.Files, Pending)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = settleMoves(tx, readNotes(tx, string(notes)))
	}
	if err != nil {
		return fmt.Errorf("recover the contents of file systems: %w", err)
	}
	return tx.Files.Remove(Pending)
}

// move is the last move that was noted of the contents of a dataset.
type move struct {
	id      string
	dir     string         // into or out of this directory
	dataset *world.Dataset // nil: not in the state
	out     bool           // they are aside; else at dir
}

// readNotes gives the last move of each dataset, newest first.
func readNotes(tx *world.Tx, notes string) []*move {
	byID := map[string]*move{}
	lines := strings.SplitAfter(notes, "\n")
	var moves []*move
	for i := len(lines) - 1; i >= 0; i-- {
		line, whole := strings.CutSuffix(lines[i], "\n")
		id, dir, _ := strings.Cut(line, " ")
		if !whole || byID[id] != nil {
			continue // What the kill tore was not begun.
		}
		byID[id] = &move{id: id, dir: dir}
		moves = append(moves, byID[id])
	}
	for _, d := range tx.State.Datasets {
		if m := byID[id(d)]; m != nil {
			m.dataset = d
		}
	}
	return moves
}

// settleMoves takes out all that is not where the state has it, the newest
// first, and then puts in what is to be mounted, parents first.
func settleMoves(tx *world.Tx, moves []*move) error {
	for _, m := range moves {
		if err := finishMove(tx, m); err != nil {
			return err
		}
	}
	for _, m := range moves {
		if err := takeBack(tx, m); err != nil {
			return err
		}
	}
	slices.SortFunc(moves, func(a, b *move) int { return strings.Compare(a.wanted(), b.wanted()) })
	for _, m := range moves {
		if dir := m.wanted(); m.out && dir != "" {
			if err := putBack(tx, m.id, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// wanted is where the state has the contents, "" for aside.
func (m *move) wanted() string {
	if m.dataset == nil {
		return ""
	}
	return m.dataset.Mounted
}

// finishMove settles a move that was half done, so that the contents are at its
// directory or aside, and says which.
func finishMove(tx *world.Tx, m *move) error {
	if tx.Exists(goneOf(m.id)) && m.dataset != nil {
		if err := tx.Files.Rename(goneOf(m.id), treeOf(m.id)); err != nil {
			return err
		}
	}
	m.out = m.dir == "" || tx.Exists(treeOf(m.id)) || tx.Exists(goneOf(m.id))
	if m.dir != "" && m.out && tx.Exists(coveredOf(m.id)) {
		return tx.Files.Rename(coveredOf(m.id), m.dir)
	}
	return nil
}

// takeBack takes contents away from where the state does not have them, and
// removes those of a dataset that is not in it.
func takeBack(tx *world.Tx, m *move) error {
	if !m.out && m.wanted() != m.dir {
		if err := tx.Files.Rename(m.dir, treeOf(m.id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := tx.Files.Rename(coveredOf(m.id), m.dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		m.out = true
	}
	if m.dataset != nil {
		return nil
	}
	if err := world.RemoveTree(tx.Files, goneOf(m.id)); err != nil {
		return err
	}
	return world.RemoveTree(tx.Files, treeOf(m.id))
}

// putBack puts contents where the state has them.
func putBack(tx *world.Tx, id, dir string) error {
	if !tx.Exists(treeOf(id)) {
		return nil
	}
	if err := tx.Files.Rename(dir, coveredOf(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return tx.Files.Rename(treeOf(id), dir)
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
