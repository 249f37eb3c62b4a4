package host

import (
	"io/fs"
	"os"
	"path/filepath"
)

// tree is what dirFiles needs of a directory. *os.Root is one too. Names are
// relative, "." is the directory itself.
type tree interface {
	OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error)
	OpenRoot(name string) (*os.Root, error)
	Rename(from, to string) error
	Remove(name string) error
	Mkdir(name string, perm fs.FileMode) error
	Chmod(name string, mode fs.FileMode) error
	Lstat(name string) (fs.FileInfo, error)
	Close() error
}

// plainTree is a directory by its name.
type plainTree string

func (t plainTree) at(name string) string { return filepath.Join(string(t), name) }

func (t plainTree) OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(t.at(name), flag, perm)
}
func (t plainTree) OpenRoot(name string) (*os.Root, error)    { return os.OpenRoot(t.at(name)) }
func (t plainTree) Rename(from, to string) error              { return os.Rename(t.at(from), t.at(to)) }
func (t plainTree) Remove(name string) error                  { return os.Remove(t.at(name)) }
func (t plainTree) Mkdir(name string, perm fs.FileMode) error { return os.Mkdir(t.at(name), perm) }
func (t plainTree) Chmod(name string, mode fs.FileMode) error { return os.Chmod(t.at(name), mode) }
func (t plainTree) Lstat(name string) (fs.FileInfo, error)    { return os.Lstat(t.at(name)) }
func (t plainTree) Close() error                              { return nil }
