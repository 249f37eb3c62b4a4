package probe

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"time"

	"github.com/sledctl/sledctl/host"
)

// Tape is a host that keeps what its commands answer, also of those that change something.
// Of what is written to files or asked over the network it keeps nothing.
type Tape struct {
	host.Host
	Now func() time.Time

	mu  sync.Mutex
	all []Answer
}

// Run runs a command, and keeps the answer.
func (t *Tape) Run(ctx context.Context, c host.Command) (host.Result, error) {
	began := t.Now()
	r, err := t.Host.Run(ctx, c)
	a := Answer{
		Argv: c.Argv(), Exit: r.Exit, Stdout: withoutUserProperties(c, r.Stdout), Stderr: bytes.Clone(r.Stderr),
		At: began, Elapsed: t.Now().Sub(began), Active: true,
	}
	if err != nil {
		a.Failed = err.Error()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = append(t.all, a)
	return r, err
}

// Answers are what it has kept.
func (t *Tape) Answers() []Answer {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all
}

// withoutUserProperties is what zfs get printed without the lines of user properties,
// whose names have a colon.
func withoutUserProperties(c host.Command, out []byte) []byte {
	if c.Program != "zfs" || len(c.Args) == 0 || c.Args[0] != "get" {
		return bytes.Clone(out)
	}
	var kept []byte
	for line := range bytes.Lines(out) {
		if f := strings.Split(string(line), "\t"); len(f) < 2 || !strings.Contains(f[1], ":") {
			kept = append(kept, line...)
		}
	}
	return kept
}
