package operation

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/naming"
)

// book is what an operation reads and writes its facts in.
type book interface {
	Read(ctx context.Context) (ledger.View, error)
	Update(ctx context.Context, decide func(ledger.View) ([]ledger.Fact, error)) (ledger.View, error)
}

// bookOf is the ledger, or, for what must be done before it can be written, a
// scratch book that keeps intents below the run directory and nothing else: there
// is none yet, or one of its copies is missing and may lie on what is to be made.
func bookOf(ctx context.Context, env Env, subject string, beforeLedger bool) (book, error) {
	own := &scratch{files: env.Host.Files(), dir: path.Join(env.RunDir, "intent")}
	l, err := env.Ledger(ctx)
	switch {
	case beforeLedger && errors.Is(err, ledger.ErrAbsent):
		return own, nil
	case err != nil:
		return nil, err
	}
	begun, err := own.unfinished(subject)
	switch {
	case err != nil:
		return nil, err
	case !beforeLedger && len(begun) == 0:
		return l, nil
	case !beforeLedger:
		return resumed{l, own}, nil
	}
	view, err := l.Read(ctx)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(view.Members(), func(m ledger.Member) bool { return m.Err != nil }) {
		own.view = view
		return own, nil
	}
	return resumed{l, own}, nil
}

// resumed is the ledger, for a run that also ends what was begun before the ledger
// could be written.
type resumed struct {
	book
	begun *scratch
}

func (r resumed) Update(ctx context.Context, decide func(ledger.View) ([]ledger.Fact, error)) (ledger.View, error) {
	var facts []ledger.Fact
	view, err := r.book.Update(ctx, func(v ledger.View) (_ []ledger.Fact, err error) {
		facts, err = decide(v)
		return facts, err
	})
	if err == nil && r.begun.ends(facts) {
		err = r.begun.sweep()
	}
	return view, err
}

// scratch keeps open intents as files. It is on the RAM disk: a reboot forgets
// them together with what they may have left mounted.
type scratch struct {
	files host.Files
	dir   string
	view  ledger.View // of a ledger that can only be read
	open  bool        // this run's intent is there
}

func (s *scratch) Read(context.Context) (ledger.View, error) { return s.view, nil }

// Update writes the intent of a run, or ends it, and with it those of the runs
// that died: all of them had the lock that this one has. One that has nothing to
// do ends them too.
func (s *scratch) Update(_ context.Context, decide func(ledger.View) ([]ledger.Fact, error)) (ledger.View, error) {
	facts, err := decide(s.view)
	if err != nil {
		return s.view, err
	}
	for _, f := range facts {
		id, ok := strings.CutPrefix(f.Key, naming.KeyIntent)
		if ok && f.Value != nil {
			if err := s.write(path.Join(s.dir, id+".json"), f.Value); err != nil {
				return s.view, err
			}
		}
	}
	if s.ends(facts) {
		err = s.sweep()
	}
	return s.view, err
}

// ends reports whether a run is over with these facts: they end its intent, or it
// has had nothing to do.
func (s *scratch) ends(facts []ledger.Fact) bool {
	over := !s.open
	for _, f := range facts {
		if strings.HasPrefix(f.Key, naming.KeyIntent) {
			over = f.Value == nil
			s.open = s.open || !over
		}
	}
	return over
}

func (s *scratch) write(name string, value []byte) error {
	if err := host.MkdirAll(s.files, s.dir, 0o700); err != nil {
		return err
	}
	return host.WriteFile(s.files, name, value, 0o600)
}

// Unfinished lists the open intents of a subject, also of what was begun before
// there was a ledger that could be written. Who does not hold the subject's lock
// may see those of a run that lives.
func Unfinished(ctx context.Context, env Env, subject string) ([]OpenIntent, error) {
	var open []OpenIntent
	l, err := env.Ledger(ctx)
	if err == nil {
		var view ledger.View
		if view, err = l.Read(ctx); err == nil {
			open = Open(view)
		}
	}
	if err != nil && !errors.Is(err, ledger.ErrAbsent) {
		return nil, err
	}
	before, err := (&scratch{files: env.Host.Files(), dir: path.Join(env.RunDir, "intent")}).unfinished(subject)
	if err != nil {
		return nil, err
	}
	return append(slices.DeleteFunc(open, func(o OpenIntent) bool { return o.Subject != subject }), before...), nil
}

// unfinished lists the intents of a subject that are kept here.
func (s *scratch) unfinished(subject string) (open []OpenIntent, err error) {
	infos, err := s.files.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, i := range infos {
		var in Intent
		data, err := host.ReadFile(s.files, path.Join(s.dir, i.Name))
		if err == nil && json.Unmarshal(data, &in) == nil && in.Subject == subject { // else it is one that was being written: nothing was done
			open = append(open, OpenIntent{ID: strings.TrimSuffix(i.Name, ".json"), Intent: in})
		}
	}
	return open, nil
}

// sweep removes all intents, and what is left of those that were being written.
func (s *scratch) sweep() error {
	infos, err := s.files.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, i := range infos {
		if err == nil {
			err = s.files.Remove(path.Join(s.dir, i.Name))
		}
	}
	return err
}
