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
	Chain() (fence.Chain, error)
	Remember(fence.Chain) error
}

// File is a Memory in a file.
type File string

// Chain is the one that was remembered last; none if there was none.
func (f File) Chain() (c fence.Chain, err error) {
	data, err := os.ReadFile(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	return c, err
}

// Remember replaces it, durably.
func (f File) Remember(c fence.Chain) error {
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return replace.File(string(f), data)
}
