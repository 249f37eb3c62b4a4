package ledger

import (
	"bytes"
	"fmt"
	"slices"
	"weak"
)

// damage is what is wrong with a text, and where.
type damage struct {
	line   int // from 1, the header
	reason string
	last   uint64 // the last line behind it that can be read; 0: none
}

func (f *damage) Error() string { return fmt.Sprintf("line %d: %s", f.line, f.reason) }

// verify reads a file's contents. What stands behind the last line is told by
// the text's end; anything else that is wrong is a *damage. Where known, a verified
// text of the same ledger, holds the same bytes they are compared instead of
// hashed.
func verify(data []byte, known *text) (*text, error) {
	h, at, err := cutHeader(data)
	if err != nil {
		return nil, &damage{line: 1, reason: err.Error()}
	}
	if known != nil && (known.Ledger != h.Ledger || known.Base != h.Base) {
		known = nil
	}
	t := &text{header: h, body: &body{lines: make([]span, 0, bytes.Count(data, []byte{'\n'}))}}
	if at, err = t.keep(data, at, known); err != nil {
		return nil, err
	}
	if err := t.follow(data, at, known); err != nil {
		return nil, err
	}
	if len(t.epochs) == 0 {
		return nil, &damage{line: 2, reason: "no line says which copies count"}
	}
	if known != nil && known.head() == t.head() && len(known.data) == len(t.data) {
		t.body = known.body // the chain proves it
	}
	return t, nil
}

// extend is t with the bytes that its file has got since. Copies that got the
// same share it again.
func (t *text) extend(more []byte) (*text, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if same := t.longer.Value(); same != nil && bytes.Equal(same.data[len(t.data):], more) {
		return &text{header: t.header, body: same}, nil
	}
	data, lines, epochs := t.data, t.lines, t.epochs
	if t.grown {
		data, lines, epochs = slices.Clip(data), slices.Clip(lines), slices.Clip(epochs)
	}
	t.grown = true
	longer := &text{header: t.header, body: &body{lines: lines, epochs: epochs, before: t.index.Load()}}
	if err := longer.follow(append(data, more...), len(data), nil); err != nil {
		return nil, err
	}
	t.longer = weak.Make(longer.body)
	return longer, nil
}

// keep reads the lines that a rewrite kept. They were flushed before the file
// got its name, so nothing of them can be torn.
func (t *text) keep(data []byte, at int, known *text) (int, error) {
	start := at
	for len(t.lines) < t.Base.Kept {
		n := bytes.IndexByte(data[at:], '\n')
		if n < 0 {
			return 0, t.wrong("%d lines were kept by the last rewrite, %d are here", t.Base.Kept, len(t.lines))
		}
		f, ok := cutLine(data[at : at+n])
		if !ok {
			return 0, t.wrong("not a line of a state file")
		}
		last := uint64(0)
		if k := len(t.lines); k > 0 {
			last = t.lines[k-1].seq
		}
		if f.seq <= last || f.seq > t.Base.Seq {
			return 0, t.wrong("line %d stands behind line %d", f.seq, last)
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
	return 0, &damage{line: 2, reason: "the lines that the last rewrite kept do not match their sum"}
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
		if err := t.take(f, seq, at, at+n); err != nil {
			return err
		}
		prev, seq, at = f.hash, f.seq, at+n+1
	}
	t.data = data[:at]
	return t.finish(data, prev, seq)
}

// take counts a line that verifies.
func (t *text) take(f fields, before uint64, start, end int) error {
	if f.seq != before+1 {
		return t.wrong("line %d stands behind line %d", f.seq, before)
	}
	if err := t.count(f); err != nil {
		return err
	}
	t.lines = append(t.lines, span{start, end, f.seq})
	return nil
}

// finish says what stands behind the lines. A line that lacks nothing but its
// newline counts: its hash proves it.
func (t *text) finish(data, prev []byte, seq uint64) error {
	at := len(t.data)
	rest := data[at:]
	for n := len(rest); n > 0 && n >= len(rest)-1; n-- {
		f, ok := cutLine(rest[:n])
		if !ok || !bytes.Equal(f.hash, newChain().hash(prev, rest[hashEnd:n])) {
			continue
		}
		if err := t.take(f, seq, at, at+n); err != nil {
			return err
		}
		t.data, t.end = append(data[:at+n:at+n], '\n'), endBare
		return nil
	}
	epoch := uint64(0)
	if len(t.epochs) > 0 {
		epoch = t.epoch().N
	}
	end, ok := classify(rest, seq, epoch)
	if !ok {
		return &damage{len(t.lines) + 2, "the line does not match its hash, and is not the last", readOn(rest)}
	}
	t.end, t.rest, t.begun = end, int64(len(rest)), begun(rest)
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

// count checks a line's epoch, and keeps an epoch line.
func (t *text) count(f fields) error {
	var now uint64
	if k := len(t.epochs); k > 0 {
		now = t.epochs[k-1].N
	}
	if !isEpochLine(f.facts) {
		if f.epoch != now || now == 0 {
			return t.wrong("a line of epoch %d in epoch %d", f.epoch, now)
		}
		return nil
	}
	e, err := cutEpoch(f)
	if err != nil {
		return t.wrong("%v", err)
	}
	if e.N <= now || f.epoch != e.N {
		return t.wrong("epoch %d follows epoch %d", e.N, now)
	}
	t.epochs = append(t.epochs, e)
	return nil
}

// wrong is the damage of the line that comes next.
func (t *text) wrong(form string, args ...any) error {
	return &damage{line: len(t.lines) + 2, reason: fmt.Sprintf(form, args...)}
}
