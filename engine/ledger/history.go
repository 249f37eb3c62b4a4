package ledger

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/sledctl/sledctl/host"
)

// Entry is one append of the past.
type Entry struct {
	Seq, Epoch uint64
	Time       time.Time
	Facts      []Fact // a removal's value is null
	Members    *Epoch // of an epoch line, which has no Facts
}

// History is every append that is still to be read, oldest first: the lines of
// the ledger, dead ones too, and those that rewrites have put next to it on any
// present member. Numbers are missing where the oldest are gone. What is
// unconfirmed is told to places.Warn.
//
// An error ends it: those of Open first; at the end, if a history file cannot
// be read, its ErrBroken or the file system's.
func History(ctx context.Context, files host.Files, places Places) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		lines, err := past(ctx, files, places)
		for _, seq := range slices.Sorted(maps.Keys(lines)) {
			if !yield(entry(lines[seq])) {
				return
			}
		}
		if err != nil {
			yield(Entry{}, err)
		}
	}
}

// past is all lines by their number, as far as they can be read.
func past(ctx context.Context, files host.Files, places Places) (map[uint64][]byte, error) {
	l, err := unopened(files, places)
	if err != nil {
		return nil, err
	}
	unlock, err := l.lock(ctx, host.LockShared)
	if err != nil {
		return nil, err
	}
	defer unlock()
	p, err := l.shown(ctx)
	if err != nil {
		return nil, err
	}
	lines := map[uint64][]byte{}
	var failed error
	for _, c := range p.members {
		if err := addHistories(files, c, lines); err != nil && failed == nil {
			failed = err
		}
		for i, at := range c.text.lines {
			lines[at.seq] = c.text.line(i)
		}
	}
	return lines, failed
}

// addHistories adds the lines of a copy's history files.
func addHistories(files host.Files, c *copyAt, lines map[uint64][]byte) error {
	all, err := histories(files, c.Directory)
	var failed error
	for _, seq := range all {
		name := path.Join(c.Directory, historyName(seq))
		data, err := host.ReadAtMost(files, name, maxFile)
		if err == nil {
			err = broken(name, addLeft(data, c.text.Ledger, lines))
		}
		if err != nil && failed == nil {
			failed = err
		}
	}
	if err != nil {
		return fmt.Errorf("look for the history of the state file: %w", err)
	}
	return failed
}

// addLeft adds the lines of one history file: a header whose base counts and
// sums them, then the lines.
func addLeft(data []byte, ledger string, lines map[uint64][]byte) error {
	h, at, err := cutHeader(data)
	if err != nil {
		return &damage{line: 1, reason: err.Error()}
	}
	if h.Ledger != ledger {
		return &damage{line: 1, reason: "the file is of ledger " + h.Ledger}
	}
	if string(newChain().hash(data[at:])) != h.Base.Sum {
		return &damage{line: 2, reason: "the lines do not match their sum"}
	}
	for line := range bytes.Lines(data[at:]) {
		line = bytes.TrimSuffix(line, []byte{'\n'})
		f, ok := cutLine(line)
		if !ok {
			return &damage{line: 2, reason: "not a line of a state file"}
		}
		lines[f.seq] = line
	}
	return nil
}

// entry decodes a line.
func entry(line []byte) (Entry, error) {
	f, ok := cutLine(line)
	at, err := time.Parse(timeForm, string(f.time))
	if !ok || err != nil {
		return Entry{}, fmt.Errorf("%w: line %d", ErrBroken, f.seq)
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
			return Entry{}, fmt.Errorf("%w: the facts of line %d", ErrBroken, f.seq)
		}
		e.Facts = append(e.Facts, Fact{string(key), value})
	}
	return e, nil
}
