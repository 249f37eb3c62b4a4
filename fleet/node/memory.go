package node

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"github.com/sledctl/sledctl/fleet/fence"
	"github.com/sledctl/sledctl/fleet/replace"
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
	return replace.File(string(f), data)
}
