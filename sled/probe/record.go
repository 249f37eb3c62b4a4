// Package probe records what a sled answers to commands that change nothing, and compares
// a recording with what the simulated sled answers.
//
//	recorded, err := probe.Settings{...}.Record(ctx, h)
//	recorded.Write(file)
//
// The names of a sled's objects, its addresses and its serial numbers are replaced before
// anything is written, see pseudonyms.go. What replaces them has the same shape and the same
// order, so that parsers read it as they read the original.
package probe

import (
	"context"
	"strings"
	"time"

	"github.com/sledctl/sledctl/host"
)

// limit is how long a command may take.
const limit = 10 * time.Second

// Settings are what a recording needs next to the sled.
type Settings struct {
	Program string // version of sledctl
	Now     func() time.Time
	Salt    []byte // decides the pseudonyms; new for each archive
	// Active, if set, makes something on the sled and removes it, and returns what the
	// commands have answered.
	Active func(context.Context) ([]Answer, error)
}

// Record asks a sled, through a host that refuses what is not read-only, one command
// after the other. A command that fails is part of the recording.
func (s Settings) Record(ctx context.Context, h host.Host) (Archive, error) {
	h = host.ReadOnly(h)
	a := Archive{Program: s.Program, Time: s.Now()}
	for _, q := range Questions() {
		for _, name := range objects(q.Each, a.Answers) {
			one := s.answer(ctx, h, q.of(name))
			if err := ctx.Err(); err != nil {
				return Archive{}, err
			}
			a.Answers = append(a.Answers, one)
		}
	}
	if s.Active != nil {
		made, err := s.Active(ctx)
		if err != nil {
			return Archive{}, err
		}
		a.Answers = append(a.Answers, made...)
	}
	a.Kernel = strings.TrimSpace(string(outputOf(a.Answers, "uname -v")))
	return pseudonymous(a, s.Salt, hostName(h.Files()))
}

func (s Settings) answer(ctx context.Context, h host.Host, c host.Command) Answer {
	began := s.Now()
	r, err := ask(ctx, h, c)
	a := Answer{
		Argv: append([]string{c.Program}, c.Args...), Exit: r.Exit, Stdout: r.Stdout, Stderr: r.Stderr,
		At: began, Elapsed: s.Now().Sub(began),
	}
	if err != nil {
		a.Failed = err.Error()
	}
	return a
}

// hostName is the name of the sled; empty: it does not say.
func hostName(f host.Files) string {
	data, err := host.ReadFile(f, "/etc/nodename")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}
