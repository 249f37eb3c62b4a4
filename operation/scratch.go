package operation

import (
	"context"
	"errors"
	"path"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/ledger"
)

// book is what an operation reads and writes its facts in.
type book interface {
	Read(ctx context.Context) (ledger.View, error)
	Update(ctx context.Context, decide func(ledger.View) ([]ledger.Fact, error)) (ledger.View, error)
}

// bookOf is the ledger, or, for what must be done before there can be one, a
// scratch book that keeps intents below the run directory and nothing else.
func bookOf(ctx context.Context, env Env, beforeLedger bool) (book, error) {
	l, err := env.Ledger(ctx)
	if beforeLedger && errors.Is(err, ledger.ErrAbsent) {
		return scratch{files: env.Host.Files(), dir: path.Join(env.RunDir, "intent")}, nil
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

// scratch keeps open intents as files. It is on the ramdisk: a reboot forgets
// them together with what they may have left mounted.
type scratch struct {
	files host.Files
	dir   string
}

func (s scratch) Read(context.Context) (ledger.View, error) { return ledger.View{}, nil }

func (s scratch) Update(_ context.Context, decide func(ledger.View) ([]ledger.Fact, error)) (ledger.View, error) {
	facts, err := decide(ledger.View{})
	for _, f := range facts {
		if id, ok := strings.CutPrefix(f.Key, intentPrefix); ok && err == nil {
			err = s.write(path.Join(s.dir, id+".json"), f.Value)
		}
	}
	return ledger.View{}, err
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
