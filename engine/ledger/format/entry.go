package format

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Entry is one append of the past.
type Entry struct {
	Seq, Epoch uint64
	Time       time.Time
	Facts      []Fact // a removal's value is null
	Members    *Epoch // of an epoch line, which has no Facts
}

// Decode reads a line, given without its newline. It does not check the hash.
func Decode(line []byte) (Entry, error) {
	f, ok := cutLine(line)
	at, err := time.Parse(timeForm, string(f.time))
	if !ok || err != nil {
		return Entry{}, fmt.Errorf("line %d is not a line of a ledger", f.seq)
	}
	e := Entry{Seq: f.seq, Epoch: f.epoch, Time: at}
	if isEpochLine(f.facts) {
		members, err := cutEpoch(f)
		e.Members = &members
		return e, err
	}
	for rest := f.facts; len(rest) > 0; {
		var key, value []byte
		if key, value, rest, ok = cutFact(rest); !ok {
			return Entry{}, fmt.Errorf("the facts of line %d are not written as facts", f.seq)
		}
		e.Facts = append(e.Facts, Fact{string(key), value})
	}
	return e, nil
}

// CheckValues decodes every line and every value, which Verify does not.
func (t *Text) CheckValues() error {
	for i := range t.lines {
		e, err := Decode(t.Line(i))
		if err != nil {
			return &Damage{Line: i + 2, Reason: err.Error()}
		}
		for _, f := range e.Facts {
			if !json.Valid(f.Value) {
				return &Damage{Line: i + 2, Reason: fmt.Sprintf("the value of %s is not JSON", f.Key)}
			}
		}
	}
	return nil
}

// Beyond returns what t says after the last line that it has in common with kept.
func (t *Text) Beyond(kept *Text) ([]Entry, error) {
	common := uint64(0)
	for i, at := range t.lines {
		if t.Ledger == kept.Ledger && kept.Holds(Head{at.seq, string(t.hash(i))}) {
			common = at.seq
		}
	}
	if t.Ledger == kept.Ledger && (kept.Holds(t.Head()) || t.Head().Seq < kept.Base.Seq && sameEpochs(t.Epochs, kept.Epochs)) {
		return nil, nil
	}
	var out []Entry
	for i, at := range t.lines {
		if at.seq <= common {
			continue
		}
		e, err := Decode(t.Line(i))
		if err != nil {
			return nil, &Damage{Line: i + 2, Reason: err.Error()}
		}
		out = append(out, e)
	}
	return out, nil
}

// After returns the lines of t behind a number; false if t does not hold all of them.
func (t *Text) After(seq uint64) (entries []Entry, all bool, err error) {
	if t.Base.Seq > seq {
		return nil, false, nil
	}
	first, _ := slices.BinarySearchFunc(t.lines, seq+1, func(s span, seq uint64) int { return cmp.Compare(s.seq, seq) })
	for i := first; i < len(t.lines); i++ {
		e, err := Decode(t.Line(i))
		if err != nil {
			return nil, false, &Damage{Line: i + 2, Reason: err.Error()}
		}
		entries = append(entries, e)
	}
	return entries, true, nil
}

// AddTo adds the lines of t, by their number.
func (t *Text) AddTo(lines map[uint64][]byte) {
	for i, at := range t.lines {
		lines[at.seq] = t.Line(i)
	}
}

// AddHistory adds the lines of a history file, by their number: a header whose
// base counts and sums them, then the lines. An error is a *Damage.
func AddHistory(data []byte, ledger string, lines map[uint64][]byte) error {
	h, at, err := CutHeader(data)
	if err != nil {
		return err
	}
	if h.Ledger != ledger {
		return &Damage{Line: 1, Reason: "the file is of ledger " + h.Ledger}
	}
	if Sum(data[at:]) != h.Base.Sum {
		return &Damage{Line: 2, Reason: "the lines do not match their sum"}
	}
	for line := range bytes.Lines(data[at:]) {
		line = bytes.TrimSuffix(line, []byte{'\n'})
		f, ok := cutLine(line)
		if !ok {
			return &Damage{Line: 2, Reason: "not a line of a ledger"}
		}
		lines[f.seq] = line
	}
	return nil
}
