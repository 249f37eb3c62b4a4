package storage

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
)

// configurationFile is the name of the configuration next to the ledger.
const configurationFile = "config.toml"

// Configuration is the sled's configuration as its M.2s hold it.
type Configuration struct {
	Name string // of the file; empty: no M.2 that is mounted has one
	Data []byte
	// Warnings are copies that are otherwise, or cannot be read: *CopyError.
	Warnings []error
}

// CopyError is a copy of the configuration that is not used.
type CopyError struct {
	Name string // of the file
	Used string // the one that is used instead
	Err  error
}

// Error says what is wrong with it.
func (e *CopyError) Error() string {
	return fmt.Sprintf("%[1]s: %[2]v; %[3]s is used; cp -p %[3]s %[1]s makes them equal", e.Name, e.Err, e.Used)
}

func (*CopyError) Kind() fault.Kind { return fault.Failed }

// Unwrap gives the reason.
func (e *CopyError) Unwrap() error { return e.Err }

// FindConfiguration reads the configuration from the M.2s whose config dataset
// is mounted. It runs no command. Of copies that differ, the one that was changed
// last counts: an M.2 that was away comes back with an old one. The error is that
// of a copy that cannot be read where no other can.
func FindConfiguration(files host.Files) (Configuration, error) {
	type read struct {
		name string
		data []byte
		time time.Time
		err  error
	}
	var copies []read
	for _, at := range ledger.WantedLocations(ledger.Find(files, "")) {
		if at.Mounted(files) != nil {
			continue
		}
		c := read{name: path.Join(at.Directory, configurationFile)}
		info, err := files.Stat(c.name)
		if c.err, c.time = err, info.Time; err == nil {
			c.data, c.err = host.ReadFile(files, c.name)
		}
		copies = append(copies, c)
	}
	// What can be read first, and of that the newest.
	slices.SortStableFunc(copies, func(a, b read) int {
		return cmp.Or(rank(a.err)-rank(b.err), b.time.Compare(a.time), strings.Compare(a.name, b.name))
	})
	if len(copies) == 0 || errors.Is(copies[0].err, fs.ErrNotExist) {
		return Configuration{}, nil
	}
	best := copies[0]
	if best.err != nil {
		return Configuration{}, fmt.Errorf("read the configuration: %w", best.err)
	}
	found := Configuration{Name: best.name, Data: best.data}
	for _, c := range copies[1:] {
		switch {
		case errors.Is(c.err, fs.ErrNotExist):
			c.err = errors.New("there is no copy of the configuration")
		case c.err == nil && !bytes.Equal(c.data, best.data):
			c.err = fmt.Errorf("differs, and is of %s", c.time.UTC().Format(time.RFC3339))
		}
		if c.err != nil {
			found.Warnings = append(found.Warnings, &CopyError{Name: c.name, Used: best.name, Err: c.err})
		}
	}
	return found, nil
}

// rank puts what is read before what is not, and what cannot be read before
// what does not exist: that one may hold something.
func rank(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, fs.ErrNotExist):
		return 2
	}
	return 1
}
