package node

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sledctl/sledctl/fleet/fence"
)

// Memory is what a node remembers of the store, on the sled's own disk: a restored store is
// known by what it lacks.
type Memory interface {
	Beat() (fence.Beat, error)
	Remember(fence.Beat) error
}

// File is a Memory in a file.
type File string

// Beat is the last one that was remembered; the zero Beat if there is none.
func (f File) Beat() (b fence.Beat, err error) {
	data, err := os.ReadFile(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &b)
	}
	return b, err
}

// Remember replaces it, durably.
func (f File) Remember(b fence.Beat) error {
	data, err := json.Marshal(b)
	if err != nil {
		return err
	}
	return replaceFile(string(f), data)
}

// replaceFile writes a file at once: a reader finds the one before, or this one.
func replaceFile(name string, data []byte) error {
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
