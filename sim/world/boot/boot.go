// Package boot makes a simulated sled with its files, opens it, and restarts it.
package boot

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// Init makes a fresh sled in a directory that is absent, empty, or was left by
// an Init that was killed, and opens it. If a sled is there: fs.ErrExist.
func Init(dir string, o Options) (*world.World, error) {
	if err := create(dir, o); err != nil {
		return nil, fmt.Errorf("make a simulated sled in %s: %w", dir, err)
	}
	return Open(dir)
}

// Ensure opens the sled in a directory, and makes it first if it does not exist.
// Of several processes that try, one makes it.
func Ensure(dir string, o Options) (*world.World, error) {
	if world.IsWorld(dir) {
		return Open(dir)
	}
	if err := create(dir, o); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make a simulated sled in %s: %w", dir, err)
	}
	return Open(dir)
}

// Open opens a sled that Init made, and completes what a process that was killed
// left halfway.
func Open(dir string) (*world.World, error) {
	w, err := world.OpenDirectory(dir)
	if err != nil {
		return nil, err
	}
	if _, err := w.Files().Stat(zfs.Pending); err == nil {
		if err := w.Repair(func(tx *world.Tx) error { return zfs.RecoverDatasets(tx) }); err != nil {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
	}
	if err := zfs.EmptyTrash(w.Files()); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return w, nil
}

// layFiles writes the files that are there before the sled is.
func layFiles(root host.Files, all map[string]string) error {
	for name, text := range all {
		if err := host.MkdirAll(root, path.Dir(name), 0o755); err != nil {
			return err
		}
		if err := host.WriteFile(root, name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Memory makes a fresh sled that lives in this process, with what empty returns
// as its file systems. It works inside a testing/synctest bubble. It panics on
// options that Check refuses.
func Memory(o Options, empty func() host.Files) *world.World {
	s := Fresh(o)
	w := world.InMemory(s, empty)
	if err := errors.Join(o.Check(), LayRoot(w.Files(), o), layMountpoints(w.Files(), s)); err != nil {
		panic(err)
	}
	return w
}

// create makes a fresh sled in a directory.
func create(dir string, o Options) error {
	if err := o.Check(); err != nil {
		return err
	}
	return world.CreateDirectory(dir, func(root host.Files) (*world.State, error) {
		s := Fresh(o)
		return s, errors.Join(LayRoot(root, o), layMountpoints(root, s), layFiles(root, o.Files))
	})
}
