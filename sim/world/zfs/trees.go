package zfs

import (
	"errors"
	"io/fs"
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
// mounted, and a snapshot, keeps its contents aside in /.datasets/GUID; contents.go
// copies them. Mounting moves the covered directory to /.datasets/GUID.covered and
// the contents into its place; unmounting moves both back. A file system whose
// contents nobody has seen yet has no directory at all (Dataset.Tree is empty).
//
// A process may be killed between two of these renames, or between the last one
// and the storing of the state. So each move is first noted in
// /.datasets/pending; the next move, or opening the sled, compares the notes
// with the state, and completes or undoes what does not agree with it
// (RecoverDatasets). A destroyed tree is moved to GUID.gone, and to the trash
// when a later transaction sees that its dataset is not in the state.

const (
	Aside   = "/.datasets"
	Pending = Aside + "/pending"
	Trash   = Aside + "/trash"
)

func id(d *world.Dataset) string { return strconv.FormatUint(d.GUID, 16) }

// treeOf is where the contents of the dataset with this id lie aside.
func treeOf(id string) string    { return Aside + "/" + id }
func coveredOf(id string) string { return Aside + "/" + id + ".covered" }
func goneOf(id string) string    { return Aside + "/" + id + ".gone" }

// inTurn takes steps until one fails.
func inTurn(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// unless is an error that is not this one.
func unless(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}

// ensureTree makes the directory for the contents of a dataset that has none.
// One that is there was left by a transaction that was never stored.
func ensureTree(tx *world.Tx, d *world.Dataset) error {
	if d.Tree != "" {
		return nil
	}
	tx.TouchDataset(d.Name)
	d.Tree = treeOf(id(d))
	return inTurn(
		func() error { return beginMoves(tx) },
		func() error { return world.RemoveTree(tx.Files, d.Tree) },
		func() error { return tx.Files.Mkdir(d.Tree, 0o755) },
	)
}

// beginMoves settles what earlier transactions noted, once: the notes of this
// one must outlive it.
func beginMoves(tx *world.Tx) error {
	if tx.Moving {
		return nil
	}
	tx.Moving = true
	return inTurn(func() error { return RecoverDatasets(tx) }, func() error { return host.MkdirAll(tx.Files, Aside, 0o700) })
}

// note writes down a move that is about to be made.
func note(tx *world.Tx, d *world.Dataset, dir string) error {
	line := []byte(id(d) + " " + dir + "\n")
	return inTurn(func() error { return beginMoves(tx) }, func() error {
		err := tx.Files.Append(Pending, line)
		if errors.Is(err, fs.ErrNotExist) {
			err = world.Put(tx.Files, Pending, line, 0o600)
		}
		return err
	})
}

// moveIn mounts a dataset: its contents come in the place of a directory.
func moveIn(tx *world.Tx, d *world.Dataset, dir string) error {
	tx.TouchDataset(d.Name)
	return inTurn(
		func() error { return ensureTree(tx, d) },
		func() error { return note(tx, d, dir) },
		func() error { return tx.Files.Rename(dir, coveredOf(id(d))) },
		func() error { d.Mounted = dir; return tx.Files.Rename(d.Tree, dir) },
	)
}

// moveOut unmounts a dataset: its contents go away from the directory where it is
// mounted, and what was there is uncovered. Mounted when the sled was made, it has
// covered nothing.
func moveOut(tx *world.Tx, d *world.Dataset) error {
	tx.TouchDataset(d.Name)
	dir, tree := d.Mounted, treeOf(id(d))
	return inTurn(
		func() error { return note(tx, d, dir) },
		func() error { return world.RemoveTree(tx.Files, tree) },
		func() error { d.Mounted, d.Tree = "", tree; return unless(tx.Files.Rename(dir, tree), fs.ErrNotExist) },
		func() error { return unless(tx.Files.Rename(coveredOf(id(d)), dir), fs.ErrNotExist) },
		func() error { return host.MkdirAll(tx.Files, dir, 0o755) },
	)
}

// discard moves the contents of a dataset that is destroyed out of the way.
func discard(tx *world.Tx, d *world.Dataset) error {
	if d.Tree == "" {
		return nil
	}
	return inTurn(
		func() error { return note(tx, d, "") },
		func() error { return unless(tx.Files.Rename(d.Tree, goneOf(id(d))), fs.ErrNotExist) },
	)
}

// empty says whether the dataset has no contents that anybody has seen.
func empty(d *world.Dataset) bool {
	return d.Mounted == "" && d.Tree == "" || d.Mounted == "/"
}

// Rollback takes a file system or volume back to its latest snapshot: zfs_do_rollback in
// usr/src/cmd/zfs/zfs_main.c, whose -r is not simulated, and zfs_ioc_rollback in
// usr/src/uts/common/fs/zfs/zfs_ioctl.c, which suspends a mounted file system and
// resumes it where it is mounted. What is mounted below stays mounted. Properties
// are not taken back, but the size of a volume is: it is in its data (zvol_update_volsize).
func Rollback(tx *world.Tx, snapshot string) error {
	head, _, _ := strings.Cut(snapshot, "@")
	s, err := OpenDataset(tx, snapshot, TypeSnapshot)
	if err != nil {
		return err
	}
	d, err := OpenDataset(tx, head, TypeFilesystem|TypeVolume)
	if err != nil {
		return err
	}
	var later []string
	for _, other := range Snapshots(tx, head) {
		if other.Created > s.Created {
			later = append(later, other.Name)
		}
	}
	switch {
	case later != nil:
		return refuse("cannot rollback to '%s': more recent snapshots or bookmarks exist\n"+
			"use '-r' to force deletion of the following snapshots and bookmarks:\n%s", snapshot, strings.Join(later, "\n"))
	case d.Partial != nil || locked(tx, d) || inKernelZone(tx, d) || Kind(d) == TypeVolume && given(tx, head):
		return world.NotSimulated("zfs rollback of what is locked, or what a zone in the kernel has")
	}
	c := &checker{tx: tx, action: "cannot rollback '" + head + "'"}
	if err := c.writable(head); err != nil {
		return err
	}
	return restore(tx, s, d)
}

// inKernelZone says whether a file system is mounted in a zone that the kernel has.
func inKernelZone(tx *world.Tx, d *world.Dataset) bool {
	return slices.ContainsFunc(tx.State.Zones, func(z *world.Zone) bool {
		return z.Kernel != nil && d.Mounted != "" && (d.Mounted == z.Path() || world.Under(d.Mounted, z.Path()))
	})
}

// restore gives a file system the contents of a snapshot. What is mounted in it is
// unmounted for the time, and so is it itself. On a real sled this is one transaction group; here a
// process that is killed meanwhile leaves a part of the contents, until it is rolled back again.
func restore(tx *world.Tx, s, d *world.Dataset) error {
	type place struct {
		dataset *world.Dataset
		dir     string
	}
	var places []place
	if d.Mounted != "" {
		for _, o := range append(mountsBelow(tx, d.Mounted), d) {
			places = append(places, place{o, o.Mounted})
			if err := moveOut(tx, o); err != nil {
				return err
			}
		}
	}
	if d.Tree != "" {
		if err := world.RemoveTree(tx.Files, d.Tree); err != nil {
			return err
		}
	}
	tx.TouchDataset(d.Name)
	d.Tree, d.Immutable = "", nil
	if err := copyContents(tx, s, d); err != nil {
		return err
	}
	d.Immutable = slices.Clone(s.Immutable)
	if s.Volsize != "" {
		d.Local["volsize"] = s.Volsize
	}
	for _, p := range slices.Backward(places) {
		if err := moveIn(tx, p.dataset, p.dir); err != nil {
			return err
		}
	}
	return nil
}
