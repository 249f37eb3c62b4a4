package commands_test

import (
	"context"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/sledctl/sledctl/commands"
	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/simtest/contract"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sled/instance/migration"
	"github.com/sledctl/sledctl/test/hosttest"
	"github.com/sledctl/sledctl/test/lattice"
)

// sled is a simulated sled in memory, on which command lines are run in this
// process. Nothing of it is shared with another.
type sled struct {
	*sim.Sled
	t testing.TB
	// draws gives the ids of a run; nil: random ones.
	draws func() string
	// observe hears what becomes of each action; nil: nobody.
	observe func(plan.Event)
	// lobby is where its agents answer; nil: on sockets of this machine.
	lobby *lobby
	// there is another sled, to which machines move: "there" runs its sledctl.
	there *sled
	// laid is the row of the lattice that it is; nil: it is none.
	laid *lattice.Row
}

// newSled is a fresh sled with a configuration: that of every simulated sled if
// config is empty.
func newSled(t testing.TB, o sim.Options, config string) *sled {
	t.Helper()
	s := &sled{Sled: sim.New(o, hosttest.Files), t: t}
	contract.Watch(t, s.Sled)
	t.Cleanup(s.Close)
	if config == "" {
		config = cli.SimulatedConfig(o.Mode)
	}
	s.write("/etc/sledctl/config.toml", config)
	return s
}

// small is a sled with one M.2 and one U.2 disk: enough for what happens on one
// pool, and half as long to prepare.
func small() sim.Options { return sim.Options{Seed: 1, M2: 1, U2: 1} }

// helios is a small sled on which zones are installed from images.
func helios() sim.Options {
	o := small()
	o.Mode = world.Helios
	return o
}

func (s *sled) write(name, content string) {
	s.t.Helper()
	files := s.Host().Files()
	err := host.MkdirAll(files, name[:strings.LastIndexByte(name, '/')], 0o755)
	if err == nil {
		err = host.WriteFile(files, name, []byte(content), 0o644)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// answer is what a command line came to.
type answer struct {
	exit      int
	out, errs string
}

// on runs a command line on a host that leads to the sled.
func (s *sled) on(ctx context.Context, h host.Host, line string) answer {
	return s.tuned(ctx, h, line, func(_ *cli.Env, run func(context.Context) int) int { return run(ctx) })
}

// tuned is on, by somebody who changes what the run is given, and has it run.
func (s *sled) tuned(ctx context.Context, h host.Host, line string, by func(env *cli.Env, run func(context.Context) int) int) answer {
	env, out, errs := commands.On(h, s.observe)
	if s.draws != nil {
		env.Draw = s.draws
	}
	if s.lobby != nil {
		env.Listen = s.lobby.listen
	}
	if s.there != nil {
		env.Remote = func(ctx context.Context, words []string, stdin []byte) (migration.Answer, error) {
			if c, ok := dying(h); ok && c.Crashed() {
				return migration.Answer{Exit: -1}, host.ErrCrashed
			}
			return s.there.answers(ctx, s.there.Host(), words[1:], stdin), nil
		}
	}
	if s.laid != nil && strings.Contains(line, "--spec -") {
		_, input := s.laid.Extras("web1", "")
		feed(env, []byte(input))
	}
	exit := by(env, func(ctx context.Context) int { return commands.Run(ctx, env, strings.Fields(line)) })
	return answer{exit, out.String(), errs.String()}
}

// feed is what a run reads from standard input.
func feed(env *cli.Env, text []byte) {
	env.Streams.In.Reader = strings.NewReader(string(text))
}

// dying is the host that a run dies on, if it is to.
func dying(h host.Host) (*host.Crashing, bool) {
	if s, ok := h.(*stopping); ok {
		h = s.Host
	}
	c, ok := h.(*host.Crashing)
	return c, ok
}

// answers runs a command line as another sled's sledctl does.
func (s *sled) answers(ctx context.Context, h host.Host, words []string, stdin []byte) migration.Answer {
	env, out, errs := commands.On(h, nil)
	feed(env, stdin)
	exit := commands.Run(ctx, env, words)
	return migration.Answer{Exit: exit, Stdout: out.Bytes(), Stderr: errs.Bytes()}
}

// try runs a command line, however it ends.
func (s *sled) try(line string) answer { return s.on(s.t.Context(), s.Host(), line) }

// run runs a command line that must succeed, and gives what it prints.
func (s *sled) run(line string) string {
	s.t.Helper()
	a := s.try(line)
	if a.exit != 0 {
		s.t.Fatalf("sledctl %s: exit %d: %s", line, a.exit, a.errs)
	}
	return a.out
}

// command runs a command of the host, as an operator would next to sledctl.
func (s *sled) command(line string) {
	s.t.Helper()
	words := strings.Fields(line)
	r, err := s.Host().Run(s.t.Context(), host.Command{Program: words[0], Args: words[1:]})
	if err != nil || r.Exit != 0 {
		s.t.Fatalf("%s: exit %d, %s%v", line, r.Exit, r.Stderr, err)
	}
}

// world is all that is on the sled, but for counters, times and what is drawn:
// the witness on the pools names ids of the ledger.
func (s *sled) world() string {
	s.t.Helper()
	data, err := sim.Comparable(s.t.Context(), s.World())
	if err != nil {
		s.t.Fatal(err)
	}
	witness := regexp.MustCompile(`("sledctl:ledger": )"[^"]*"`)
	return witness.ReplaceAllString(string(data), `$1"WITNESS"`)
}

// same fails the test if the sled is not as it was.
func (s *sled) same(before, when string) {
	s.t.Helper()
	if diff := cmp.Diff(strings.Split(before, "\n"), strings.Split(s.world(), "\n")); diff != "" {
		s.t.Fatalf("%s (-before +after):\n%s", when, diff)
	}
}

// repeatable is a source of ids that gives the same ones for the same name.
func repeatable(name string) func() string {
	var mu sync.Mutex
	n := uint64(0)
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		n++
		return uuid.NewSHA1(uuid.NameSpaceOID, []byte(name+" "+string(rune('0'+n)))).String()
	}
}
