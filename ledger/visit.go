package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/sledctl/sledctl/host"
)

// visit is one look at one place.
type visit struct {
	Location
	before  *copyAt // what was there last time
	without rule
	found   *copyAt
	err     error

	info host.Info
	data []byte // the whole file, if it has to be verified
}

// read fetches what is not known of the file.
func (v *visit) read(files host.Files) {
	if v.err = v.Mounted(files); v.err != nil && !v.without.lacks(ruleMounted) {
		return
	}
	if info, err := files.Stat(v.File()); err == nil && v.before.is(info) {
		v.found = v.before
		return
	}
	in, err := files.Open(v.File(), os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		v.err = noFile(files, v.Location)
		return
	}
	if err != nil {
		v.err = err
		return
	}
	defer in.Close()
	if v.info, v.err = in.Stat(); v.err != nil {
		return
	}
	if v.before.same(v.info) && v.info.Size > v.before.info.Size && v.follow(in) {
		return
	}
	v.data, v.err = v.from(in, 0)
}

// from reads the file from an offset to its end.
func (v *visit) from(in host.File, offset int64) ([]byte, error) {
	data := make([]byte, v.info.Size-offset)
	if n, err := in.ReadAt(data, offset); n < len(data) {
		return nil, fmt.Errorf("read %s: %w", v.File(), err)
	}
	return data, nil
}

// follow reads only what the file has got since the last look. It says false
// if that does not continue what was read then: the chain of lines proves it.
func (v *visit) follow(in host.File) bool {
	more, err := v.from(in, v.before.info.Size)
	if err != nil {
		return false
	}
	longer, err := v.before.text.extend(more)
	if err != nil || longer.torn > 0 {
		return false
	}
	v.found = &copyAt{Location: v.Location, text: longer, info: v.info}
	return true
}

// noFile says why there is no file.
func noFile(files host.Files, at Location) error {
	if _, err := files.Stat(at.File() + firstSuffix); err == nil {
		return errUnfinished
	}
	return errNoFile
}

// verify makes a copy of what was read.
func (v *visit) verify(known *text) {
	if v.found != nil || v.err != nil {
		return
	}
	t, err := verify(v.data, known)
	if err == nil && t.torn > 0 && v.without.lacks(ruleTorn) {
		err = &fault{len(t.lines) + 2, "the line is torn"}
	}
	if err != nil {
		v.err = broken(v.File(), err)
		return
	}
	v.found = &copyAt{Location: v.Location, text: t, info: v.info}
}

// flush makes sure that what was read is on disk: whoever wrote it may have
// been killed before it was. That is free when it is so already.
func (v *visit) flush(files host.Files) {
	if v.found == nil || v.found == v.before || v.without.lacks(ruleFlush) || v.without.lacks(rulePlanted) && v.found.text.planted() {
		return
	}
	err := files.Sync(v.File())
	if err == nil {
		err = files.SyncDir(v.Directory)
	}
	if err != nil {
		v.found, v.err = nil, fmt.Errorf("flush %s: %w", v.File(), err)
	}
}
