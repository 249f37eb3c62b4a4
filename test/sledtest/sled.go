// Package sledtest runs command lines on simulated sleds, as an operator would: for
// the tests of commands, and for those below test.
//
// An Operator runs them in the test's own process, Programs as processes: the test
// binary is sledctl, too, if TestMain of its package is Main. Failing, Stopping and
// a Lobby put faults between sledctl and the sled.
package sledtest

import (
	"context"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/commands"
	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/simtest/contract"
	"github.com/sledctl/sledctl/sled/instance/migration"
	"github.com/sledctl/sledctl/test/hosttest"
	"github.com/sledctl/sledctl/test/lattice"
)

// Operator is a simulated sled in memory, on which command lines are run in this
// process. Nothing of it is shared with another.
type Operator struct {
	*sim.Sled
	T testing.TB
	// Draws gives the ids of a run; nil: random ones.
	Draws func() string
	// OnEvent is called with the result of each action; nil: it is dropped.
	OnEvent func(plan.Event)
	// Lobby is where its agents answer; nil: on sockets of this machine.
	Lobby *Lobby
	// There is another sled, to which machines move: its sledctl runs as the remote one.
	There *Operator
	// Laid is the row of the lattice that it is; nil: it is none.
	Laid *lattice.Row
}

// New is a fresh sled with a configuration: that of every simulated sled if
// config is empty.
func New(t testing.TB, o sim.Options, config string) *Operator {
	t.Helper()
	s := &Operator{Sled: sim.New(o, hosttest.Files), T: t}
	contract.Watch(t, s.Sled)
	t.Cleanup(s.Close)
	if config == "" {
		config = cli.SimulatedConfig(o.Mode)
	}
	s.WriteFile("/etc/sledctl/config.toml", config)
	return s
}

// Small is a sled with one M.2 and one U.2 disk: enough for what happens on one
// pool, and half as long to prepare.
func Small() sim.Options { return sim.Options{Seed: 1, M2: 1, U2: 1} }

func (s *Operator) WriteFile(name, content string) {
	s.T.Helper()
	files := s.Host().Files()
	err := host.MkdirAll(files, name[:strings.LastIndexByte(name, '/')], 0o755)
	if err == nil {
		err = host.WriteFile(files, name, []byte(content), 0o644)
	}
	if err != nil {
		s.T.Fatal(err)
	}
}

// Answer is what a command line came to.
type Answer struct {
	Exit      int
	Out, Errs string
}

// On runs a command line on a host that leads to the sled.
func (s *Operator) On(ctx context.Context, h host.Host, line string) Answer {
	return s.Tuned(ctx, h, line, func(_ *cli.Env, run func(context.Context) int) int { return run(ctx) })
}

// Tuned is on, by somebody who changes what the run is given, and has it run.
func (s *Operator) Tuned(ctx context.Context, h host.Host, line string, by func(env *cli.Env, run func(context.Context) int) int) Answer {
	env, out, errs := commands.On(h, s.OnEvent)
	if s.Draws != nil {
		env.Draw = s.Draws
	}
	if s.Lobby != nil {
		env.Listen = s.Lobby.listen
	}
	if s.There != nil {
		env.Remote = func(ctx context.Context, words []string, stdin []byte) (migration.Answer, error) {
			if c, ok := dying(h); ok && c.Crashed() {
				return migration.Answer{Exit: -1}, host.ErrCrashed
			}
			return s.There.Answers(ctx, s.There.Host(), words[1:], stdin), nil
		}
		env.Feed = func(ctx context.Context, words []string, in io.Reader) (migration.Answer, error) {
			stdin, err := io.ReadAll(in)
			if err != nil { // the other one finds that it is not whole
				stdin = stdin[:len(stdin)/2]
			}
			return env.Remote(ctx, words, stdin)
		}
	}
	if before, fed, is := strings.Cut(line, " < "); is {
		file, more, _ := strings.Cut(fed, " ")
		line = before + " " + more
		data, err := os.ReadFile(file)
		if err != nil {
			s.T.Error(err)
		}
		Feed(env, data)
	}
	if s.Laid != nil && (strings.Contains(line, "--spec -") || strings.Contains(line, "--cloud-init -") || strings.Contains(line, " -f -")) {
		_, input := s.Laid.Extras("web1", "")
		Feed(env, []byte(input))
	}
	if s.Laid != nil {
		if imports, input := s.Laid.Import(); line == imports && line != "" {
			Feed(env, []byte(input))
		}
	}
	exit := by(env, func(ctx context.Context) int { return commands.Run(ctx, env, strings.Fields(line)) })
	return Answer{exit, out.String(), errs.String()}
}

// Fed is on, by somebody who gives it something to read.
func (s *Operator) Fed(ctx context.Context, h host.Host, line, input string) Answer {
	return s.Tuned(ctx, h, line, func(env *cli.Env, run func(context.Context) int) int {
		Feed(env, []byte(input))
		return run(ctx)
	})
}

// Feed is what a run reads from standard input.
func Feed(env *cli.Env, text []byte) {
	env.Streams.In.Reader = strings.NewReader(string(text))
}

// dying is the host that a run dies on, if it is to.
func dying(h host.Host) (*host.Crashing, bool) {
	if s, ok := h.(*Stopping); ok {
		h = s.Host
	}
	c, ok := h.(*host.Crashing)
	return c, ok
}

// Answers runs a command line as another sled's sledctl does.
func (s *Operator) Answers(ctx context.Context, h host.Host, words []string, stdin []byte) migration.Answer {
	env, out, errs := commands.On(h, nil)
	Feed(env, stdin)
	exit := commands.Run(ctx, env, words)
	return migration.Answer{Exit: exit, Stdout: out.Bytes(), Stderr: errs.Bytes()}
}

// Try runs a command line, however it ends.
func (s *Operator) Try(line string) Answer { return s.On(s.T.Context(), s.Host(), line) }

// Run runs a command line that must succeed, and gives what it prints.
func (s *Operator) Run(line string) string {
	s.T.Helper()
	a := s.Try(line)
	if a.Exit != 0 {
		s.T.Fatalf("sledctl %s: exit %d: %s", line, a.Exit, a.Errs)
	}
	return a.Out
}

// Command runs a command of the host, as an operator would next to sledctl.
func (s *Operator) Command(line string) (printed string) {
	s.T.Helper()
	words := strings.Fields(line)
	r, err := s.Host().Run(s.T.Context(), host.Command{Program: words[0], Args: words[1:]})
	if err != nil || r.Exit != 0 {
		s.T.Fatalf("%s: exit %d, %s%v", line, r.Exit, r.Stderr, err)
	}
	return string(r.Stdout)
}

// Comparable is all that is on the sled, but for counters, times and what is drawn:
// the witness on the pools names ids of the ledger.
func (s *Operator) Comparable() string {
	s.T.Helper()
	data, err := sim.Comparable(s.T.Context(), s.World())
	if err != nil {
		s.T.Fatal(err)
	}
	witness := regexp.MustCompile(`("sledctl:ledger": )"[^"]*"`)
	return witness.ReplaceAllString(string(data), `$1"WITNESS"`)
}

// Same fails the test if the sled is not as it was.
func (s *Operator) Same(before, when string) {
	s.T.Helper()
	if diff := cmp.Diff(strings.Split(before, "\n"), strings.Split(s.Comparable(), "\n")); diff != "" {
		s.T.Fatalf("%s (-before +after):\n%s", when, diff)
	}
}
