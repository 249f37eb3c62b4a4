package commands_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/sledtest"
)

// A VM that the control plane registers lives by what it asks of the agent, and by
// what its guest does. The agent is killed over each of these steps, at each
// thing that it does because of it, and the next one keeps what was promised.

// The VM, and the instance that it is a run of.
const (
	promisedVM       = "0d6f9d0a-5a53-4a0f-8d9a-3f7f2f0c1d01"
	promisedInstance = "0d6f9d0a-5a53-4a0f-8d9a-3f7f2f0c1d02"
)

// lifeStep is one step of such a VM's life.
type lifeStep struct {
	name  string
	ready []string // what was asked before, and has come
	meant []string // what is asked just before, and goes on
	asked string   // register, running, reboot, stopped, delete; poweroff: its guest does; empty: nothing
	comes string   // the state that it comes to
	ends  bool     // asked again, it may be answered that the VM is gone
}

func lifeSteps() []lifeStep {
	runs := []string{"register", "running"}
	return []lifeStep{
		{name: "it is registered", asked: "register", comes: "starting"},
		{name: "it is to run", ready: runs[:1], asked: "running", comes: "running"},
		{name: "it runs", ready: runs, comes: "running"},
		{name: "it is reset", ready: runs, asked: "reboot", comes: "running"},
		{name: "it is to end", ready: runs, asked: "stopped", comes: "destroyed", ends: true},
		{name: "it is removed", ready: runs, asked: "delete", comes: "failed"},
		{name: "its guest ends it", ready: runs, asked: "poweroff", comes: "destroyed"},
		{name: "it is to end before it runs", ready: runs[:1], meant: runs[1:], asked: "stopped", comes: "destroyed", ends: true},
		{name: "it is removed before it runs", ready: runs[:1], meant: runs[1:], asked: "delete", comes: "failed"},
		{name: "it is to end, and never ran", ready: runs[:1], asked: "stopped", comes: "destroyed", ends: true},
		{name: "it is removed, and never ran", ready: runs[:1], asked: "delete", comes: "failed"},
	}
}

// final says whether the step ends the VM.
func (l lifeStep) final() bool { return l.comes == "destroyed" || l.comes == "failed" }

// lifeStage is where a step begins. No agent runs there.
type lifeStage struct {
	lifeStep
	killedStage
	body          string // that registers the VM
	before, after int    // points of an agent before the step is taken, and when all its effects have happened
}

func newLifeStage(t *testing.T, step lifeStep) *lifeStage {
	s := sledtest.NearNexus(t, sim.NexusOptions{Era: "both"}, "[agent]\nflat_network = true\n")
	s.Run("instance ensure other")
	faults(s, func(tx *world.Tx) { tx.State.Latency = "helios2021" }) // so that there is time between two things
	g := &lifeStage{lifeStep: step, body: sledtest.VMBody(t, 48, promisedInstance, 7).Text(t)}
	g.other = s.Value("instance get other -H --columns propolis_id")
	g.saved, g.at = s.Sled, time.Now()
	p := g.open(t, 0, host.CrashBefore)
	for _, asked := range step.ready {
		p.ask(asked)
		p.comes(map[string]string{"register": "starting", "running": "running"}[asked])
	}
	p.kill()
	g.saved, g.at = p.Sled.Clone(), time.Now()
	p = g.open(t, 0, host.CrashBefore)
	p.live()
	p.kill()
	return g
}

// patron is a control plane that asks an agent that dies.
type patron struct {
	*watchman
	*lifeStage
	t       *testing.T
	dying   *host.Crashing // nil: it did, and another one is there
	at      string         // where it died
	machine string         // the VM's, if it ran when the agent died
}

// open begins with an agent that dies at point n; 0: it does not.
func (g *lifeStage) open(t *testing.T, n int, mode host.CrashMode) *patron {
	p := &patron{watchman: g.killedStage.open(t), lifeStage: g, t: t, at: "undisturbed"}
	p.dying = host.Crash(p.Host(), n, mode).Kill(sync.OnceFunc(p.Lobby.Vanish))
	if n > 0 && n <= g.before {
		p.startDying(t, p.dying) // perhaps before it answers anybody
		p.agent.Client = &http.Client{Transport: &http.Transport{DialContext: p.Lobby.Come}}
	} else {
		p.start(t, p.dying)
		time.Sleep(time.Second)
	}
	p.lives()
	return p
}

// lives makes sure that an agent runs: it starts another one after one that has died,
// sometimes at once, sometimes later. It reports whether the first one still runs.
func (p *patron) lives() bool {
	if p.dying == nil {
		return false
	}
	if !p.dying.Crashed() {
		return true
	}
	p.at, p.machine = "killed "+p.dying.Where(), p.running()
	p.kill()
	p.dying.Wait()
	p.dying = nil
	time.Sleep(time.Duration(len(p.at)%2) * time.Minute)
	p.start(p.t, p.Host())
	return false
}

// running is the machine of the VM, if it runs.
func (p *patron) running() (which string) {
	err := p.World().View(p.t.Context(), func(tx *world.Tx) error {
		for _, process := range tx.State.Processes {
			if vm := process.VM; vm != nil && strings.HasSuffix(process.Zone, promisedVM) && world.At(vm.Timeline, tx.Now).State == "Running" {
				which = fmt.Sprint("process ", process.PID, " of ", process.Started, ", machine of ", vm.Timeline[0].From)
			}
		}
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return which
}

// ask asks for one thing until it is answered.
func (p *patron) ask(asked string) {
	p.t.Helper()
	method, path, body := http.MethodPut, "/vmms/"+promisedVM+"/state", fmt.Sprintf(`{"state":{"type":%q}}`, asked)
	switch asked {
	case "":
		return
	case "poweroff":
		powersItselfOff(p.watchman.Operator, promisedInstance)
		return
	case "register":
		path, body = "/vmms/"+promisedVM, p.body
	case "delete":
		method, path, body = http.MethodDelete, "/vmms/"+promisedVM, ""
	}
	for again := false; ; again = true {
		died := p.dying == nil
		status, answer, err := p.request(method, path, body)
		if err != nil && !died {
			time.Sleep(time.Second) // of who is killed, the connections go first
		}
		if !p.lives() && !died && err != nil {
			continue
		}
		if err != nil || status != http.StatusOK && !(again && p.ends && status == http.StatusGone) {
			p.t.Errorf("%s: %s: %d %s %v", p.at, asked, status, answer, err)
		}
		return
	}
}

func (p *patron) request(method, path, body string) (status int, answer string, err error) {
	ctx, cancel := context.WithTimeout(p.t.Context(), 2*time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, "http://sled"+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("api-version", sledtest.LatestAPI)
	reply, err := p.agent.Client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer reply.Body.Close()
	data, err := io.ReadAll(reply.Body)
	return reply.StatusCode, string(data), err
}

// comes waits until the control plane knows the truth, and no more than a minute.
func (p *patron) comes(state string) {
	p.t.Helper()
	truth := map[string]string{promisedVM: state, p.other: "running"}
	for until := time.Now().Add(time.Minute); !maps.Equal(p.Knows(), truth); time.Sleep(100 * time.Millisecond) {
		if p.lives(); time.Now().After(until) {
			p.t.Fatalf("%s: the control plane knows %v, and the truth is %v", p.at, p.Knows(), truth)
		}
	}
}

// live takes the step, and lives on to the end. It checks the laws: in the end the
// control plane's view is right, no generation was given for two states, no VM has
// ended because of the kill, and nothing is left.
func (p *patron) live() {
	for _, asked := range p.meant {
		p.ask(asked)
		time.Sleep(2 * time.Second)
		p.lives()
	}
	counting := p.at == "undisturbed" && p.lifeStage.after == 0
	if counting {
		p.before = p.dying.Points()
	}
	p.ask(p.asked)
	for until := time.Now().Add(stepTime); p.lives() && time.Now().Before(until); {
		time.Sleep(100 * time.Millisecond)
	}
	if counting {
		p.lifeStage.after = p.dying.Points()
	} else if p.dying != nil { // things that are done side by side are not always counted alike
		p.dying.Die()
		p.lives()
	}
	p.comes(p.lifeStep.comes)
	if now := p.running(); p.machine != "" && !p.final() && now != p.machine {
		p.t.Errorf("%s: there ran %s, and now %q", p.at, p.machine, now)
	}
	if !p.final() {
		p.ask("stopped")
		p.comes("destroyed")
	}
	p.over()
}

// stepTime is what a step may take, with all its effects.
const stepTime = 15 * time.Second

// over checks those laws that can be checked when the VM is gone.
func (p *patron) over() {
	err := p.World().View(p.t.Context(), func(tx *world.Tx) error {
		for _, c := range tx.State.Nexus.News {
			p.note(c.Gen, c.ID, c.State)
			if c.Check == "no_such_instance" || c.State == "failed" && p.lifeStep.comes != "failed" {
				return fmt.Errorf("of VM %s the control plane heard that it is %s: %s, by a %s", c.ID, c.State, c.Check, c.By)
			}
		}
		return nil
	})
	if err != nil {
		p.t.Errorf("%s: %v", p.at, err)
	}
	for _, odd := range p.odd {
		p.t.Errorf("%s: %s", p.at, odd)
	}
	if list := p.Run("instance list -H --columns name,state"); list != "other\trunning\n" {
		p.t.Errorf("%s: there are %q", p.at, list)
	}
	if a := p.Try("reap --dry-run --detailed-exitcode"); a.Exit != 0 {
		p.t.Errorf("%s: something is left: %s%s", p.at, a.Out, a.Errs)
	}
}

func TestAnAgentThatIsKilledKeepsWhatItPromised(t *testing.T) {
	var cases, all atomic.Int64
	t.Run("steps", func(t *testing.T) {
		for i, step := range lifeSteps() {
			t.Run(step.name, func(t *testing.T) {
				t.Parallel()
				var g *lifeStage
				synctest.Test(t, func(t *testing.T) { g = newLifeStage(t, step) })
				first := g.before + 1
				if step.asked == "" {
					first = 1 // the agent's own beginning
				}
				for m, mode := range []host.CrashMode{host.CrashBefore, host.CrashAfter, host.CrashDuring} {
					for n := first; n <= g.after+1; n++ { // at the last, it is killed when all is done
						if all.Add(1); (n+m+i)%share(2, 27) != 0 {
							continue
						}
						cases.Add(1)
						synctest.Test(t, func(t *testing.T) {
							p := g.open(t, n, mode)
							p.live()
							p.kill()
						})
					}
				}
				t.Logf("points %d to %d", first, g.after)
			})
		}
	})
	t.Logf("%d cases of %d", cases.Load(), all.Load())
}
