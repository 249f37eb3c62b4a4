package commands_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/commands"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/smf"
	"github.com/sledctl/sledctl/test/sledtest"
)

// watched is a command line that goes on, and what it has printed.
type watched struct {
	cancel context.CancelCauseFunc
	done   chan sledtest.Answer
	mu     sync.Mutex
	lines  strings.Builder
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lines.Write(p)
}

// said is what was printed since the last time.
func (w *watched) said() string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.lines.String()
	w.lines.Reset()
	return s
}

// beginOf runs a command line next to the test.
func beginOf(s *sledtest.Operator, h host.Host, line string) *watched {
	ctx, cancel := context.WithCancelCause(s.T.Context())
	w := &watched{cancel: cancel, done: make(chan sledtest.Answer, 1)}
	env, _, errs := commands.On(h, nil)
	env.Streams.Out.Writer = w
	go func() {
		exit := commands.Run(ctx, env, strings.Fields(line))
		w.done <- sledtest.Answer{Exit: exit, Errs: errs.String()}
	}()
	return w
}

// end stops it, as ^C does.
func (w *watched) end() sledtest.Answer {
	w.cancel(context.Canceled)
	return <-w.done
}

func TestEachChangeOfAnInstanceIsPrinted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := sledtest.New(t, sledtest.Small(), "")
		s.Run("bootstrap")
		s.Run("instance ensure web1")
		w := beginOf(s, s.Host(), "instance watch -H --columns name,state,reason")
		is := func(when, want string) {
			t.Helper()
			time.Sleep(3 * time.Second) // of the bubble's own
			if got := w.said(); got != want {
				t.Errorf("%s: %q, want %q", when, got, want)
			}
		}
		is("at first", "web1\trunning\t-\n")
		is("when nothing happens", "")
		s.Run("propolis stop --instance web1")
		is("powered off", "web1\tdestroyed\t-\n")
		s.Run("instance ensure web1")
		is("again", "web1\trunning\t-\n")
		crash(s, "web1")
		is("its server has died", "web1\trunning\tPropolis cannot be reached: unexpected EOF\nweb1\tfailed\tPropolis restarted and lost the VM\n")
		s.Run("instance ensure web1")
		is("again", "web1\trunning\t-\n")
		zone := strings.Fields(s.Run("instance get web1 -H --columns zone"))[0]
		s.Command("zoneadm -z " + zone + " halt")
		is("its zone was halted", "web1\tfailed\tits zone is installed, not running\n")
		s.Run("instance stop web1")
		is("stopped", "web1\tstopped\t-\n")
		s.Run("instance ensure web2")
		is("another one", "web2\trunning\t-\n")
		s.Run("instance delete web1 web2")
		got := w.said()
		time.Sleep(3 * time.Second)
		got += w.said()
		for _, want := range []string{"web1\tabsent\tit was deleted\n", "web2\tabsent\tit was deleted\n"} {
			if !strings.Contains(got, want) {
				t.Errorf("deleted: %q", got)
			}
		}
		if a := w.end(); a.Exit != 130 {
			t.Errorf("exit %d: %s", a.Exit, a.Errs)
		}
	})
}

// crash kills the Propolis of an instance; its service starts it again.
func crash(s *sledtest.Operator, name string) {
	s.T.Helper()
	zone := strings.Fields(s.Run("instance get " + name + " -H --columns zone"))[0]
	err := s.World().Update(s.T.Context(), func(tx *world.Tx) error {
		for _, p := range tx.State.Processes {
			if p.Zone == zone {
				smf.Exit(tx, p.PID)
				return nil
			}
		}
		return errors.New("no Propolis in " + zone)
	})
	if err != nil {
		s.T.Fatal(err)
	}
}

func TestWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := sledtest.New(t, sledtest.Small(), "")
		s.Run("bootstrap")
		s.Run("instance ensure web1")
		s.Run("instance ensure web2")
		s.Run("instance wait web1 web2 --for running")
		s.Run("instance wait nobody --for absent")
		for line, want := range map[string]sledtest.Answer{
			"instance wait nobody --for running":                {Exit: 4, Errs: `no instance "nobody"`},
			"instance wait web1 --for stopped --timeout 1m":     {Exit: 7, Errs: "not yet stopped: web1 is running"},
			"instance wait web1 --for runing":                   {Exit: 2, Errs: "did you mean: --for running"},
			"instance wait web1":                                {Exit: 2, Errs: "--for is missing"},
			"instance wait web1 web2 --for absent --timeout 1s": {Exit: 7, Errs: "web1 is running, web2 is running"},
		} {
			if a := s.Try(line); a.Exit != want.Exit || !strings.Contains(a.Errs, want.Errs) {
				t.Errorf("%s: exit %d, %s", line, a.Exit, a.Errs)
			}
		}
		ends := func(line string, exit int, meanwhile func()) {
			t.Helper()
			w := beginOf(s, s.Host(), line)
			if time.Sleep(time.Minute); w.said() != "" || len(w.done) > 0 {
				t.Fatalf("%s does not wait", line)
			}
			meanwhile()
			begun := time.Now()
			a := <-w.done
			if a.Exit != exit || time.Since(begun) > 3*time.Second {
				t.Errorf("%s: exit %d after %s: %s", line, a.Exit, time.Since(begun), a.Errs)
			}
		}
		ends("instance wait web1 web2 --for stopped", 0, func() {
			s.Run("propolis stop --instance web1")
			s.Run("instance stop web2")
		})
		ends("instance wait web1 --for running", 0, func() { s.Run("instance ensure web1") })
		ends("instance wait web1 --for failed", 0, func() { crash(s, "web1") })
		if a := s.Try("instance wait web1 --for running"); a.Exit != 1 || !strings.Contains(a.Errs, "lost the VM") || !strings.Contains(a.Errs, "sledctl instance ensure web1") {
			t.Errorf("what has failed is waited for: exit %d %s", a.Exit, a.Errs)
		}
		s.Run("instance ensure web1")
		ends("instance wait web1 --for stopped", 1, func() { crash(s, "web1") })
		ends("instance wait web2 --for running", 1, func() { s.Run("instance delete web2") })
		ends("instance wait web1 --for absent", 0, func() { s.Run("instance delete web1") })
	})
}

// What has failed is waited for as long as somebody builds it again.
func TestWhoWaitsCountsOnWhoIsAtWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := sledtest.New(t, sledtest.Small(), "")
		s.Run("bootstrap")
		s.Run("instance ensure web1")
		crash(s, "web1")
		h := &halting{Host: s.Host(), word: "halt", at: make(chan struct{}), let: make(chan struct{})}
		built := make(chan sledtest.Answer, 1)
		go func() { built <- s.On(t.Context(), h, "instance ensure web1") }()
		<-h.at
		w := beginOf(s, s.Host(), "instance wait web1 --for running")
		if time.Sleep(time.Minute); len(w.done) > 0 {
			t.Errorf("it did not wait: %+v", <-w.done)
		}
		close(h.let)
		if a := <-built; a.Exit != 0 {
			t.Fatalf("ensure: exit %d: %s", a.Exit, a.Errs)
		}
		if a := <-w.done; a.Exit != 0 {
			t.Errorf("exit %d: %s", a.Exit, a.Errs)
		}
	})
}

// connections counts those that are open.
type connections struct {
	host.Host
	open, most atomic.Int64
}

func (c *connections) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := c.Host.Dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	now := c.open.Add(1)
	for most := c.most.Load(); now > most && !c.most.CompareAndSwap(most, now); most = c.most.Load() {
	}
	return &counted{Conn: conn, closed: sync.OnceFunc(func() { c.open.Add(-1) })}, nil
}

type counted struct {
	net.Conn
	closed func()
}

func (c *counted) Close() error { c.closed(); return c.Conn.Close() }

// A crowd that is watched costs a connection each, and nothing else while
// nothing happens.
func TestACrowdIsWatched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := 40
		if testing.Short() {
			n = 8
		}
		s := sledtest.New(t, sledtest.Small(), "")
		s.Run("bootstrap")
		s.Crowd(n, func(name string) string { return "instance ensure " + name })
		h := &connections{Host: s.Host()}
		w := beginOf(s, h, "instance watch -H --columns name,state")
		time.Sleep(10 * time.Second)
		if lines := strings.Count(w.said(), "\trunning\n"); lines != n || h.open.Load() != int64(n) {
			t.Errorf("%d instances, %d connections", lines, h.open.Load())
		}
		time.Sleep(time.Hour)
		if said := w.said(); said != "" || h.most.Load() > 2*int64(n) {
			t.Errorf("%q, %d connections at once", said, h.most.Load())
		}
		if a := w.end(); a.Exit != 130 || h.open.Load() != 0 {
			t.Errorf("exit %d, %d connections are left", a.Exit, h.open.Load())
		}
	})
}
