// Package format is the file of a copy of the ledger: a header, then one JSON line
// for each append. It reads and writes bytes in memory, and no file.
//
// Verify makes a Text of a file's bytes: each line's hash covers the line before it,
// so what is read is what was written, up to the end. What stands behind the last
// line is the Text's End. Relate compares two copies, Facts finds the last value
// of each key, and Split says which lines a shorter file must keep.
package format

import (
	"fmt"
	"sort"
	"sync"
	"sync/atomic"
	"time"
	"weak"
)

// Text is the verified contents of one file. It is never changed.
type Text struct {
	Header
	*body
	End  Ending
	Rest int64 // bytes of the file that are no line, behind those that are
	// Begun is the number that these bytes give themselves; 0: none can be read.
	Begun uint64
}

// body is what is behind the header, which copies that are alike share. A longer
// one shares its bytes.
type body struct {
	data   []byte // up to the end of the last verified line; its header is one copy's
	lines  []span
	Epochs []Epoch // the first one first

	mu     sync.Mutex         // held while the text is extended
	grown  bool               // a longer one shares what lies behind data and lines
	longer weak.Pointer[body] // that one
	before *index             // of the one that this extends, if it had one
	index  atomic.Pointer[index]
	kept   atomic.Int64 // see Kept
}

// span is a line's place in the text; end is that of its newline.
type span struct {
	start, end int
	seq        uint64
}

// Head is the last line of a copy. Copies with the same head hold the same
// facts, whatever has been rewritten.
type Head struct {
	Seq  uint64 `json:"seq"`
	Hash string `json:"hash"`
}

func (h Head) String() string { return fmt.Sprintf("seq %d (%.8s)", h.Seq, h.Hash) }

// Len is the number of lines, without the header.
func (t *Text) Len() int { return len(t.lines) }

// Data is the file up to the end of its last line. Its header is one copy's.
func (t *Text) Data() []byte { return t.data }

// Line is line i, without its newline.
func (t *Text) Line(i int) []byte { return t.data[t.lines[i].start:t.lines[i].end] }

func (t *Text) hash(i int) []byte {
	start := t.lines[i].start + len(openHash)
	return t.data[start : start+hashLen]
}

// Head is the last line, or the base if no line follows it.
func (t *Text) Head() Head {
	if len(t.lines) == t.Base.Kept {
		return Head{t.Base.Seq, t.Base.Hash}
	}
	i := len(t.lines) - 1
	return Head{t.lines[i].seq, string(t.hash(i))}
}

// find is the place of line seq among the lines that are here.
func (t *Text) find(seq uint64) (int, bool) {
	return sort.Find(len(t.lines), func(i int) int {
		switch at := t.lines[i].seq; {
		case seq < at:
			return -1
		case seq > at:
			return 1
		}
		return 0
	})
}

// HashAt is the hash of line seq, if it is known: the line is here, or it is the
// base.
func (t *Text) HashAt(seq uint64) (string, bool) {
	if seq == t.Base.Seq {
		return t.Base.Hash, true
	}
	if i, ok := t.find(seq); ok {
		return string(t.hash(i)), true
	}
	return "", false
}

// Holds reports whether the line of that head occurs here.
func (t *Text) Holds(h Head) bool {
	hash, ok := t.HashAt(h.Seq)
	return ok && hash == h.Hash
}

// Behind is the data behind the line of that head; all of it, if that line is not here.
func (t *Text) Behind(h Head) []byte {
	if i, ok := t.find(h.Seq); ok && string(t.hash(i)) == h.Hash {
		return t.data[t.lines[i].end+1:]
	}
	return t.data
}

// Follows reports whether the text's last line is the one directly after head.
func (t *Text) Follows(head Head) bool {
	if len(t.lines) == t.Base.Kept || t.Head().Seq != head.Seq+1 {
		return false
	}
	return t.Holds(head)
}

// As is the text as the file of another copy.
func (t *Text) As(copyID string) []byte {
	h := t.Header
	h.Copy = copyID
	return append(h.encode(), t.data[t.lines[0].start:]...)
}

// New is a ledger with nothing but its first epoch line, e, in which the copies in
// those pools are the members.
func New(pools []string, e Epoch, now time.Time) *Text {
	h := Header{Format: format, Ledger: NewID()}
	h.Base.Hash = firstHash(h.Ledger)
	for _, pool := range pools {
		e.Copies = append(e.Copies, MemberRef{NewID(), pool})
	}
	h.Copy = e.Copies[0].Copy
	t, err := Verify(append(h.encode(), EncodeLine(Head{0, h.Base.Hash}, e.N, now, []Fact{e.Fact()})...), nil)
	if err != nil {
		panic(err) // what was written a line above is read here
	}
	return t
}

// Fresh reports whether the text holds the first line of a ledger and nothing else,
// the same as the other's.
func (t *Text) Fresh(other *Text) bool {
	return len(t.lines) == 1 && t.End == EndComplete && t.Base.Seq == 0 && t.Epochs[0].Seated(t.Copy) &&
		(other == nil || other.Ledger == t.Ledger && other.Head() == t.Head() && other.Copy != t.Copy)
}
