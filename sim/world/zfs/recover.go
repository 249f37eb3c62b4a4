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
		if guid, err := strconv.ParseUint(id, 16, 64); err == nil {
			byID[id].dataset = tx.WithGUID(guid)
		}
		moves = append(moves, byID[id])
	}
	return moves
}

// settleMoves takes out all that is not where the state has it, the newest
// first, and then puts in what is to be mounted, parents first.
func settleMoves(tx *world.Tx, moves []*move) error {
	var steps []func() error
	for _, m := range moves {
		steps = append(steps, func() error { return finishMove(tx, m) })
	}
	for _, m := range moves {
		steps = append(steps, func() error { return takeBack(tx, m) })
	}
	for _, m := range slices.SortedFunc(slices.Values(moves), func(a, b *move) int { return strings.Compare(a.wanted(), b.wanted()) }) {
		steps = append(steps, func() error { return putBack(tx, m) })
	}
	return inTurn(steps...)
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
func finishMove(tx *world.Tx, m *move) (err error) {
	if tx.Exists(goneOf(m.id)) && m.dataset != nil {
		err = tx.Files.Rename(goneOf(m.id), treeOf(m.id))
	}
	m.out = m.dir == "" || tx.Exists(treeOf(m.id)) || tx.Exists(goneOf(m.id))
	if err == nil && m.dir != "" && m.out && tx.Exists(coveredOf(m.id)) {
		err = tx.Files.Rename(coveredOf(m.id), m.dir)
	}
	return err
}

// takeBack removes contents from where the state does not have them, and
// removes those of a dataset that is not in it.
func takeBack(tx *world.Tx, m *move) error {
	var steps []func() error
	if !m.out && m.wanted() != m.dir {
		m.out = true
		steps = append(steps, func() error { return unless(tx.Files.Rename(m.dir, treeOf(m.id)), fs.ErrNotExist) },
			func() error { return unless(tx.Files.Rename(coveredOf(m.id), m.dir), fs.ErrNotExist) })
	}
	if m.dataset == nil {
		steps = append(steps, func() error { return throwAway(tx, goneOf(m.id)) }, func() error { return throwAway(tx, treeOf(m.id)) })
	}
	return inTurn(steps...)
}

// throwAway has a tree removed when others may have the sled again: the disk below may
// take long for it.
func throwAway(tx *world.Tx, tree string) error {
	name := Trash + "/" + path.Base(tree)
	err := tx.Files.Rename(tree, name)
	if errors.Is(err, fs.ErrNotExist) && tx.Exists(tree) {
		err = inTurn(func() error { return host.MkdirAll(tx.Files, Trash, 0o700) }, func() error { return tx.Files.Rename(tree, name) })
	}
	if err == nil {
		tx.Discard(name) // what is left of it, EmptyTrash removes
	}
	return unless(err, fs.ErrNotExist)
}

// EmptyTrash removes what processes that were killed have thrown away, and not yet
// removed. One that is at it does not mind.
func EmptyTrash(files host.Files) error {
	left, err := files.ReadDir(Trash)
	for _, tree := range left {
		err = errors.Join(err, world.RemoveTree(files, path.Join(Trash, tree.Name)))
	}
	return unless(err, fs.ErrNotExist)
}

// putBack puts contents where the state has them.
func putBack(tx *world.Tx, m *move) error {
	dir := m.wanted()
	if !m.out || dir == "" || !tx.Exists(treeOf(m.id)) {
		return nil
	}
	return inTurn(func() error { return unless(tx.Files.Rename(dir, coveredOf(m.id)), fs.ErrNotExist) },
		func() error { return tx.Files.Rename(treeOf(m.id), dir) })
}
