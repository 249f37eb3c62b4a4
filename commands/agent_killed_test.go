package commands_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/sledtest"
)

// life is a VM's, by commands that are run next to the agent.
func life() []string {
	return []string{
		"instance ensure web1", "instance reboot web1", "instance ensure web1 --cpus 4 --recreate", "instance stop web1", "instance start web1", "instance delete web1",
	}
}

// watchman runs agents one after the other on a sled, and notes the state for which
// each generation was given, to the control plane or to a client.
type watchman struct {
	*sledtest.Operator
	agent   *sledtest.Agent
	gone    context.CancelFunc // ends those who listen to it
	stopped sync.WaitGroup

	mu   sync.Mutex
	said map[uint64]string // by generation
	odd  []string
}

// start runs an agent on a host.
func (w *watchman) start(t *testing.T, h host.Host) {
	t.Helper()
	w.agent = w.Operator.StartAgent(t, h)
	var ctx context.Context
	ctx, w.gone = context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://sled/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := w.agent.Client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	w.stopped.Go(func() {
		defer reply.Body.Close()
		for lines := bufio.NewScanner(reply.Body); lines.Scan(); {
			var v struct {
				ID         string `json:"propolis_id"`
				State      string
				Generation uint64
			}
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && json.Unmarshal([]byte(data), &v) == nil {
				w.note(v.Generation, v.ID, v.State)
			}
		}
	})
}

// kill ends the agent, as far as it is not dead already. What it held is free.
func (w *watchman) kill() {
	w.gone()
	w.agent.Stop()
	w.stopped.Wait()
}

// note notes what a generation was given for: one state of one VM.
func (w *watchman) note(gen uint64, id, state string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := id + " " + state
	if before, ok := w.said[gen]; ok && before != now {
		w.odd = append(w.odd, fmt.Sprintf("generation %d was given for %s and for %s", gen, before, now))
	}
	w.said[gen] = now
}

// laws are those of an agent that was killed: in the end the control plane's view is
// right, no generation was given twice, and no VM has ended because of the kill.
func (w *watchman) laws(at, other string) {
	w.T.Helper()
	time.Sleep(15 * time.Minute)
	err := w.World().View(w.T.Context(), func(tx *world.Tx) error {
		for _, c := range tx.State.Nexus.News {
			w.note(c.Gen, c.ID, c.State)
		}
		return nil
	})
	if err != nil {
		w.T.Fatal(err)
	}
	neverMissing(w.Operator)
	truth := map[string]string{}
	for _, said := range w.said { // whatever was ever said to be
		id, _, _ := strings.Cut(said, " ")
		truth[id] = "destroyed"
	}
	truth[other] = "running"
	if got := w.Knows(); !maps.Equal(got, truth) {
		w.T.Errorf("%s: the control plane knows %v, and the truth is %v", at, got, truth)
	}
	if state := w.Value("instance get other -H --columns state"); state != "running" {
		w.T.Errorf("%s: the other VM is %s", at, state)
	}
	for _, odd := range w.odd {
		w.T.Errorf("%s: %s", at, odd)
	}
}

// killedStage is where a VM's life begins next to an agent.
type killedStage struct {
	saved *sim.Sled
	at    time.Time
	other string // a VM that goes on, whatever happens to the agent
}

func newKilledStage(t *testing.T) *killedStage {
	s := sledtest.NearNexus(t, sim.NexusOptions{Era: "both"}, "")
	s.Run("instance ensure other")
	faults(s, func(tx *world.Tx) { tx.State.Latency = "helios2021" }) // else whole lives pass between two looks
	return &killedStage{saved: s.Sled.Clone(), at: time.Now(), other: s.Value("instance get other -H --columns propolis_id")}
}

func (g *killedStage) open(t *testing.T) *watchman {
	s := &sledtest.Operator{Sled: g.saved.Clone(), T: t, Lobby: &sledtest.Lobby{}}
	s.Agent = s.Lobby.Dial
	t.Cleanup(s.Close)
	time.Sleep(time.Until(g.at))
	return &watchman{Operator: s, said: map[uint64]string{}}
}

// live runs the life; it calls then after each command, when the agent has had time
// to react to it.
func (w *watchman) live(then func()) {
	for _, line := range life() {
		w.Run(line)
		time.Sleep(time.Second)
		then()
	}
	time.Sleep(5 * time.Minute) // until what has ended is forgotten
	then()
}

// The agent is killed at each thing that it does: what it writes, and each ring.
// The next one starts when the command that runs meanwhile has ended.
func TestTheAgentIsKilledAtAllThatItDoes(t *testing.T) {
	var g *killedStage
	points := 0
	synctest.Test(t, func(t *testing.T) {
		g = newKilledStage(t)
		w := g.open(t)
		counting := host.Crash(w.Host(), 0, host.CrashBefore)
		w.start(t, counting)
		w.live(func() {})
		w.kill()
		w.laws("undisturbed", g.other)
		points = counting.Points()
	})
	if points < 10 {
		t.Errorf("an agent that watches a VM's life does only %d things", points)
	}
	cases, missed := 0, 0
	for m, mode := range []host.CrashMode{host.CrashBefore, host.CrashAfter, host.CrashDuring} {
		for n := 1; n <= points; n++ {
			if every := share(3, 18); (n+m)%every != 0 {
				continue
			}
			cases++
			synctest.Test(t, func(t *testing.T) {
				if !g.killedAt(t, n, mode) {
					missed++
				}
			})
		}
	}
	t.Logf("%d cases of %d", cases, 3*points)
	if missed > 1+cases/10 {
		t.Errorf("%d of %d cases do not come to where the agent is killed", missed, cases)
	}
}

// share is one in how many cases is taken.
func share(usual, short int) int {
	switch {
	case sledtest.Soak():
		return 1
	case sledtest.Quick():
		return 4*short + 1
	case testing.Short():
		return short
	}
	return usual
}

func (g *killedStage) killedAt(t *testing.T, n int, mode host.CrashMode) (hit bool) {
	w := g.open(t)
	dying := host.Crash(w.Host(), n, mode)
	w.startDying(t, dying)
	again := false
	w.live(func() {
		if dying.Crashed() && !again {
			again = true
			w.kill()
			dying.Wait()
			w.start(t, w.Host())
		}
	})
	at := "killed " + dying.Where()
	if !again { // it does less when it finds several changes at once; so it dies at the end
		at = "killed at the end"
		dying.Die()
		w.kill()
		dying.Wait()
		w.start(t, w.Host())
	}
	w.laws(at, g.other)
	w.kill()
	return again
}

// startDying runs an agent that may die before it answers anybody.
func (w *watchman) startDying(t *testing.T, dying *host.Crashing) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan sledtest.Answer, 1)
	go func() { done <- w.On(ctx, dying, "agent --listen unix:/agent.sock") }()
	w.gone = func() {}
	w.agent = &sledtest.Agent{T: t, Sled: w.Operator, Stop: sync.OnceValue(func() sledtest.Answer { cancel(); return <-done })}
	time.Sleep(6 * time.Second)
}

// The agent is killed at each step of a VM's life: at each command, request and
// write of those who live it. The next one starts when that command has ended, or
// at the next step.
func TestTheAgentIsKilledAtEachStepOfALife(t *testing.T) {
	var g *killedStage
	steps := map[string]int{}
	synctest.Test(t, func(t *testing.T) {
		g = newKilledStage(t)
		w := g.open(t)
		for _, line := range life() {
			counting := host.Crash(w.Host(), 0, host.CrashBefore)
			if a := w.On(t.Context(), counting, line); a.Exit != 0 {
				t.Fatalf("%s: %s", line, a.Errs)
			}
			steps[line] = counting.Points()
		}
	})
	cases, all := 0, 0
	for l, line := range life() {
		for n := 1; n <= steps[line]; n++ {
			all++
			if every := share(6, 48); (n+l)%every != 0 {
				continue
			}
			cases++
			synctest.Test(t, func(t *testing.T) { g.killedDuring(t, line, n) })
		}
	}
	t.Logf("%d cases of %d: %v", cases, all, steps)
}

func (g *killedStage) killedDuring(t *testing.T, at string, n int) {
	w := g.open(t)
	w.start(t, w.Host())
	for _, line := range life() {
		if line != at {
			w.Run(line)
			time.Sleep(time.Second)
			continue
		}
		var mu sync.Mutex
		points := 0
		watched := host.Trace(w.Host(), func(e host.Event) {
			mu.Lock()
			defer mu.Unlock()
			if slices.Contains([]host.LineKind{host.LineRun, host.LineFile, host.LineRequest}, e.Line.Kind) {
				if points++; points == n {
					w.kill()
				}
			}
		})
		if a := w.On(t.Context(), watched, line); a.Exit != 0 {
			t.Fatalf("%s: exit %d: %s", line, a.Exit, a.Errs)
		}
		if points < n {
			w.kill()
		}
		w.start(t, w.Host())
		time.Sleep(time.Second)
	}
	w.laws(fmt.Sprintf("killed at step %d of %s", n, at), g.other)
	w.kill()
}
