package ledger

import (
	"fmt"
	"sort"
	"sync"
	"sync/atomic"
	"weak"
)

// text is the verified contents of one file. It is never changed.
type text struct {
	header
	*body
	end  ending
	rest int64 // bytes of the file that are no line, behind those that are
	// begun is the number that these bytes give themselves; 0: none can be read.
	begun uint64
}

// body is what is behind the header, which copies that are alike share. A longer
// one shares its bytes.
type body struct {
	data   []byte // up to the end of the last verified line; its header is one copy's
	lines  []span
	epochs []Epoch

	mu     sync.Mutex         // of who extends it
	grown  bool               // a longer one shares what lies behind data and lines
	longer weak.Pointer[body] // that one
	before *index             // of the one that this extends, if it had one
	index  atomic.Pointer[index]
}

// span is a line's place in the text; end is that of its newline.
type span struct {
	start, end int
	seq        uint64
}

// Head is the last line of a copy. Copies with the same head hold the same
// facts, whatever has been rewritten.
type Head struct {
	Seq  uint64
	Hash string
}

func (h Head) String() string { return fmt.Sprintf("seq %d (%.8s)", h.Seq, h.Hash) }

func (t *text) line(i int) []byte { return t.data[t.lines[i].start:t.lines[i].end] }

func (t *text) hash(i int) []byte {
	start := t.lines[i].start + len(openHash)
	return t.data[start : start+hashLen]
}

// head is the last line, or the base where no line is behind it.
func (t *text) head() Head {
	if len(t.lines) == t.Base.Kept {
		return Head{t.Base.Seq, t.Base.Hash}
	}
	i := len(t.lines) - 1
	return Head{t.lines[i].seq, string(t.hash(i))}
}

// find is the place of line seq among the lines that are here.
func (t *text) find(seq uint64) (int, bool) {
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

// hashAt is the hash of line seq, where it is known: the line is here, or it
// is the base.
func (t *text) hashAt(seq uint64) (string, bool) {
	if seq == t.Base.Seq {
		return t.Base.Hash, true
	}
	if i, ok := t.find(seq); ok {
		return string(t.hash(i)), true
	}
	return "", false
}

// holds says whether the line of that head occurs here.
func (t *text) holds(h Head) bool {
	hash, ok := t.hashAt(h.Seq)
	return ok && hash == h.Hash
}
