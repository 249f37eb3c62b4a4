package ledger

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"path"
	"slices"

	"github.com/sledctl/sledctl/engine/ledger/format"
	"github.com/sledctl/sledctl/host"
)

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
			e, derr := format.Decode(lines[seq])
			if derr != nil {
				derr = fmt.Errorf("%w: %w", ErrBroken, derr)
			}
			if !yield(e, derr) {
				return
			}
		}
		if err != nil {
			yield(Entry{}, err)
		}
	}
}

// ReadSince is Read with the lines beyond seq, for a process that has read those before and
// follows the ledger. All is false if the copy does not hold each of them: History does.
func (l *Ledger) ReadSince(ctx context.Context, seq uint64) (view View, entries []Entry, all bool, err error) {
	p, err := l.lookShared(ctx)
	if err != nil {
		return View{}, nil, false, err
	}
	if view, err = p.view(p.best); err != nil {
		return view, nil, false, err
	}
	entries, all, err = p.best.text.After(seq)
	return view, entries, all, err
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
		c.text.AddTo(lines)
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
			err = broken(name, format.AddHistory(data, c.text.Ledger, lines))
		}
		if err != nil && failed == nil {
			failed = err
		}
	}
	if err != nil {
		return fmt.Errorf("look for the history of the ledger: %w", err)
	}
	return failed
}
