package ledger

import (
	"bytes"
	"fmt"
	"slices"
	"sort"
	"sync/atomic"
)

// text is the verified contents of one file. It is never changed; a longer
// text may share its bytes.
type text struct {
	header
	data   []byte // up to the end of the last verified line
	lines  []span
	epochs []Epoch
	torn   int // bytes behind data that a power cut left of an append

	grown  bool   // a longer text shares what lies behind data and lines
	before *index // of the text that this one extends, if it had one
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

// fault is what is wrong with a text, and where.
type fault struct {
	line   int // from 1, the header
	reason string
}

func (f *fault) Error() string { return fmt.Sprintf("line %d: %s", f.line, f.reason) }

// verify reads a file's contents. What a power cut left of a last append is
// counted in torn; anything else that is wrong is a *fault. Where known, a
// verified text of the same ledger, holds the same bytes they are compared
// instead of hashed.
func verify(data []byte, known *text) (*text, error) {
	h, at, err := cutHeader(data)
	if err != nil {
		return nil, &fault{1, err.Error()}
	}
	if known != nil && (known.Ledger != h.Ledger || known.Base != h.Base) {
		known = nil
	}
	t := &text{header: h, lines: make([]span, 0, bytes.Count(data, []byte{'\n'}))}
	if at, err = t.keep(data, at, known); err != nil {
		return nil, err
	}
	if err := t.follow(data, at, known); err != nil {
		return nil, err
	}
	if len(t.epochs) == 0 {
		return nil, &fault{2, "no line says which copies count"}
	}
	return t, nil
}

// extend is t with the bytes that its file has got since. It is not safe for
// concurrent use.
func (t *text) extend(more []byte) (*text, error) {
	data, lines, epochs := t.data, t.lines, t.epochs
	if t.grown {
		data, lines, epochs = slices.Clip(data), slices.Clip(lines), slices.Clip(epochs)
	}
	t.grown = true
	longer := &text{header: t.header, lines: lines, epochs: epochs, before: t.index.Load()}
	if err := longer.follow(append(data, more...), len(data), nil); err != nil {
		return nil, err
	}
	return longer, nil
}

// keep reads the lines that a rewrite kept. They were flushed before the file
// got its name, so nothing of them can be torn.
func (t *text) keep(data []byte, at int, known *text) (int, error) {
	start := at
	for len(t.lines) < t.Base.Kept {
		n := bytes.IndexByte(data[at:], '\n')
		if n < 0 {
			return 0, t.fault("%d lines were kept by the last rewrite, %d are here", t.Base.Kept, len(t.lines))
		}
		f, ok := cutLine(data[at : at+n])
		if !ok {
			return 0, t.fault("not a line of a state file")
		}
		last := uint64(0)
		if k := len(t.lines); k > 0 {
			last = t.lines[k-1].seq
		}
		if f.seq <= last || f.seq > t.Base.Seq {
			return 0, t.fault("line %d stands behind line %d", f.seq, last)
		}
		if err := t.count(f); err != nil {
			return 0, err
		}
		t.lines = append(t.lines, span{at, at + n, f.seq})
		at += n + 1
	}
	if known.keeps(data[start:at]) || t.Base.Kept == 0 || string(newChain().hash(data[start:at])) == t.Base.Sum {
		return at, nil
	}
	return 0, &fault{2, "the lines that the last rewrite kept do not match their sum"}
}

// follow reads the lines of the chain, from at on.
func (t *text) follow(data []byte, at int, known *text) error {
	t.data = data[:at]
	head := t.head()
	prev, seq, chain := []byte(head.Hash), head.Seq, newChain()
	for at < len(data) {
		n := bytes.IndexByte(data[at:], '\n')
		if n < 0 {
			break
		}
		line := data[at : at+n]
		f, ok := cutLine(line)
		if !ok {
			break
		}
		if known = known.agreeing(len(t.lines), line); known == nil && !bytes.Equal(f.hash, chain.hash(prev, line[hashEnd:])) {
			break
		}
		if f.seq != seq+1 {
			return t.fault("line %d stands behind line %d", f.seq, seq)
		}
		if err := t.count(f); err != nil {
			return err
		}
		t.lines = append(t.lines, span{at, at + n, f.seq})
		prev, seq, at = f.hash, f.seq, at+n+1
	}
	t.data, t.torn = data[:at], len(data)-at
	if t.torn > 0 && !oneLine(data[at:]) {
		return t.fault("the line does not match its hash, and is not the last")
	}
	return nil
}

// keeps says whether t kept those lines too.
func (t *text) keeps(lines []byte) bool {
	if t == nil || t.Base.Kept == 0 {
		return false
	}
	return bytes.Equal(t.data[t.lines[0].start:t.lines[t.Base.Kept-1].end+1], lines)
}

// agreeing is t if its line i is this one, else nil.
func (t *text) agreeing(i int, line []byte) *text {
	if t == nil || i >= len(t.lines) || !bytes.Equal(t.line(i), line) {
		return nil
	}
	return t
}

// oneLine says whether data can be the remains of one append, which is one
// line. More than that proves that the first line of it was whole once: a next
// one is only written behind a line that was flushed.
func oneLine(data []byte) bool {
	if n := bytes.IndexByte(data, '\n'); n >= 0 && n < len(data)-1 {
		return false
	}
	for rest := data[1:]; ; {
		i := bytes.Index(rest, []byte(openHash))
		if i < 0 {
			return true
		}
		if looksLikeLine(rest[i:]) {
			return false
		}
		rest = rest[i+1:]
	}
}

// count checks a line's epoch, and keeps an epoch line.
func (t *text) count(f fields) error {
	var now uint64
	if k := len(t.epochs); k > 0 {
		now = t.epochs[k-1].N
	}
	if !isEpochLine(f.facts) {
		if f.epoch != now || now == 0 {
			return t.fault("a line of epoch %d in epoch %d", f.epoch, now)
		}
		return nil
	}
	e, err := cutEpoch(f)
	if err != nil {
		return t.fault("%v", err)
	}
	if e.N != now+1 || f.epoch != e.N {
		return t.fault("epoch %d follows epoch %d", e.N, now)
	}
	t.epochs = append(t.epochs, e)
	return nil
}

// fault is one of the line that comes next.
func (t *text) fault(form string, args ...any) error {
	return &fault{len(t.lines) + 2, fmt.Sprintf(form, args...)}
}
