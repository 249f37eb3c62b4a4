package sleds

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/naming"
)

// FileName is the name of the operator's file, below the directory of XDG_CONFIG_HOME, or
// else in that of HOME. Variable gives the value of a variable.
func FileName(variable func(string) string) string {
	dir := variable("XDG_CONFIG_HOME")
	if dir == "" {
		dir = filepath.Join(variable("HOME"), ".config")
	}
	return filepath.Join(dir, "sledctl", "sleds.toml")
}

// Read is what the file of that name has; nothing, if there is none. The error is that of
// Parse, or the file system's.
func Read(name string) (File, error) {
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return File{}, nil
	}
	if err != nil {
		return File{}, err
	}
	return Parse(name, data)
}

// Write replaces the file of that name by a new one, which only its owner reads.
func (f File) Write(name string) error {
	text, err := f.Text()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	out, err := os.CreateTemp(filepath.Dir(name), ".sleds.toml.*") // 0600
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	err = errors.Join(err, out.Sync(), out.Close())
	if err == nil {
		err = os.Rename(out.Name(), name)
	}
	if err != nil {
		_ = os.Remove(out.Name())
	}
	return err
}

// Find is the sled of a name; the error is a *NotFoundError.
func (f File) Find(name string) (Sled, error) {
	s, ok := f.Sleds[name]
	if !ok {
		return s, &NotFoundError{name, naming.Nearest(name, f.Names())}
	}
	return s, nil
}

// NotFoundError is a name that no sled has; Near is the one that was probably meant.
type NotFoundError struct{ Name, Near string }

func (e *NotFoundError) Error() string { return fmt.Sprintf("no sled %q", e.Name) }

func (*NotFoundError) Kind() fault.Kind { return fault.NotFound }

// Hint names the nearest, and the command that lists all.
func (e *NotFoundError) Hint() string {
	if e.Near != "" {
		return "did you mean " + e.Near + "? to list the sleds, run: sledctl sled list"
	}
	return "to list the sleds, run: sledctl sled list"
}
