package ledger

import (
	"errors"
	"os"
	"path"

	"github.com/sledctl/sledctl/engine/ledger/format"
	"github.com/sledctl/sledctl/host"
)

// Each command is a process of its own, and most of what it costs to open a large ledger
// is to hash its lines and to find their values. So what follows from the bytes of a copy
// is kept on the RAM disk next to the lock, with a checksum of them. Every copy is read and
// flushed as ever. Where the file is missing, old or torn, the lines are verified.

const (
	indexName = "ledger.index"
	// worthKeeping is from how many bytes of a copy on its index is kept.
	worthKeeping = 128 << 10
	// maxIndex is how much of the file is read: the index of the largest ledger.
	maxIndex = 4 * maxFile
)

func (l *Ledger) indexFile() string { return path.Join(path.Dir(l.places.Lock), indexName) }

// verify is format.Verify, for what was read of a copy.
func (l *Ledger) verify(data []byte, known *format.Text) (*format.Text, error) {
	if known == nil {
		if t := l.recalled(data); t != nil {
			return t, nil
		}
	}
	return format.Verify(data, known)
}

// recalled is the text of a copy that was read, if it is one of which the index was kept,
// or that one and more lines; else nil.
func (l *Ledger) recalled(data []byte) *format.Text {
	if len(data) < l.worth {
		return nil
	}
	kept, err := host.ReadAtMost(l.files, l.indexFile(), maxIndex)
	if err != nil {
		return nil
	}
	return format.Recall(data, kept)
}

// keepIndex keeps the index of a view's text where a process that reads it next would
// have to verify more than a part in 32 of it. Who cannot write it leaves an older one, which
// does no harm. The lock is held; alone says that it is by nobody else.
func (l *Ledger) keepIndex(t *format.Text, alone bool) {
	size := len(t.Data())
	if size < l.worth || size-t.Kept() <= size/32 {
		return
	}
	how := os.O_EXCL // of several readers one does it
	if alone {       // a reader that was killed may have left it
		how = os.O_TRUNC
	}
	temporary := host.Temporary(l.indexFile())
	out, err := l.files.Open(temporary, os.O_WRONLY|os.O_CREATE|how, fileMode)
	if err != nil {
		return
	}
	kept, err := t.Keep()
	if err == nil {
		_, err = out.Write(kept)
	}
	if err = errors.Join(err, out.Close()); err == nil {
		err = l.files.Rename(temporary, l.indexFile())
	}
	if err != nil {
		_ = l.files.Remove(temporary)
	}
}
