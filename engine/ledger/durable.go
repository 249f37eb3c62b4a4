package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/sledctl/sledctl/host"
)

// firstSuffix ends the name of a file of a ledger whose creation is under way.
const firstSuffix = ".first"

// The files say what VMs are made of.
const (
	fileMode fs.FileMode = 0o600
	dirMode  fs.FileMode = 0o700
)

// replace makes data the copy of that location: after a power cut there is the
// old one or the new one.
//
// Guess fsync-makes-rename-durable: fsync of a file and of its directory makes an append and a
// rename durable, as `sync=standard` promises. With `sync=disabled` it does not, and neither does
// the ledger.
// Check: `zfs get sync` of the config datasets; cut the power after a command, then
// `sledctl history --last 1`
func (l *Ledger) replace(at Location, data []byte) error {
	return host.WriteFile(l.files, at.File(), data, fileMode)
}

// rename renames within a directory, and flushes it.
func rename(files host.Files, from, to string) error {
	if err := files.Rename(from, to); err != nil {
		return err
	}
	return files.SyncDir(path.Dir(to))
}

// ensureDirectory makes the location's directory, durably, in a dataset that
// is mounted.
func (l *Ledger) ensureDirectory(at Location) error {
	if err := at.Mounted(l.files); err != nil {
		return fmt.Errorf("%s: %w", at.File(), cause(err))
	}
	return makeDirectory(l.files, path.Clean(at.Directory))
}

func makeDirectory(files host.Files, name string) error {
	info, err := files.Stat(name)
	switch {
	case err == nil && info.Mode.IsDir():
		return files.SyncDir(path.Dir(name)) // the process that made it may have been killed before that
	case err == nil:
		return &fs.PathError{Op: "mkdir", Path: name, Err: fs.ErrExist}
	case !errors.Is(err, fs.ErrNotExist) || name == "/":
		return err
	}
	if err := makeDirectory(files, path.Dir(name)); err != nil {
		return err
	}
	if err := files.Mkdir(name, dirMode); err != nil {
		return err
	}
	return files.SyncDir(path.Dir(name))
}

// private takes from others what an earlier sledctl let them read: first the
// histories, so that a run that was killed meanwhile is taken up again. A plain
// directory is the operator's, and may hold other things: it stays as it is.
func private(files host.Files, at Location) error {
	info, err := files.Stat(at.File())
	if err != nil {
		return fmt.Errorf("keep %s from other users: %w", at.File(), cause(err))
	}
	if info.Mode.Perm()&^fileMode == 0 {
		return nil
	}
	entries, err := files.ReadDir(at.Directory)
	if err != nil {
		return fmt.Errorf("keep %s from other users: %w", at.Directory, cause(err))
	}
	for _, e := range entries {
		if _, ok := historySeq(e.Name); ok && e.Mode.IsRegular() {
			err = errors.Join(err, files.Chmod(path.Join(at.Directory, e.Name), fileMode))
		}
	}
	if at.Pool != "" {
		err = errors.Join(err, files.Chmod(path.Clean(at.Directory), dirMode))
	}
	if err == nil {
		err = files.Chmod(at.File(), fileMode)
	}
	if err != nil {
		return fmt.Errorf("keep %s from other users: %w", at.File(), err)
	}
	return nil
}

// exists says whether there is anything of that name.
func exists(files host.Files, name string) (bool, error) {
	_, err := files.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
