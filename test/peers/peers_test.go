package peers_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sled/instance/migration"
	"github.com/sledctl/sledctl/test/peers"
	"github.com/sledctl/sledctl/test/sledtest"
)

// asked is a command line that talks to a peer.
type asked struct {
	peer peers.Peer
	on   string // the sled that it is run on: see peerSleds
	line string
	// within is how long it may take at most.
	within time.Duration
	// requests is how many it makes of a peer that is well.
	requests int
	// exit is what it comes to once the peer is well again, and leads to what the
	// instances are then; empty: nothing is changed.
	exit  int
	leads string
}

const agentAt = " --agent http://127.0.0.1:7070"

// askedVerbs are all that talk to a peer.
func askedVerbs() []asked {
	const short, bound, wait = 6 * time.Second, 11 * time.Second, 41 * time.Second
	const up, down, gone = "web1\trunning\n", "web1\tstopped\n", ""
	return []asked{
		{peers.Propolis, "running", "instance list -o json", short, 2, 0, up},
		{peers.Propolis, "running", "instance get web1 -o json", short, 2, 0, up},
		{peers.Propolis, "running", "instance watch web1 --timeout 10s", bound, 2, 7, up},
		{peers.Propolis, "running", "instance wait web1 --for stopped --timeout 10s", bound, 2, 7, up},
		{peers.Propolis, "running", "instance console web1 --timeout 40s", wait, 4, 7, up},
		{peers.Propolis, "running", "instance console web1 --history --timeout 10s", bound, 3, 0, up},
		{peers.Propolis, "running", "instance console web1 --vnc --timeout 10s", bound, 2, 7, up},
		{peers.Propolis, "running", "instance ensure web1 --timeout 10s", bound, 4, 0, up},
		{peers.Propolis, "running", "instance reboot web1 --timeout 10s", bound, 5, 0, up},
		{peers.Propolis, "running", "instance stop web1 --grace 30s", wait, 4, 0, down},
		{peers.Propolis, "running", "instance delete web1 --timeout 15m", 15*time.Minute + time.Second, 4, 0, gone},
		{peers.Propolis, "stopped", "instance start web1 --timeout 10s", bound, 6, 0, up},
		{peers.Propolis, "empty", "instance ensure web1 --timeout 10s", bound, 6, 0, up},
		{peers.Propolis, "running", "propolis get --instance web1 --timeout 10s", bound, 2, 0, up},
		{peers.Propolis, "running", "propolis monitor --instance web1 --timeout 40s", wait, 3, 7, up},
		{peers.Propolis, "running", "propolis nmi --instance web1 --timeout 10s", bound, 3, 0, up},
		{peers.Propolis, "running", "propolis stop --instance web1 --timeout 10s", bound, 4, 0, ""},
		{peers.Propolis, "running", "propolis reboot --instance web1 --timeout 10s", bound, 5, 0, up},
		{peers.Propolis, "running", "propolis spec show web1 --running --timeout 10s", bound, 1, 0, up},
		{peers.Propolis, "moving", "instance migrate web1 --to-command there --timeout 1m", 63 * time.Second, 10, 0, ""},
		{peers.Propolis, "arriving", "instance migrate web1 --to-command there --timeout 1m", 63 * time.Second, 6, 0, ""},
		{peers.NAPI, "napi", "nics list --timeout 1m", 61 * time.Second, 2, 0, ""},
		{peers.NAPI, "napi", "nics sync --timeout 1m", 61 * time.Second, 2, 0, ""},
		{peers.Agent, "agent", "instance list --timeout 10s -o json" + agentAt, bound, 1, 0, ""},
		{peers.Agent, "agent", "instance get web1 --timeout 10s" + agentAt, bound, 1, 0, ""},
		{peers.Agent, "agent", "instance watch web1 --timeout 10s" + agentAt, bound, 1, 7, ""},
		{peers.Agent, "agent", "instance wait web1 --for stopped --timeout 10s" + agentAt, bound + 2*time.Second, 2, 7, ""},
		{peers.Agent, "agent", "instance ensure web1 --timeout 10s" + agentAt, bound, 1, 0, up},
		{peers.Agent, "agent", "instance stop web1 --timeout 10s" + agentAt, bound, 1, 0, down},
		{peers.Agent, "agent", "instance delete web1 --timeout 10s" + agentAt, bound, 1, 0, gone},
	}
}

// peerSleds are the sleds that they are run on, each laid out once.
type peerSleds map[string]*peerSled

type peerSled struct {
	sled, there *sim.Sled
	at          time.Time
	ours        []string
}

func layPeers(t *testing.T) peerSleds {
	all := peerSleds{}
	keep := func(name string, s *sledtest.Operator) {
		p := &peerSled{sled: s.Clone(), at: time.Now(), ours: []string{sledtest.FirstCN}}
		if s.There != nil {
			p.there = s.There.Clone()
		}
		if a := s.Try("instance get web1 -H --columns id,propolis_id"); a.Exit == 0 {
			p.ours = append(p.ours, strings.Fields(a.Out)...)
		}
		all[name] = p
	}
	synctest.Test(t, func(t *testing.T) {
		s := sledtest.New(t, sledtest.Small(), sledtest.TunedConfig)
		s.Run("bootstrap")
		keep("empty", s)
		s.Run("instance ensure web1")
		keep("running", s)
		keep("agent", s)
		s.Run("instance stop web1")
		keep("stopped", s)
	})
	synctest.Test(t, func(t *testing.T) {
		d := sledtest.NewDatacentre(t)
		keep("napi", d.A)
		d.A.There = nil
	})
	synctest.Test(t, func(t *testing.T) {
		m := sledtest.NewMoving(t)
		defer func() { all["arriving"] = all["moving"] }()
		all["moving"] = &peerSled{sled: m.Source, there: m.Target, at: m.At, ours: all["running"].ours}
		s := &sledtest.Operator{Sled: m.Source.Clone(), T: t}
		t.Cleanup(s.Close)
		all["moving"].ours = append([]string{sledtest.FirstCN}, strings.Fields(s.Run("instance get web1 -H --columns id,propolis_id"))...)
	})
	return all
}

// From is from which of its requests on a peer misbehaves: from the first, and, of
// those that ask several times, from each of the next ones in turn.
func TestPeersThatMisbehave(t *testing.T) {
	sleds := layPeers(t)
	all, n := 0, 0
	for _, v := range askedVerbs() {
		t.Run(strings.ReplaceAll(v.line, "/", " "), func(t *testing.T) {
			for i, w := range peers.Of(v.peer) {
				if w.Whole && (v.on == "stopped" || v.on == "empty") {
					continue // there is no machine yet
				}
				for _, from := range []int{0, 1 + i%max(1, v.requests-1)} {
					if from > 0 && (v.requests == 1 || w.Whole) {
						continue
					}
					if all++; testing.Short() && all%16 != 1 {
						continue
					}
					n++
					t.Run(fmt.Sprint(w.Name, " from ", from), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) { v.play(t, sleds[v.on], w, from) })
					})
				}
			}
		})
	}
	line := fmt.Sprintf("peers: %d verbs, %d cases\n", len(askedVerbs()), n)
	fmt.Print(line)
	if name := os.Getenv("SLEDCTL_PEERS"); name != "" && !t.Failed() { // go test hides what a package prints that passes
		if err := os.WriteFile(name, []byte(line), 0o666); err != nil {
			t.Error(err)
		}
	}
}

// play has a peer misbehave while a command line is run, and run again once it is well.
func (v asked) play(t *testing.T, on *peerSled, w peers.Way, from int) (asked int) {
	s := &sledtest.Operator{Sled: on.sled.Clone(), T: t, Lobby: &sledtest.Lobby{}}
	t.Cleanup(s.Close)
	time.Sleep(time.Until(on.at))
	if on.there != nil && v.peer == peers.Propolis {
		there := &sledtest.Operator{Sled: on.there.Clone(), T: t}
		t.Cleanup(there.Close)
		s.Meet(there)
	}
	if v.peer == peers.Agent {
		s.StartAgent(t, s.Host())
	}
	misled := s
	if v.on == "arriving" {
		misled = s.There
	}
	h := &peers.Host{Host: misled.Host(), Way: w, From: from, Ours: on.ours, Limit: 65 << 20, Is: func(address string) bool {
		return v.peer == peers.Agent || (address == sledtest.NAPIAddress) == (v.peer == peers.NAPI)
	}}
	run := func() (sledtest.Answer, time.Duration) {
		began := time.Now()
		here := host.Host(h)
		if misled != s {
			here = s.Host()
		}
		a := s.Tuned(t.Context(), here, v.line, func(env *cli.Env, run func(context.Context) int) int {
			env.Call = h.Misdial(s.Lobby.Come)
			if misled != s {
				env.Remote = func(ctx context.Context, words []string, stdin []byte) (migration.Answer, error) {
					return misled.Answers(ctx, h, words[1:], stdin), nil
				}
			}
			return run(t.Context())
		})
		return a, time.Since(began)
	}
	if strings.Contains(v.line, "--vnc") {
		go watchScreen(t.Context(), s.Lobby)
	}
	a, took := run()
	asked = h.Asked()
	if testing.Verbose() {
		t.Logf("%s\n   %d after %s, asked %d: %s%s", v.line, a.Exit, took, asked, a.Out, a.Errs)
	}
	switch {
	case asked <= from: // nobody misbehaved
	case took > v.within:
		t.Errorf("it took %s", took)
	case !v.names(a, from) && !(a.Exit == 0 && strings.Contains(v.line, "migrate")): // which may get there all the same
		t.Errorf("exit %d, and nothing names the peer: %s%s", a.Exit, a.Out, a.Errs)
	}
	if err := h.Fault(); err != nil {
		t.Error(err)
	}
	h.Cure()
	v.after(t, s, run)
	return asked
}

// watchScreen is a client of VNC that comes after a second, and takes what it gets.
func watchScreen(ctx context.Context, l *sledtest.Lobby) {
	time.Sleep(time.Second)
	conn, err := l.Dial(ctx, "")
	if err != nil {
		return // nobody listens: the machine could not be asked
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_, _ = io.Copy(io.Discard, conn)
}

// names says whether the operator was told who misbehaved.
// A client that follows a VM whose state it has read cannot tell a hanging Propolis from
// a machine that stays as it is.
func (v asked) names(a sledtest.Answer, from int) bool {
	quiet := from > 0 && (strings.Contains(v.line, "watch") || strings.Contains(v.line, "wait")) && v.peer == peers.Propolis
	if v.on == "arriving" && strings.Contains(a.Errs, "the migration's source, ") {
		return true
	}
	return quiet || strings.Contains(strings.ToLower(a.Out+a.Errs), strings.ToLower(string(v.peer)))
}

// after is that the same command leads where it should once the peer is well, and
// that nothing is left of what was begun.
func (v asked) after(t *testing.T, s *sledtest.Operator, run func() (sledtest.Answer, time.Duration)) {
	a, _ := run()
	if gone := strings.Contains(v.line, "migrate") && a.Exit == 4; a.Exit != v.exit && !gone {
		t.Errorf("when the peer is well again: exit %d, want %d: %s", a.Exit, v.exit, a.Errs)
	}
	if v.leads == "" {
		return
	}
	if now := s.Run("instance list -H --columns name,state"); now != v.leads {
		t.Errorf("when the peer is well again it leads to %q, want %q", now, v.leads)
	}
	if a := s.Try("ledger check"); a.Exit != 0 {
		t.Errorf("ledger check: %s%s", a.Out, a.Errs)
	}
}
