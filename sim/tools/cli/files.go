package cli

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/sledctl/sledctl/host"
)

// ErrnoText is strerror(3C) of what a file operation came to.
func ErrnoText(err error) string {
	for _, known := range []struct {
		is   error
		text string
	}{
		{fs.ErrNotExist, "No such file or directory"}, {fs.ErrExist, "File exists"}, {fs.ErrPermission, "Permission denied"},
	} {
		if errors.Is(err, known.is) {
			return known.text
		}
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:]
}

// WriteFile writes a whole file; the directory must be there.
func WriteFile(files host.Files, name string, data []byte, mode fs.FileMode) error {
	f, err := files.Open(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// RemoveAll removes a file or a directory with all that is in it; what is
// absent is fine.
func RemoveAll(files host.Files, name string) error {
	return RemoveExcept(files, name, func(string) bool { return false })
}

// RemoveExcept is removeAll, but for directories that are busy.
func RemoveExcept(files host.Files, name string, busy func(dir string) bool) error {
	info, err := files.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var failed error
	if info.Mode.IsDir() {
		entries, err := files.ReadDir(name)
		if err != nil {
			return err
		}
		for _, e := range entries {
			failed = errors.Join(failed, RemoveExcept(files, path.Join(name, e.Name), busy))
		}
		if busy(name) {
			return errors.Join(failed, &fs.PathError{Op: "remove", Path: name, Err: syscall.EBUSY})
		}
	}
	return errors.Join(failed, files.Remove(name))
}
