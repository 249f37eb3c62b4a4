package operation

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/ledger"
)

// book is what an operation reads and writes its facts in.
type book interface {
	Read(ctx context.Context) (ledger.View, error)
	Update(ctx context.Context, decide func(ledger.View) ([]ledger.Fact, error)) (ledger.View, error)
}

// bookOf is the ledger, or, for what must be done before it can be written, a
// scratch book that keeps intents below the run directory and nothing else: there
// is none yet, or one of its copies is missing and may lie on what is to be made.
func bookOf(ctx context.Context, env Env, beforeLedger bool) (book, error) {
	own := scratch{files: env.Host.Files(), dir: path.Join(env.RunDir, "intent")}
	l, err := env.Ledger(ctx)
	switch {
	case beforeLedger && errors.Is(err, ledger.ErrAbsent):
		return own, nil
	case err != nil:
		return nil, err
	case !beforeLedger:
		return l, nil
	}
	view, err := l.Read(ctx)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(view.Members(), func(m ledger.Member) bool { return m.Err != nil }) {
		own.view = view
		return own, nil
	}
	return l, nil
}

// scratch keeps open intents as files. It is on the ramdisk: a reboot forgets
// them together with what they may have left mounted.
type scratch struct {
	files host.Files
	dir   string
	view  ledger.View // of a ledger that can only be read
}

func (s scratch) Read(context.Context) (ledger.View, error) { return s.view, nil }

func (s scratch) Update(_ context.Context, decide func(ledger.View) ([]ledger.Fact, error)) (ledger.View, error) {
	facts, err := decide(s.view)
	for _, f := range facts {
		if id, ok := strings.CutPrefix(f.Key, intentPrefix); ok && err == nil {
			err = s.write(path.Join(s.dir, id+".json"), f.Value)
		}
	}
	return s.view, err
}

func (s scratch) write(name string, value []byte) error {
	if value == nil {
		return s.files.Remove(name)
	}
	if err := host.MkdirAll(s.files, s.dir, 0o755); err != nil {
		return err
	}
	return host.WriteFile(s.files, name, value, 0o644)
}
