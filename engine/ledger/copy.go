package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/sledctl/sledctl/engine/ledger/format"
	"github.com/sledctl/sledctl/host"
)

// Why there is no copy in a place.
var (
	ErrNotMounted = errors.New("not mounted")
	errNoFile     = errors.New("no such file")
	errUnfinished = errors.New("its creation was never finished")
	errNoPlace    = errors.New("its place is not among those that were looked at")
)

// copyAt is the copy in a location: found whole, up to its end, and flushed as it
// was read. It is never changed.
type copyAt struct {
	Location
	text *format.Text
	info host.Info // of the file when it was read
	left uint64    // the last line that a history file of this copy holds; 0: it has none
}

// ref is the copy as a member.
func (c *copyAt) ref() MemberRef { return MemberRef{Copy: c.text.Copy, Pool: c.Pool} }

// is says whether the file is still the one that was read.
func (c *copyAt) is(now host.Info) bool {
	return c.same(now) && now.Size == c.info.Size && now.Time.Equal(c.info.Time)
}

// same says whether the inode is: one that was freed is used again.
func (c *copyAt) same(now host.Info) bool {
	return c != nil && now.Device == c.info.Device && now.Inode == c.info.Inode
}

// Mounted fails with ErrNotMounted unless the location's dataset is there: an
// unmounted one leaves a directory behind that belongs to its parent's dataset.
func (at Location) Mounted(files host.Files) error {
	if at.Pool == "" {
		return nil
	}
	dataset := path.Dir(at.Directory)
	here, err := files.Stat(dataset)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", dataset, ErrNotMounted)
	}
	if err != nil {
		return err
	}
	above, err := files.Stat(path.Dir(dataset))
	if err != nil {
		return err
	}
	if here.Device == above.Device {
		return fmt.Errorf("%s: %w", dataset, ErrNotMounted)
	}
	return nil
}

// broken is a *BrokenError, if err is the damage of a text.
func broken(file string, err error) error {
	if f, ok := errors.AsType[*format.Damage](err); ok {
		return &BrokenError{File: file, Line: f.Line, Reason: f.Reason, Last: f.Last, Newer: f.Newer}
	}
	return err
}
