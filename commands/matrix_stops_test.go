package commands_test

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
)

// Ways to be stopped next to those that only a crash knows: by signals, by somebody
// who reads no more, and by whoever started it; at each command of the host, also
// at those that only look, while it runs, and at each change of a zone's or a
// service's state.

// The points at which a verb is stopped.
const (
	look point = "look" // a command, also one that only looks
	turn point = "turn" // a change of a zone's or a service's state
	once point = "once" // the whole of it
)

// stops are the ways, as modes of the matrix. Of each, one point is taken of each
// verb where time matters.
func stops() []mode {
	const term, interrupt, hangup = syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP
	return []mode{
		{name: "killed while a command runs", of: look, disturb: stopped(amid, (*victim).kill)},
		{name: "killed at a change of state", of: turn, disturb: turned((*victim).kill)},
		{name: "SIGTERM before a command", of: look, disturb: stopped(ahead, signals(term))},
		{name: "SIGINT while a command runs", of: look, disturb: stopped(amid, signals(interrupt))},
		{name: "SIGHUP after a command", of: look, disturb: stopped(behind, signals(hangup))},
		{name: "SIGTERM at a change of state", of: turn, disturb: turned(signals(term))},
		{name: "SIGTERM twice at once", of: look, disturb: stopped(amid, signals(term, term))},
		{name: "SIGTERM, and later SIGINT", of: look, disturb: stopped(behind, (*victim).insist)},
		{name: "its parent dies", of: look, disturb: stopped(amid, (*victim).orphan)},
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

// insist sends one, and another when nothing has come of it.
func (v *victim) insist() {
	signals(syscall.SIGTERM)(v)
	time.Sleep(2 * time.Second)
	signals(syscall.SIGINT)(v)
}

// orphan is the end of the session: nobody reads any more, and a hangup.
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
func (v *victim) run(h host.Host, tune func(*cli.Env)) answer {
	v.scene.t.Helper()
	a := v.scene.tuned(v.scene.t.Context(), h, v.scene.told(), func(env *cli.Env, run func(context.Context) int) int {
		tune(env)
		ctx, done := env.Interruptible(v.scene.t.Context(), v.signals, func(status int) { v.status = status; v.dying.Die() })
		defer done()
		return run(ctx)
	})
	v.dying.Wait()
	return a
}

// moment is when at a command something happens.
type moment string

const (
	ahead  moment = "before"
	amid   moment = "while"
	behind moment = "after"
)

// stopping is a host at whose n-th command something happens.
type stopping struct {
	host.Host
	at   int // 0: never, to count them
	when moment
	do   func()

	mu    sync.Mutex
	count int
	what  string
}

func (s *stopping) Run(ctx context.Context, c host.Command) (r host.Result, err error) {
	s.mu.Lock()
	s.count++
	hit := s.count == s.at
	if hit {
		s.what = strings.Join(append([]string{c.Program}, c.Args...), " ")
	}
	s.mu.Unlock()
	if !hit {
		return s.Host.Run(ctx, c)
	}
	switch s.when {
	case ahead:
		s.do()
		r, err = s.Host.Run(ctx, c)
	case behind:
		r, err = s.Host.Run(ctx, c)
		s.do()
	case amid:
		ended := make(chan struct{})
		go func() { r, err = s.Host.Run(ctx, c); close(ended) }()
		time.Sleep(time.Nanosecond) // of the bubble: it runs, where it takes any time
		s.do()
		<-ended
	}
	return r, err
}

// stopped is a verb to which something happens at its n-th command.
func stopped(when moment, do func(*victim)) func(*scene, int) int {
	return func(s *scene, n int) int {
		witness := s.witness(s.Host())
		v, tune := s.victim(witness)
		h := &stopping{Host: v.dying, at: n, when: when, do: func() { do(v) }}
		a := v.run(h, tune)
		witness.law(s.t, s.line)
		v.judge(fmt.Sprintf("%s command %d (%s)", when, n, h.what), a)
		return a.exit
	}
}

// turned is a verb to which something happens at the n-th change of a state.
func turned(do func(*victim)) func(*scene, int) int {
	return func(s *scene, n int) int {
		witness := s.witness(s.Host())
		v, tune := s.victim(witness)
		what := ""
		stop := s.turns(func(at int, is string) {
			if at == n {
				what = is
				do(v)
			}
		})
		a := v.run(v.dying, tune)
		stop()
		witness.law(s.t, s.line)
		v.judge(fmt.Sprintf("at change %d of a state (%s)", n, what), a)
		return a.exit
	}
}

// turns tells of each change of the state of a zone or a service, until stopped.
// Those that are one for whoever looks are told as one.
func (s *sled) turns(tell func(n int, is string)) (stop func()) {
	ctx, cancel := context.WithCancel(s.t.Context())
	var watching sync.WaitGroup
	was := s.states()
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

func (s *sled) states() (all map[string]string) {
	s.t.Helper()
	if err := s.World().View(s.t.Context(), func(tx *world.Tx) error { all = statesOf(tx); return nil }); err != nil {
		s.t.Fatal(err)
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
func (v *victim) judge(where string, a answer) {
	s := v.scene
	s.t.Helper()
	at := fmt.Sprintf("sledctl %s stopped %s", s.line, where)
	switch {
	case v.status != 0: // nothing was undone, and it has said so
		if v.status != 3 && v.status != 130 {
			s.t.Fatalf("%s: exit %d: %s", at, v.status, a.errs)
		}
	case v.dying.Crashed(), v.err.broken != nil: // nobody has heard anything
	case a.exit == 130 && (s.alters || slices.Contains([]string{"bootstrap", "storage rekey"}, s.line)): // what was set stays so, and so do those of many that are done
	case a.exit == 130 && strings.Contains(s.line, "--all"): // what is done stays so; with the others nothing was begun
		if told := leftOf(s.t, a); len(told) > 0 {
			s.t.Errorf("%s: exit 130, and %q is left", at, told)
		}
		if strings.HasPrefix(s.line, "reap") {
			s.nothingNew(at)
		} else {
			s.exactly(at, nil, false)
		}
	case a.exit == 130 && !s.plain:
		if told := leftOf(s.t, a); len(told) == 0 {
			s.undone(at, a)
		} else {
			s.t.Errorf("%s: exit 130, and %q is left", at, told)
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
		idle := slices.Contains([]int{1, 141}, a.exit) && s.points[command] == 0 && maps.Equal(s.ledger(), s.recorded) // there was nothing to do
		if !idle && !slices.Contains([]int{0, 3}, a.exit) || a.exit == 3 && !strings.Contains(a.errs, "it is done, but its result could not be printed") {
			s.t.Fatalf("%s: exit %d: %s", at, a.exit, a.errs)
		}
		for _, line := range s.then {
			s.run(line)
		}
		s.led(at)
		return a.exit
	}
}

// Signals that come while nothing runs, and two that are one, end nothing by
// themselves.
func TestASignalIsHeardOnce(t *testing.T) {
	s := newSled(t, small(), "")
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
