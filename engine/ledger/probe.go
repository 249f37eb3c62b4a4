package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/sledctl/sledctl/engine/ledger/format"
	"github.com/sledctl/sledctl/host"
	"golang.org/x/sync/errgroup"
)

// probe is one look at one place.
type probe struct {
	Location
	before *copyAt // what was there last time
	found  *copyAt
	err    error

	info    host.Info
	data    []byte // the whole file, if it has to be verified
	flushed *errgroup.Group
}

// read fetches what is not known of the file.
//
// Guess faulted-pool-gives-eio: reading from a faulted pool with `failmode=continue` ends with EIO
// rather than hanging: that copy is then missing.
// Check: pull an M.2, `sledctl instance list`
func (v *probe) read(files host.Files) {
	if v.err = v.Mounted(files); v.err != nil {
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
	v.flush(files)
	if v.before.same(v.info) && v.before.text.End == format.EndComplete && v.info.Size > v.before.info.Size && v.follow(in) {
		return
	}
	v.data, v.err = v.from(in, 0)
}

// outlived is the newest line that a history file of this very copy holds beyond
// its end, 0 for none: lines up to that one were in its file.
func (v *probe) outlived(files host.Files, t *format.Text) (uint64, error) {
	all, err := histories(files, v.Directory)
	if err != nil {
		return 0, err
	}
	for _, seq := range slices.Backward(all) {
		if seq <= t.Head().Seq {
			break
		}
		data, err := host.ReadAtMost(files, path.Join(v.Directory, historyName(seq)), maxFile)
		if err != nil {
			return 0, err
		}
		if h, _, err := format.CutHeader(data); err == nil && h.Ledger == t.Ledger && h.Copy == t.Copy {
			return seq, nil
		}
	}
	return 0, nil
}

// maxFile is how much of a file is read: far more than a sled has to remember.
const maxFile = 64 << 20

// from reads the file from an offset to its end, or as much as is read of one.
func (v *probe) from(in host.File, offset int64) ([]byte, error) {
	data := make([]byte, max(0, min(v.info.Size, maxFile)-offset))
	if n, err := in.ReadAt(data, offset); n < len(data) {
		return nil, fmt.Errorf("read %s: %w", v.File(), err)
	}
	return data, nil
}

// follow reads only what the file has got since the last look. It says false
// if that does not continue what was read then: the chain of lines proves it.
func (v *probe) follow(in host.File) bool {
	more, err := v.from(in, v.before.info.Size)
	if err != nil {
		return false
	}
	longer, err := v.before.text.Extend(more)
	if err != nil || longer.End != format.EndComplete || v.info.Size > maxFile {
		return false
	}
	v.found = &copyAt{Location: v.Location, text: longer, info: v.info, left: v.before.left}
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
func (v *probe) verify(l *Ledger, known *format.Text) {
	if v.found != nil || v.err != nil {
		return
	}
	t, err := v.verified(l, known)
	if err != nil {
		v.err = broken(v.File(), err)
		return
	}
	left, err := v.outlived(l.files, t)
	if err != nil {
		v.err = err
		return
	}
	v.found = &copyAt{Location: v.Location, text: t, info: v.info, left: left}
}

// verified is the text that was read. What was not read of a file that is too
// long is no line.
func (v *probe) verified(l *Ledger, known *format.Text) (*format.Text, error) {
	t, err := l.verify(v.data, known)
	if err != nil {
		return nil, err
	}
	if unread := v.info.Size - int64(len(v.data)); unread > 0 {
		if t.End == format.EndComplete || t.End == format.EndBare {
			return nil, &format.Damage{Line: t.Len() + 2, Reason: fmt.Sprintf("the file has %d bytes; a ledger has at most %d", v.info.Size, maxFile)}
		}
		t.End, t.Rest = format.EndDamaged, t.Rest+unread
	}
	return t, nil
}

// flush makes sure that what is read is on disk: its writer may have been killed
// before it was. That costs little if it is on disk, and is under way while the file is
// read and verified: see believe.
func (v *probe) flush(files host.Files) {
	v.flushed = &errgroup.Group{}
	v.flushed.Go(func() error { return files.Sync(v.File()) })
	v.flushed.Go(func() error { return files.SyncDir(v.Directory) })
}

// believe waits until what was found is on disk. Otherwise nothing was found.
func (v *probe) believe() {
	if v.flushed == nil {
		return
	}
	if err := v.flushed.Wait(); err != nil && v.found != nil {
		v.found, v.err = nil, fmt.Errorf("flush %s: %w", v.File(), err)
	}
}
