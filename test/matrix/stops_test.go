package matrix

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sledctl/sledctl/commands"
	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/smf"
	"github.com/sledctl/sledctl/test/sledtest"
)

// Further ways to be stopped: by signals, by a reader that stops reading, and by the
// end of the parent process; at each command of the host, also at those that only
// look, while it runs, and at each change of a zone's or a service's state.

// The points at which a verb is stopped.
const (
	look sledtest.Point = "look" // a command, also one that only looks
	turn sledtest.Point = "turn" // a change of a zone's or a service's state
	once sledtest.Point = "once" // the whole of it
)

// stops are the ways, as modes of the matrix. Of each, one point is taken of each
// verb where time matters.
func stops() []mode {
	const term, interrupt, hangup = syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP
	return []mode{
		{name: "killed while a command runs", of: look, disturb: stopped(sledtest.Amid, (*victim).kill)},
		{name: "killed at a change of state", of: turn, disturb: turned((*victim).kill)},
		{name: "SIGTERM before a command", of: look, disturb: stopped(sledtest.Ahead, signals(term))},
		{name: "SIGINT while a command runs", of: look, disturb: stopped(sledtest.Amid, signals(interrupt))},
		{name: "SIGHUP after a command", of: look, disturb: stopped(sledtest.Behind, signals(hangup))},
		{name: "SIGTERM at a change of state", of: turn, disturb: turned(signals(term))},
		{name: "SIGTERM twice at once", of: look, disturb: stopped(sledtest.Amid, signals(term, term))},
		{name: "SIGTERM, and later SIGINT", of: look, disturb: stopped(sledtest.Behind, (*victim).insist)},
		{name: "its parent dies", of: look, disturb: stopped(sledtest.Amid, (*victim).orphan)},
		{name: "standard output is closed", of: once, disturb: unread(syscall.EPIPE)},
		{name: "standard output is full", of: once, disturb: unread(syscall.ENOSPC)},
	}
}

// victim is a run that is to be stopped.
type victim struct {
	scene   *scene
	dying   *host.Crashing
	signals chan os.Signal
	out     *pipe
	err     *pipe
	status  int // with which a signal ended it at once; 0: none did
}

// pipe is an output of which somebody reads until it is broken.
type pipe struct {
	mu     sync.Mutex
	broken error
	to     interface{ Write([]byte) (int, error) }
}

func (p *pipe) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken != nil {
		return 0, p.broken
	}
	return p.to.Write(data)
}

func (p *pipe) close(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = why
}

func (v *victim) kill() { v.dying.Die() }

// signals sends some, at once.
func signals(all ...os.Signal) func(*victim) {
	return func(v *victim) {
		for _, sig := range all {
			v.signals <- sig
		}
		time.Sleep(time.Nanosecond) // of the bubble: until it was heard
	}
}

// insist sends one, and another if the first had no effect.
func (v *victim) insist() {
	signals(syscall.SIGTERM)(v)
	time.Sleep(2 * time.Second)
	signals(syscall.SIGINT)(v)
}

// orphan is the end of the session: no process reads the output, and a hangup.
func (v *victim) orphan() {
	v.out.close(syscall.EIO)
	v.err.close(syscall.EIO)
	signals(syscall.SIGHUP)(v)
}

// victim prepares a run.
func (s *scene) victim(h host.Host) (*victim, func(*cli.Env)) {
	v := &victim{scene: s, dying: host.Crash(h, 0, host.CrashBefore), signals: make(chan os.Signal, 2)}
	return v, func(env *cli.Env) {
		v.out, v.err = &pipe{to: env.Streams.Out.Writer}, &pipe{to: env.Streams.Err.Writer}
		env.Streams.Out.Writer, env.Streams.Err.Writer = v.out, v.err
	}
}

// run runs the verb on a host until it ends or is ended.
func (v *victim) run(h host.Host, tune func(*cli.Env)) sledtest.Answer {
	v.scene.T.Helper()
	a := v.scene.Tuned(v.scene.T.Context(), h, v.scene.told(), func(env *cli.Env, run func(context.Context) int) int {
		tune(env)
		ctx, done := env.Interruptible(v.scene.T.Context(), v.signals, func(status int) { v.status = status; v.dying.Die() })
		defer done()
		return run(ctx)
	})
	v.dying.Wait()
	return a
}

// stopped is a verb to which something happens at its n-th command.
func stopped(when sledtest.Moment, do func(*victim)) func(*scene, int) int {
	return func(s *scene, n int) int {
		witness := s.witness(s.Host())
		v, tune := s.victim(witness)
		h := &sledtest.Stopping{Host: v.dying, At: n, When: when, Do: func() { do(v) }}
		a := v.run(h, tune)
		witness.law(s.T, s.line)
		v.judge(fmt.Sprintf("%s command %d (%s)", when, n, h.What), a)
		return a.Exit
	}
}

// turned is a verb to which something happens at the n-th change of a state.
func turned(do func(*victim)) func(*scene, int) int {
	return func(s *scene, n int) int {
		witness := s.witness(s.Host())
		v, tune := s.victim(witness)
		what := ""
		stop := turnsOf(s.Operator, func(at int, is string) {
			if at == n {
				what = is
				do(v)
			}
		})
		a := v.run(v.dying, tune)
		stop()
		witness.law(s.T, s.line)
		v.judge(fmt.Sprintf("at change %d of a state (%s)", n, what), a)
		return a.Exit
	}
}

// turnsOf reports each change of the state of a zone or a service, until stopped.
// Changes that look like one to an observer are reported as one.
func turnsOf(s *sledtest.Operator, tell func(n int, is string)) (stop func()) {
	ctx, cancel := context.WithCancel(s.T.Context())
	var watching sync.WaitGroup
	was := states(s)
	watching.Go(func() {
		for n := 1; ; n++ {
			var now map[string]string
			if s.World().Wait(ctx, func(tx *world.Tx) bool { now = statesOf(tx); return !equal(was, now) }) != nil {
				return
			}
			what := ""
			for name, state := range now {
				if was[name] != state {
					what = max(what, name+": "+state)
				}
			}
			was = now
			tell(n, what)
		}
	})
	return func() { cancel(); watching.Wait() }
}

func states(s *sledtest.Operator) (all map[string]string) {
	s.T.Helper()
	if err := s.World().View(s.T.Context(), func(tx *world.Tx) error { all = statesOf(tx); return nil }); err != nil {
		s.T.Fatal(err)
	}
	return all
}

// statesOf are those of all zones and of Propolis' services.
func statesOf(tx *world.Tx) map[string]string {
	all := map[string]string{}
	for _, z := range tx.State.Zones {
		all[z.Name] = z.State
		if services := tx.State.Services[z.Name]; services != nil {
			for fmri, i := range services.Instances {
				if strings.Contains(fmri, "propolis") || strings.Contains(fmri, "single-user") {
					state, next := smf.State(i, tx.Now)
					all[z.Name+" "+fmri] = state + ">" + next
				}
			}
		}
	}
	return all
}

func equal(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for key, value := range a {
		if b[key] != value {
			return false
		}
	}
	return true
}

// judge holds what a run said that was stopped against what is so.
func (v *victim) judge(where string, a sledtest.Answer) {
	s := v.scene
	s.T.Helper()
	at := fmt.Sprintf("sledctl %s stopped %s", s.line, where)
	switch {
	case v.status != 0: // nothing was undone, and it has said so
		if v.status != 3 && v.status != 130 {
			s.T.Fatalf("%s: exit %d: %s", at, v.status, a.Errs)
		}
	case v.dying.Crashed(), v.err.broken != nil: // nobody has heard anything
	case a.Exit == 130 && (s.alters || slices.Contains([]string{"bootstrap", "storage rekey"}, s.line)): // what was set stays so, and so do those of many that are done
	case a.Exit == 130 && strings.Contains(s.line, "--all"): // what is done stays so; with the others nothing was begun
		if told := sledtest.LeftOf(s.T, a); len(told) > 0 {
			s.T.Errorf("%s: exit 130, and %q is left", at, told)
		}
		if strings.HasPrefix(s.line, "reap") {
			s.nothingNew(at)
		} else {
			s.exactly(at, nil, false)
		}
	case a.Exit == 130 && !s.plain:
		if told := sledtest.LeftOf(s.T, a); len(told) == 0 {
			s.undone(at, a)
		} else {
			s.T.Errorf("%s: exit 130, and %q is left", at, told)
		}
	default:
		s.truth(at, a, "")
	}
	s.laws(at)
}

// unread is a verb whose result cannot be printed: the change stands, and that is
// said.
func unread(why error) func(*scene, int) int {
	return func(s *scene, _ int) int {
		at := fmt.Sprintf("sledctl %s, whose result cannot be printed (%v)", s.line, why)
		v, tune := s.victim(s.Host())
		a := v.run(v.dying, func(env *cli.Env) { tune(env); v.out.close(why) })
		idle := slices.Contains([]int{1, 141}, a.Exit) && s.points[sledtest.AtCommand] == 0 && maps.Equal(s.Ledger(), s.recorded) // there was nothing to do
		if !idle && !slices.Contains([]int{0, 3}, a.Exit) || a.Exit == 3 && !strings.Contains(a.Errs, "it is done, but its result could not be printed") {
			s.T.Fatalf("%s: exit %d: %s", at, a.Exit, a.Errs)
		}
		for _, line := range s.then {
			s.Run(line)
		}
		s.led(at)
		return a.Exit
	}
}

// Signals that come while nothing runs, and two that are one, end nothing by
// themselves.
func TestASignalIsHeardOnce(t *testing.T) {
	s := sledtest.New(t, sledtest.Small(), "")
	env, _, errs := commands.On(s.Host(), nil)
	signals := make(chan os.Signal, 2)
	ended := false
	ctx, done := env.Interruptible(t.Context(), signals, func(int) { ended = true })
	signals <- syscall.SIGTERM
	signals <- syscall.SIGTERM
	<-ctx.Done()
	done()
	if ended || strings.Count(errs.String(), "SIGTERM") != 1 {
		t.Errorf("two signals at once: ended %v: %s", ended, errs)
	}
}
