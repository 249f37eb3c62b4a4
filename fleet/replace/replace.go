// Package replace writes files that are there whole, or as they were, also after a loss of power.
package replace

import (
	"errors"
	"os"
	"path/filepath"
)

// File writes a file at once, of mode 0600: a reader finds the one before, or this one.
func File(name string, data []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) // fails once it is renamed
	_, err = temp.Write(data)
	err = errors.Join(err, temp.Sync(), temp.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(temp.Name(), name); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}
