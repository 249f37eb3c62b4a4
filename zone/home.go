package zone

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/sledctl/sledctl/host"
)

// RemoveHome removes a plain directory where a zonepath's dataset would be
// mounted, with the directories in it: what a creation of a dataset leaves that
// fails. No file is ever removed: a directory that holds one stays
// (host.ErrRefused), and so does one on which something is mounted.
//
// Guess failed-creation-leaves-directory: a creation of a dataset that fails leaves at most an
// empty directory where it would be mounted; sledctl does not remove a directory with files in it.
// Check: kill `zfs create` early, many times; `ls -la` below the zones' parent
type RemoveHome struct{ Path string }

// Verb names the step.
func (RemoveHome) Verb() string { return "zone.remove-home" }

// Undo is nil: a dataset that is created there gets its directory.
func (RemoveHome) Undo() any { return nil }

// Explain is the removal; of directories in it there may be more.
func (s RemoveHome) Explain() []host.Line { return []host.Line{host.RemoveLine(s.Path)} }

// Do removes it. A missing one is host.ErrNotFound.
func (s RemoveHome) Do(_ context.Context, h host.Host) error {
	f := h.Files()
	own, err := f.Stat(path.Dir(s.Path))
	if err == nil {
		err = removeEmpty(f, s.Path, own.Device)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("directory %s: %w", s.Path, host.ErrNotFound)
	case err != nil:
		return fmt.Errorf("remove directory %s: %w", s.Path, err)
	}
	return nil
}

// removeEmpty removes a tree of directories of one file system. It looks at
// all of it before it removes any: rmdir(2) then refuses what came since.
func removeEmpty(f host.Files, name string, device uint64) error {
	info, err := f.Stat(name)
	switch {
	case err != nil:
		return err
	case !info.Mode.IsDir():
		return fmt.Errorf("%s is no directory: %w", name, host.ErrRefused)
	case info.Device != device:
		return fmt.Errorf("something is mounted on %s: %w", name, host.ErrRefused)
	}
	inside, err := f.ReadDir(name)
	if err != nil {
		return err
	}
	for _, i := range inside {
		if err := removeEmpty(f, path.Join(name, i.Name), device); err != nil {
			return err
		}
	}
	return f.Remove(name)
}
