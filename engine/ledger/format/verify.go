package format

import (
	"bytes"
	"fmt"
	"slices"
	"weak"

	"github.com/sledctl/sledctl/host/fault"
)

// Damage is what is wrong with a file, and where.
type Damage struct {
	Line   int // from 1, the header
	Reason string
	Last   uint64 // the last line behind it that can be read; 0: none
	Newer  bool   // a newer sledctl has written it: nothing is known to be wrong
}

// Error names the line and the reason.
func (f *Damage) Error() string { return fmt.Sprintf("line %d: %s", f.Line, f.Reason) }

// Kind is that of any failure: the reader of a copy decides what its damage comes to.
func (*Damage) Kind() fault.Kind { return fault.Failed }

// Verify reads a file's contents. What stands behind the last line is the text's
// End; anything else that is wrong is a *Damage. If known, a verified text of the
// same ledger, holds the same bytes, Verify compares instead of hashing them.
func Verify(data []byte, known *Text) (*Text, error) {
	h, at, err := CutHeader(data)
	if err != nil {
		return nil, err
	}
	if known != nil && (known.Ledger != h.Ledger || known.Base != h.Base) {
		known = nil
	}
	if known != nil && known.End == EndComplete && bytes.Equal(data[at:], known.data[known.lines[0].start:]) {
		return &Text{Header: h, body: known.body}, nil
	}
	t := &Text{Header: h, body: &body{}}
	if at, err = t.keep(data, at, known); err != nil {
		return nil, err
	}
	if err := t.follow(data, at, known); err != nil {
		return nil, err
	}
	if len(t.Epochs) == 0 {
		return nil, &Damage{Line: 2, Reason: "no line says which copies count"}
	}
	if known != nil && known.Head() == t.Head() && len(known.data) == len(t.data) {
		t.body = known.body // the chain proves it
	}
	return t, nil
}

// Extend is t with the bytes that its file has got since. Copies that got the same
// bytes share them again.
func (t *Text) Extend(more []byte) (*Text, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if same := t.longer.Value(); same != nil && bytes.Equal(same.data[len(t.data):], more) {
		return &Text{Header: t.Header, body: same}, nil
	}
	data, lines, epochs := t.data, t.lines, t.Epochs
	if t.grown {
		data, lines, epochs = slices.Clip(data), slices.Clip(lines), slices.Clip(epochs)
	}
	t.grown = true
	longer := &Text{Header: t.Header, body: &body{lines: lines, Epochs: epochs, before: t.index.Load()}}
	longer.kept.Store(t.kept.Load())
	if err := longer.follow(append(data, more...), len(data), nil); err != nil {
		return nil, err
	}
	t.longer = weak.Make(longer.body)
	return longer, nil
}

// keep reads the lines that a rewrite kept. They were flushed before the file
// got its name, so nothing of them can be torn.
func (t *Text) keep(data []byte, at int, known *Text) (int, error) {
	start := at
	for len(t.lines) < t.Base.Kept {
		n := bytes.IndexByte(data[at:], '\n')
		if n < 0 {
			return 0, t.wrong("%d lines were kept by the last rewrite, %d are here", t.Base.Kept, len(t.lines))
		}
		f, ok := cutLine(data[at : at+n])
		if !ok {
			return 0, t.wrong("not a line of a ledger")
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
	if known.keeps(data[start:at]) || t.Base.Kept == 0 || Sum(data[start:at]) == t.Base.Sum {
		return at, nil
	}
	return 0, &Damage{Line: 2, Reason: "the lines that the last rewrite kept do not match their sum"}
}

// follow reads the lines of the chain, from at on.
func (t *Text) follow(data []byte, at int, known *Text) error {
	t.data = data[:at]
	head := t.Head()
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
func (t *Text) take(f fields, before uint64, start, end int) error {
	if f.seq != before+1 {
		return t.wrong("line %d stands behind line %d", f.seq, before)
	}
	if err := t.count(f); err != nil {
		return err
	}
	t.lines = append(t.lines, span{start, end, f.seq})
	return nil
}

// finish decides what stands behind the lines. A line that lacks only its newline
// counts: its hash proves it.
func (t *Text) finish(data, prev []byte, seq uint64) error {
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
		t.data, t.End = append(data[:at+n:at+n], '\n'), EndBare
		return nil
	}
	epoch := uint64(0)
	if len(t.Epochs) > 0 {
		epoch = t.Epoch().N
	}
	end, ok := classify(rest, seq, epoch)
	if !ok {
		return &Damage{Line: len(t.lines) + 2, Reason: "the line does not match its hash, and is not the last", Last: readOn(rest)}
	}
	t.End, t.Rest, t.Begun = end, int64(len(rest)), begun(rest)
	return nil
}

// keeps reports whether t kept those lines too.
func (t *Text) keeps(lines []byte) bool {
	if t == nil || t.Base.Kept == 0 {
		return false
	}
	return bytes.Equal(t.data[t.lines[0].start:t.lines[t.Base.Kept-1].end+1], lines)
}

// agreeing is t if its line i is this one, else nil.
func (t *Text) agreeing(i int, line []byte) *Text {
	if t == nil || i >= len(t.lines) || !bytes.Equal(t.Line(i), line) {
		return nil
	}
	return t
}

// count checks a line's epoch, and keeps an epoch line.
func (t *Text) count(f fields) error {
	var now uint64
	if k := len(t.Epochs); k > 0 {
		now = t.Epochs[k-1].N
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
	t.Epochs = append(t.Epochs, e)
	return nil
}

// wrong is the damage of the line that comes next.
func (t *Text) wrong(form string, args ...any) error {
	return &Damage{Line: len(t.lines) + 2, Reason: fmt.Sprintf(form, args...)}
}
