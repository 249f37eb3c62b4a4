package world

import (
	"cmp"
	"embed"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/sledctl/sledctl/host"
)

func (tx *Tx) Exists(name string) bool {
	_, err := tx.Files.Stat(name)
	return err == nil
}

// RemoveTree removes a file or a directory with all that is in it; what is
// absent is fine.
func RemoveTree(files host.Files, name string) error {
	info, err := files.Stat(name)
	if err == nil {
		err = removeTree(files, name, info.Mode.IsDir())
	}
	if errors.Is(err, fs.ErrNotExist) { // or another process is removing it
		return nil
	}
	return err
}

func removeTree(files host.Files, name string, isDir bool) error {
	if isDir {
		entries, err := files.ReadDir(name)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := removeTree(files, path.Join(name, e.Name), e.Mode.IsDir()); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
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
	f, err := files.Open(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if errors.Is(err, fs.ErrNotExist) {
		if err := host.MkdirAll(files, path.Dir(name), 0o755); err != nil {
			return err
		}
		f, err = files.Open(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return cmp.Or(err, f.Close())
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

// rootFiles are the files of a fresh sled: root/common is the global zone's
// root, root/propolis what lies under root/ in the image of a Propolis zone.
//
//go:embed all:root
var rootFiles embed.FS

// EachFile visits the embedded files below dir, with their absolute names.
func EachFile(dir string, visit func(name string, data []byte) error) error {
	return fs.WalkDir(rootFiles, dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := rootFiles.ReadFile(p)
		if err != nil {
			return err
		}
		return visit(strings.TrimPrefix(p, dir), data)
	})
}

func ModeOf(name string) fs.FileMode {
	switch {
	case path.Ext(name) == ".sh" || path.Base(path.Dir(name)) == "bin":
		return 0o755
	case name == "/etc/shadow":
		return 0o400
	}
	return 0o644
}
