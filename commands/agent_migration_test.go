package commands_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/sledtest"
)

// relocation is a VM of the control plane that is to move between the agents of two
// sleds, as the control plane does it: registered on the target, which is then told
// to take it in.
type relocation struct {
	t              *testing.T
	source, target *sledtest.Operator
	from, to       *sledtest.Agent
	instance       string
	vm, next       string // the VM at the source, and the one that it becomes
	migration      string
	empty          string // the target without it
}

const (
	sourceAddress = "10.77.3.1:12400"
	targetAddress = "10.78.3.2:12400"
)

// relocatable are two sleds with the VM on the first, before any agent runs.
type relocatable struct {
	source, target *sim.Sled
	at             time.Time
	relocation
}

func newRelocatable(t *testing.T) *relocatable {
	a, b := sledtest.New(t, sledtest.Small(), sledtest.Flat), sledtest.New(t, sledtest.Small(), strings.ReplaceAll(sledtest.Flat, "10.77.", "10.78."))
	a.Lobby, b.Lobby = &sledtest.Lobby{}, &sledtest.Lobby{}
	a.Run("bootstrap")
	b.Run("bootstrap")
	g := &relocatable{relocation: relocation{empty: b.Comparable(), instance: uuid.NewString(), vm: uuid.NewString(), next: uuid.NewString(), migration: uuid.NewString()}}
	from := a.StartAgent(t, a.Host())
	from.Puts(200, "/vmms/"+g.vm, sledtest.VMBody(t, 48, g.instance, 1).Text(t))
	from.Puts(200, "/vmms/"+g.vm+"/state", `{"state":{"type":"running"}}`)
	from.Eventually(g.vm, "running")
	from.Stop()
	g.source, g.target, g.at = a.Clone(), b.Clone(), time.Now()
	return g
}

// open is one case, in which the target's client is there, if it is set.
func (g *relocatable) open(t *testing.T, crash func(host.Host) host.Host) *relocation {
	r := g.relocation
	r.t, r.source, r.target = t, &sledtest.Operator{Sled: g.source.Clone(), T: t, Lobby: &sledtest.Lobby{}}, &sledtest.Operator{Sled: g.target.Clone(), T: t, Lobby: &sledtest.Lobby{}}
	t.Cleanup(r.source.Close)
	t.Cleanup(r.target.Close)
	time.Sleep(time.Until(g.at))
	r.source.Meet(r.target)
	there := r.target.Host()
	if crash != nil {
		there = crash(there)
	}
	r.from, r.to = r.source.StartAgent(t, r.source.Host()), r.target.StartAgent(t, there)
	return &r
}

// register tells the target of the VM.
func (r *relocation) register() {
	r.t.Helper()
	body := sledtest.VMBody(r.t, 48, r.instance, 2)
	maps.Copy(body["local_config"].(map[string]any)["nics"].([]any)[0].(map[string]any), map[string]any{"mac": "A8:40:25:FF:00:01"})
	body["propolis_addr"], body["migration_id"] = targetAddress, r.migration
	body["vmm_runtime"].(map[string]any)["state"] = "migrating"
	r.to.Puts(200, "/vmms/"+r.next, body.Text(r.t))
}

// call tells it to take it in.
func (r *relocation) call(want int) string {
	r.t.Helper()
	return r.to.Puts(want, "/vmms/"+r.next+"/state", r.calling())
}

func (r *relocation) calling() string {
	return `{"state":{"type":"migration_target","value":{"src_propolis_addr":"` + sourceAddress + `"}}}`
}

// one wants one machine to run, and says where.
func (r *relocation) one() string {
	r.t.Helper()
	a, b := r.source.RunningMachines(), r.target.RunningMachines()
	if a+b != 1 {
		r.t.Errorf("%d machines run on the source, %d on the target", a, b)
	}
	return map[bool]string{true: "source", false: "target"}[a == 1]
}

// The control plane moves a VM: each side reports the progress of its part of the
// migration, and the source keeps nothing of the VM.
func TestTheControlPlaneMovesAVM(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRelocatable(t)
		r := g.open(t, nil)
		r.target.Arm(world.Fault{Name: world.FaultSlowMigrate, Match: "propolis * migrate", Delay: time.Second})
		r.register()
		r.register() // again is nothing
		if got := r.to.Reads(r.next); got != "migrating, in pending at 1" {
			t.Error(got)
		}
		r.to.Puts(400, "/vmms/"+r.next+"/state", `{"state":{"type":"running"}}`) // it would be there twice
		if a := r.target.Try("instance start " + r.instance); a.Exit != 8 || !strings.Contains(a.Errs, "is kept by Nexus") {
			t.Errorf("started by hand: %+v", a)
		}
		r.from.Puts(400, "/vmms/"+r.vm+"/state", `{"state":{"type":"migration_target","value":{"src_propolis_addr":"[::1]:1"}}}`)
		if got := r.call(200); got != `{"updated_runtime":null}` {
			t.Error(got)
		}
		r.call(200)
		r.to.Puts(400, "/vmms/"+r.next+"/state", `{"state":{"type":"migration_target","value":{"src_propolis_addr":"[::1]:1"}}}`)
		r.to.ComesTo(r.next, "migrating, in in_progress at 2")
		r.from.ComesTo(r.vm, "migrating, out in_progress at 2")
		if status, body := r.to.Send("DELETE", "/vmms/"+r.next, "48.0.0", ""); status != 503 {
			t.Errorf("deleted on its way: %d %s", status, body)
		}
		r.to.ComesTo(r.next, "running, in completed at 3")
		r.from.ComesTo(r.vm, "destroyed, out completed at 3")
		if at := r.one(); at != "target" {
			t.Errorf("it runs on the %s", at)
		}
		r.to.Puts(200, "/vmms/"+r.next+"/state", `{"state":{"type":"running"}}`) // it does
		if a := r.source.Try("instance get " + r.instance); a.Exit != 4 {
			t.Errorf("on the source: %+v", a)
		}
		r.from.Stop()
		r.from = r.source.StartAgent(t, r.source.Host())
		if got := r.from.Reads(r.vm); got != "destroyed, out completed at 3" && got != "404" { // it was read
			t.Errorf("after a restart: %s", got)
		}
		if status, body := r.to.Send("DELETE", "/vmms/"+r.next, "48.0.0", ""); status != 200 {
			t.Errorf("deleted: %d %s", status, body)
		}
		r.to.ComesTo(r.next, "failed, in completed at 3")
		r.target.Same(r.empty, "in the end")
	})
}

// A migration that comes to nothing leaves the VM where it was, and nothing on its
// target; the control plane reads so on both sides.
func TestAMoveOfTheControlPlaneFails(t *testing.T) {
	var g *relocatable
	synctest.Test(t, func(t *testing.T) { g = newRelocatable(t) })
	cases := map[string]func(r *relocation){
		"nobody answers at the source": func(r *relocation) { killServer(r.source) },
		"no zone can be made": func(r *relocation) {
			r.target.Arm(world.Fault{Name: world.FaultFail, Match: "zoneadm * clone", Text: "cannot"})
		},
		"its server dies": func(r *relocation) {
			r.target.Arm(world.Fault{Name: world.FaultCrash, Match: "propolis * PUT instance"})
		},
	}
	for _, phase := range []string{"RamPush", "Pause", "RamPushDirty", "Device", "RamPull", "Server"} {
		cases["it fails in "+phase] = func(r *relocation) {
			r.target.Arm(world.Fault{Name: world.FaultFail, Match: "propolis * migrate " + phase, Times: 1})
		}
	}
	for name, fails := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := g.open(t, nil)
				fails(r)
				r.register()
				r.call(200)
				r.to.ComesTo(r.next, "failed, in failed at 3")
				if name != "nobody answers at the source" {
					if state, _ := r.from.State(r.vm); state != "running" {
						t.Errorf("at the source it is %s", r.from.Reads(r.vm))
					}
					if at := r.one(); at != "source" {
						t.Errorf("it runs on the %s", at)
					}
				}
				r.target.Same(r.empty, "what is on the target")
			})
		})
	}
}

// A target's agent that is killed over a migration does not lose the VM, nor make
// it twice: the next one brings it to an end.
func TestAnAgentIsKilledOverAMove(t *testing.T) {
	var g *relocatable
	first, last := 0, 0 // of what the target's agent does for it
	synctest.Test(t, func(t *testing.T) {
		g = newRelocatable(t)
		var counts *host.Crashing
		r := g.open(t, func(h host.Host) host.Host { counts = host.Crash(h, 0, host.CrashBefore); return counts })
		r.register()
		first = counts.Points()
		r.call(200)
		r.to.ComesTo(r.next, "running, in completed at 3")
		last = counts.Points()
	})
	if last-first < 20 {
		t.Errorf("an agent does only %d things to bring a VM here", last-first)
	}
	cases := 0
	for m, mode := range []host.CrashMode{host.CrashBefore, host.CrashAfter, host.CrashDuring} {
		for n := first + 1; n <= last; n++ {
			if (n+m)%share(3, 18) != 0 {
				continue
			}
			cases++
			synctest.Test(t, func(t *testing.T) { g.killedAt(t, n, mode) })
		}
	}
	t.Logf("%d cases of %d", cases, 3*(last-first))
	for after := time.Duration(0); after < 10*time.Second; after += 500 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) { g.killedAfter(t, after) })
	}
}

// killedAfter has memory move slowly, and the agent killed while it does.
func (g *relocatable) killedAfter(t *testing.T, after time.Duration) {
	var dying *host.Crashing
	r := g.open(t, func(h host.Host) host.Host { dying = host.Crash(h, 0, host.CrashBefore); return dying })
	r.target.Arm(world.Fault{Name: world.FaultSlowMigrate, Match: "propolis * migrate", Delay: time.Second})
	r.register()
	r.call(200)
	time.Sleep(after)
	dying.Die()
	r.ends(dying, "after "+after.String())
}

func (g *relocatable) killedAt(t *testing.T, n int, mode host.CrashMode) {
	var dying *host.Crashing
	r := g.open(t, func(h host.Host) host.Host { dying = host.Crash(h, n, mode); return dying })
	r.register()
	status, _ := r.to.Send("PUT", "/vmms/"+r.next+"/state", "48.0.0", r.calling())
	for range 1200 {
		if dying.Crashed() {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	dying.Die()
	if status != 200 {
		r.to.Stop()
		dying.Wait()
		r.to = r.target.StartAgent(t, r.target.Host())
		r.call(200) // it was not promised
	}
	r.ends(dying, fmt.Sprintf("%d, %v", n, mode))
}

// ends are the laws of a target whose agent has died: the next one ends what it was
// about.
func (r *relocation) ends(dying *host.Crashing, at string) {
	t := r.t
	t.Helper()
	r.to.Stop()
	dying.Wait()
	r.to = r.target.StartAgent(t, r.target.Host())
	r.to.ComesTo(r.next, "running, in completed at 3")
	r.from.ComesTo(r.vm, "destroyed, out completed at 3")
	if on := r.one(); on != "target" {
		t.Errorf("%s: it runs on the %s", at, on)
	}
	if status, body := r.to.Send("DELETE", "/vmms/"+r.next, "48.0.0", ""); status != 200 {
		t.Errorf("%s: deleted: %d %s", at, status, body)
	}
	r.target.Same(r.empty, at+": in the end")
}
