package world

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/sledctl/sledctl/host"
)

func (tx *Tx) Exists(name string) bool {
	_, err := tx.Files.Stat(name)
	return err == nil
}

// RemoveTree removes a file or a directory with all that is in it; what is
// absent is fine.
func RemoveTree(files host.Files, name string) error {
	err := files.Remove(name)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, fs.ErrExist) {
		return err
	}
	entries, err := files.ReadDir(name)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := RemoveTree(files, path.Join(name, e.Name)); err != nil {
			return err
		}
	}
	return files.Remove(name)
}

// Under says whether a path lies strictly below a directory.
func Under(name, dir string) bool {
	return name != dir && (dir == "/" || strings.HasPrefix(name, dir+"/"))
}

// Put writes a whole file and makes the directories above it.
func Put(files host.Files, name string, data []byte, mode fs.FileMode) error {
	if err := host.MkdirAll(files, path.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := files.Open(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// ReplaceFile writes a file next to its name and renames it into place.
func ReplaceFile(files host.Files, name string, data []byte, mode fs.FileMode) error {
	if err := Put(files, name+".new", data, mode); err != nil {
		return err
	}
	return files.Rename(name+".new", name)
}

func RemoveFile(files host.Files, name string) error {
	if err := files.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Below says whether name is dir or lies in it.
func Below(dir, name string) bool {
	return name == dir || dir == "/" || strings.HasPrefix(name, dir+"/")
}
