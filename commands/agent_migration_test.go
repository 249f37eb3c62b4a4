package commands_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
)

// relocation is a VM of the control plane that is to move between the agents of two
// sleds, as the control plane does it: registered on the target, which is then told
// to take it in.
type relocation struct {
	t              *testing.T
	source, target *sled
	from, to       *agentOf
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
	a, b := newSled(t, small(), flat), newSled(t, small(), strings.ReplaceAll(flat, "10.77.", "10.78."))
	a.lobby, b.lobby = &lobby{}, &lobby{}
	a.run("bootstrap")
	b.run("bootstrap")
	g := &relocatable{relocation: relocation{empty: b.world(), instance: uuid.NewString(), vm: uuid.NewString(), next: uuid.NewString(), migration: uuid.NewString()}}
	from := a.agent(t, a.Host())
	from.puts(200, "/vmms/"+g.vm, vmBody(t, 48, g.instance, 1).text(t))
	from.puts(200, "/vmms/"+g.vm+"/state", `{"state":{"type":"running"}}`)
	from.eventually(g.vm, "running")
	from.stop()
	g.source, g.target, g.at = a.Clone(), b.Clone(), time.Now()
	return g
}

// open is one case, in which the target's client is there, if it is set.
func (g *relocatable) open(t *testing.T, crash func(host.Host) host.Host) *relocation {
	r := g.relocation
	r.t, r.source, r.target = t, &sled{Sled: g.source.Clone(), t: t, lobby: &lobby{}}, &sled{Sled: g.target.Clone(), t: t, lobby: &lobby{}}
	t.Cleanup(r.source.Close)
	t.Cleanup(r.target.Close)
	time.Sleep(time.Until(g.at))
	r.source.meet(r.target)
	there := r.target.Host()
	if crash != nil {
		there = crash(there)
	}
	r.from, r.to = r.source.agent(t, r.source.Host()), r.target.agent(t, there)
	return &r
}

// puts sends a body in the newest version, and wants a status.
func (r *agentOf) puts(want int, path, body string) string {
	r.t.Helper()
	status, answer := r.send("PUT", path, "48.0.0", body)
	if status != want {
		r.t.Errorf("PUT %s: %d %s, want %d", path, status, answer, want)
	}
	return answer
}

// register tells the target of the VM.
func (r *relocation) register() {
	r.t.Helper()
	body := vmBody(r.t, 48, r.instance, 2)
	maps.Copy(body["local_config"].(map[string]any)["nics"].([]any)[0].(map[string]any), map[string]any{"mac": "A8:40:25:FF:00:01"})
	body["propolis_addr"], body["migration_id"] = targetAddress, r.migration
	body["vmm_runtime"].(map[string]any)["state"] = "migrating"
	r.to.puts(200, "/vmms/"+r.next, body.text(r.t))
}

// call tells it to take it in.
func (r *relocation) call(want int) string {
	r.t.Helper()
	return r.to.puts(want, "/vmms/"+r.next+"/state", r.calling())
}

func (r *relocation) calling() string {
	return `{"state":{"type":"migration_target","value":{"src_propolis_addr":"` + sourceAddress + `"}}}`
}

// reads is what the control plane reads: the state, and that of the migration in
// and out.
func (r *agentOf) reads(vm string) string {
	r.t.Helper()
	status, body := r.ask("GET", "/vmms/"+vm+"/state", "48.0.0")
	if status != 200 {
		return fmt.Sprint(status)
	}
	var v api.SledVMState
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		r.t.Fatal(err)
	}
	text := string(v.Runtime.State)
	for way, m := range map[string]*api.Migration{"in": v.MigrationIn, "out": v.MigrationOut} {
		if m != nil {
			text += fmt.Sprintf(", %s %s at %d", way, m.State, m.Gen)
		}
	}
	return text
}

// comesTo waits until the control plane reads that.
func (r *agentOf) comesTo(vm, want string) {
	r.t.Helper()
	var seen []string
	for range 6000 {
		if got := r.reads(vm); got == want {
			return
		} else if len(seen) == 0 || seen[len(seen)-1] != got {
			seen = append(seen, got)
		}
		time.Sleep(50 * time.Millisecond)
	}
	r.t.Errorf("it is %q one after the other, want %s", seen, want)
}

// one wants one machine to run, and says where.
func (r *relocation) one() string {
	r.t.Helper()
	a, b := r.source.runningMachines(), r.target.runningMachines()
	if a+b != 1 {
		r.t.Errorf("%d machines run on the source, %d on the target", a, b)
	}
	return map[bool]string{true: "source", false: "target"}[a == 1]
}

// The control plane moves a VM: each side tells how its part of the migration goes,
// and nothing of it is left on the source.
func TestTheControlPlaneMovesAVM(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRelocatable(t)
		r := g.open(t, nil)
		r.target.arm(world.Fault{Name: world.FaultSlowMigrate, Match: "propolis * migrate", Delay: time.Second})
		r.register()
		r.register() // again is nothing
		if got := r.to.reads(r.next); got != "migrating, in pending at 1" {
			t.Error(got)
		}
		r.to.puts(400, "/vmms/"+r.next+"/state", `{"state":{"type":"running"}}`) // it would be there twice
		if a := r.target.try("instance start " + r.instance); a.exit != 8 || !strings.Contains(a.errs, "will arrive by migration "+r.migration) {
			t.Errorf("started by hand: %+v", a)
		}
		r.from.puts(400, "/vmms/"+r.vm+"/state", `{"state":{"type":"migration_target","value":{"src_propolis_addr":"[::1]:1"}}}`)
		if got := r.call(200); got != `{"updated_runtime":null}` {
			t.Error(got)
		}
		r.call(200)
		r.to.puts(400, "/vmms/"+r.next+"/state", `{"state":{"type":"migration_target","value":{"src_propolis_addr":"[::1]:1"}}}`)
		r.to.comesTo(r.next, "migrating, in in_progress at 2")
		r.from.comesTo(r.vm, "migrating, out in_progress at 2")
		if status, body := r.to.send("DELETE", "/vmms/"+r.next, "48.0.0", ""); status != 503 {
			t.Errorf("deleted on its way: %d %s", status, body)
		}
		r.to.comesTo(r.next, "running, in completed at 3")
		r.from.comesTo(r.vm, "destroyed, out completed at 3")
		if at := r.one(); at != "target" {
			t.Errorf("it runs on the %s", at)
		}
		r.to.puts(200, "/vmms/"+r.next+"/state", `{"state":{"type":"running"}}`) // it does
		if a := r.source.try("instance get " + r.instance); a.exit != 4 {
			t.Errorf("on the source: %+v", a)
		}
		r.from.stop()
		r.from = r.source.agent(t, r.source.Host())
		if got := r.from.reads(r.vm); got != "destroyed, out completed at 3" && got != "404" { // it was read
			t.Errorf("after a restart: %s", got)
		}
		if status, body := r.to.send("DELETE", "/vmms/"+r.next, "48.0.0", ""); status != 200 {
			t.Errorf("deleted: %d %s", status, body)
		}
		r.to.comesTo(r.next, "failed, in completed at 3")
		r.target.same(r.empty, "in the end")
	})
}

// A migration that comes to nothing leaves the VM where it was, and nothing on its
// target; the control plane reads so on both sides.
func TestAMoveOfTheControlPlaneFails(t *testing.T) {
	var g *relocatable
	synctest.Test(t, func(t *testing.T) { g = newRelocatable(t) })
	cases := map[string]func(r *relocation){
		"nobody answers at the source": func(r *relocation) { r.source.killServer() },
		"no zone can be made": func(r *relocation) {
			r.target.arm(world.Fault{Name: world.FaultFail, Match: "zoneadm * clone", Text: "cannot"})
		},
		"its server dies": func(r *relocation) {
			r.target.arm(world.Fault{Name: world.FaultCrash, Match: "propolis * PUT instance"})
		},
	}
	for _, phase := range []string{"RamPush", "Pause", "RamPushDirty", "Device", "RamPull", "Server"} {
		cases["it fails in "+phase] = func(r *relocation) {
			r.target.arm(world.Fault{Name: world.FaultFail, Match: "propolis * migrate " + phase, Times: 1})
		}
	}
	for name, fails := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := g.open(t, nil)
				fails(r)
				r.register()
				r.call(200)
				r.to.comesTo(r.next, "failed, in failed at 3")
				if name != "nobody answers at the source" {
					if state, _ := r.from.state(r.vm); state != "running" {
						t.Errorf("at the source it is %s", r.from.reads(r.vm))
					}
					if at := r.one(); at != "source" {
						t.Errorf("it runs on the %s", at)
					}
				}
				r.target.same(r.empty, "what is on the target")
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
		r.to.comesTo(r.next, "running, in completed at 3")
		last = counts.Points()
	})
	if last-first < 20 {
		t.Errorf("an agent does only %d things to bring a VM here", last-first)
	}
	cases := 0
	for m, mode := range []host.CrashMode{host.CrashBefore, host.CrashAfter, host.CrashDuring} {
		for n := first + 1; n <= last; n++ {
			if (n+m)%share(3, 9) != 0 {
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
	r.target.arm(world.Fault{Name: world.FaultSlowMigrate, Match: "propolis * migrate", Delay: time.Second})
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
	status, _ := r.to.send("PUT", "/vmms/"+r.next+"/state", "48.0.0", r.calling())
	for range 1200 {
		if dying.Crashed() {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	dying.Die()
	if status != 200 {
		r.to.stop()
		dying.Wait()
		r.to = r.target.agent(t, r.target.Host())
		r.call(200) // it was not promised
	}
	r.ends(dying, fmt.Sprintf("%d, %v", n, mode))
}

// ends are the laws of a target whose agent has died: the next one ends what it was
// about.
func (r *relocation) ends(dying *host.Crashing, at string) {
	t := r.t
	t.Helper()
	r.to.stop()
	dying.Wait()
	r.to = r.target.agent(t, r.target.Host())
	r.to.comesTo(r.next, "running, in completed at 3")
	r.from.comesTo(r.vm, "destroyed, out completed at 3")
	if on := r.one(); on != "target" {
		t.Errorf("%s: it runs on the %s", at, on)
	}
	if status, body := r.to.send("DELETE", "/vmms/"+r.next, "48.0.0", ""); status != 200 {
		t.Errorf("%s: deleted: %d %s", at, status, body)
	}
	r.target.same(r.empty, at+": in the end")
}
