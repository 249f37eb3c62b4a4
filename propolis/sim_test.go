package propolis_test

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/simtest/contract"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
	"github.com/sledctl/sledctl/test/hosttest"
	"github.com/sledctl/sledctl/test/steptest"
)

// The client on the simulated sled, whose server knows nothing of it: what it
// refuses, a real one would.

const (
	pid    = 4711
	listen = "127.0.0.1:12400"
	disk   = "/vms/web1.img"
	id     = "7b1c2f3e-0d4a-4a55-9b0e-5f3d2c1b0a99"
)

// rig is a sled with a server in its global zone.
type rig struct {
	t    *testing.T
	sled *sim.Sled
	host host.Host
}

// simulated runs a test on a sled with its own clock, where the server starts to
// listen after a while.
func simulated(t *testing.T, after time.Duration, test func(t *testing.T, r rig)) {
	t.Helper()
	unwatched(t, after, func(t *testing.T, r rig) {
		contract.Watch(t, r.sled)
		test(t, r)
	})
}

// unwatched is simulated for a test that also says what no document knows.
func unwatched(t *testing.T, after time.Duration, test func(t *testing.T, r rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := sim.New(sim.Options{Latency: "helios2021"}, hosttest.Files)
		defer s.Close()
		r := rig{t, s, s.Host()}
		r.lay(after)
		test(t, r)
	})
}

// lay lays out the disk and the VNIC of the machine, and its server.
func (r rig) lay(after time.Duration) {
	r.t.Helper()
	must(r.t, host.MkdirAll(r.host.Files(), "/vms", 0o755))
	must(r.t, host.WriteFile(r.host.Files(), disk, nil, 0o644))
	r.change(func(tx *world.Tx) {
		must(r.t, network.CreateVNIC(tx, network.VNIC{Name: "guest0", Over: "net0", Temporary: true}))
		tx.State.Processes = append(tx.State.Processes, &world.Process{
			PID: pid, Zone: world.GlobalZone, Listen: listen, Started: tx.Now.Add(after),
			Argv: []string{"/opt/oxide/propolis-server/bin/propolis-server", "run", "/opt/oxide/propolis-server/blob/OVMF_CODE.fd", listen},
		})
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (r rig) change(fn func(*world.Tx)) {
	r.t.Helper()
	must(r.t, r.sled.World().Update(r.t.Context(), func(tx *world.Tx) error { fn(tx); return nil }))
}

func target() propolis.Target {
	return propolis.Target{Name: "web1", Address: netip.MustParseAddrPort(listen)}
}

func (r rig) client() propolis.Client { return propolis.Client{Host: r.host, Target: target()} }

func (r rig) request() spec.EnsureRequest {
	r.t.Helper()
	request, err := spec.Build(spec.Description{
		ID: id, Name: "web1", CPUs: 2, MemoryMiB: 2048, Disks: []spec.Disk{{Path: disk}}, NICs: []spec.NIC{{VNIC: "guest0"}},
	})
	must(r.t, err)
	return request
}

// do does steps that must succeed, and change what they explain.
func (r rig) do(steps ...steptest.Step) {
	r.t.Helper()
	steptest.Does(r.t, r.host, steps...)
}

func await(states ...string) propolis.AwaitState {
	return propolis.AwaitState{Target: target(), States: states}
}

func ask(state string) propolis.ChangeState {
	return propolis.ChangeState{Target: target(), State: state}
}

func TestLifeOfAMachine(t *testing.T) {
	simulated(t, 480*time.Millisecond, func(t *testing.T, r rig) {
		if _, err := r.client().Get(t.Context()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("before it listens: %v", err)
		}
		r.do(propolis.AwaitHTTP{Target: target()})
		if _, err := r.client().Get(t.Context()); !errors.Is(err, propolis.ErrNoInstance) {
			t.Errorf("before there is a machine: %v", err)
		}
		r.do(propolis.Ensure{Target: target(), Request: r.request()}, ask(propolis.Run), await(propolis.StateRunning))

		i, err := r.client().Get(t.Context())
		if err != nil || i.State != propolis.StateRunning || i.Properties.ID != id {
			t.Errorf("%+v, %v", i, err)
		}
		d, err := r.client().Spec(t.Context())
		must(t, err)
		if diffs := spec.Compare(*r.request().Init.Spec, *d.Spec); len(diffs) > 0 {
			t.Errorf("the server has another machine: %v", diffs)
		}

		before, err := r.client().Monitor(t.Context(), 0)
		must(t, err)
		r.do(ask(propolis.Reboot), propolis.AwaitState{Target: target(), States: []string{propolis.StateRunning}, After: before.Generation})
		now, err := r.client().Monitor(t.Context(), 0)
		if err != nil || now.Generation != before.Generation+2 {
			t.Errorf("%+v, then %+v, %v", before, now, err)
		}
		r.do(ask(propolis.Stop), await(propolis.StateDestroyed), await(propolis.StateDestroyed))
		if err := ask(propolis.Run).Do(t.Context(), r.host); !errors.Is(err, propolis.ErrNoInstance) {
			t.Errorf("after the end: %v", err)
		}
	})
}

func TestTheEndPassesForDestroyedAlsoBeyondIt(t *testing.T) {
	simulated(t, 0, func(t *testing.T, r rig) {
		r.do(propolis.Ensure{Target: target(), Request: r.request()}, ask(propolis.Run), await(propolis.StateRunning), ask(propolis.Stop), await("Destroyed"))
		last, err := r.client().Monitor(t.Context(), 0)
		must(t, err)
		r.do(propolis.AwaitState{Target: target(), States: []string{propolis.StateDestroyed}, After: last.Generation})
		err = propolis.AwaitState{Target: target(), States: []string{propolis.StateRunning}, After: last.Generation}.Do(t.Context(), r.host)
		if !errors.Is(err, propolis.ErrNoInstance) {
			t.Error(err)
		}
	})
}

func TestChangesThatTheStateForbids(t *testing.T) {
	simulated(t, 0, func(t *testing.T, r rig) {
		r.do(propolis.Ensure{Target: target(), Request: r.request()})
		err := ask(propolis.Reboot).Do(t.Context(), r.host)
		e, ok := errors.AsType[*propolis.Error](err)
		if !ok || !errors.Is(err, propolis.ErrForbidden) || e.Reason() != "instance state change not allowed: Operation requires an active instance" {
			t.Error(err)
		}
	})
}

func TestAMachineThatCannotBeMadeHasFailed(t *testing.T) {
	simulated(t, 0, func(t *testing.T, r rig) {
		must(t, r.host.Files().Remove(disk))
		err := propolis.Ensure{Target: target(), Request: r.request()}.Do(t.Context(), r.host)
		if e, ok := errors.AsType[*propolis.Error](err); !ok || e.Status != 500 || e.RequestID == "" {
			t.Error(err)
		}
		err = await(propolis.StateRunning).Do(t.Context(), r.host)
		if e, ok := errors.AsType[*propolis.StateError](err); !ok || e.State != propolis.StateFailed {
			t.Error(err)
		}
	})
}

func TestAMachineThatDoesNotStartHasFailed(t *testing.T) {
	simulated(t, 0, func(t *testing.T, r rig) {
		r.do(propolis.Ensure{Target: target(), Request: r.request()})
		r.change(func(tx *world.Tx) {
			tx.Arm(world.Fault{Name: world.FaultFail, Match: "propolis run", Times: 1})
		})
		r.do(ask(propolis.Run))
		err := await(propolis.StateRunning).Do(t.Context(), r.host)
		if e, ok := errors.AsType[*propolis.StateError](err); !ok || e.State != propolis.StateFailed {
			t.Error(err)
		}
	})
}

// A server that dies under a wait ends it: there is no answer to wait for.
func TestAWaitEndsWithItsServer(t *testing.T) {
	for _, wanted := range []string{propolis.StateRunning, propolis.StateDestroyed} {
		simulated(t, 0, func(t *testing.T, r rig) {
			r.do(propolis.Ensure{Target: target(), Request: r.request()})
			done := make(chan error, 1)
			go func() { done <- await(wanted).Do(t.Context(), r.host) }()
			synctest.Wait()
			r.change(func(tx *world.Tx) { tx.State.Processes = nil })
			if err := <-done; !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%s: %v", wanted, err)
			}
			if err := await(wanted).Do(t.Context(), r.host); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("%s: %v", wanted, err)
			}
		})
	}
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	simulated(t, 0, func(t *testing.T, r rig) {
		r.do(propolis.Ensure{Target: target(), Request: r.request()})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := await(propolis.StateRunning).Do(ctx, r.host); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// What one host does of a step when sledctl is killed at its request.
func TestACrashAtARequest(t *testing.T) {
	for mode, made := range map[host.CrashMode]bool{host.CrashBefore: false, host.CrashAfter: true} {
		simulated(t, 0, func(t *testing.T, r rig) {
			crash := host.Crash(r.host, 1, mode)
			if err := (propolis.Ensure{Target: target(), Request: r.request()}).Do(t.Context(), crash); err == nil {
				t.Error("a killed sledctl had success")
			}
			crash.Wait()
			if err := (propolis.AwaitHTTP{Target: target()}).Do(t.Context(), crash); !errors.Is(err, host.ErrCrashed) {
				t.Errorf("a killed sledctl waits: %v", err)
			}
			_, err := r.client().Get(t.Context())
			if made && err != nil || !made && !errors.Is(err, propolis.ErrNoInstance) {
				t.Errorf("%v: made %v, %v", mode, made, err)
			}
		})
	}
}

func (r rig) arm(name, match string, delay time.Duration) {
	r.t.Helper()
	r.change(func(tx *world.Tx) { tx.Arm(world.Fault{Name: name, Match: match, Times: 1, Delay: delay}) })
}

// A client that is killed leaves a server that continues: the next client finds
// a machine that is being made, and cannot do anything with it yet.
func TestAMachineThatIsBeingMadeIsWaitedFor(t *testing.T) {
	for state, want := range map[string]string{propolis.Run: propolis.StateRunning, propolis.Stop: propolis.StateDestroyed} {
		simulated(t, 0, func(t *testing.T, r rig) {
			r.arm(world.FaultSlowCreate, "propolis PUT", 90*time.Second)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err := propolis.Ensure{Target: target(), Request: r.request()}.Do(ctx, r.host)
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			if err := (propolis.Ensure{Target: target(), Request: r.request()}).Do(t.Context(), r.host); !errors.Is(err, propolis.ErrAlreadyInitialized) {
				t.Error(err)
			}
			begun := time.Now()
			must(t, ask(state).Do(t.Context(), r.host)) // which asks again: the first time is refused
			r.do(await(want))
			if took := time.Since(begun); took < 89*time.Second || took > 90*time.Second {
				t.Errorf("%s after %s", want, took)
			}
		})
	}
}

func TestAMachineThatFailsWhileItIsMadeIsNotWaitedForForEver(t *testing.T) {
	simulated(t, 0, func(t *testing.T, r rig) {
		must(t, r.host.Files().Remove(disk))
		r.arm(world.FaultSlowCreate, "propolis PUT", 90*time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = propolis.Ensure{Target: target(), Request: r.request()}.Do(ctx, r.host)
		if err := ask(propolis.Run).Do(t.Context(), r.host); !errors.Is(err, propolis.ErrNoInstance) {
			t.Error(err)
		}
	})
}

func TestPowerOff(t *testing.T) {
	off := propolis.PowerOff{Target: target(), Within: time.Minute}
	for name, before := range map[string]func(r rig){
		"that runs":             func(r rig) { r.run() },
		"that never ran":        func(r rig) { r.do(propolis.Ensure{Target: target(), Request: r.request()}) },
		"that is being started": func(r rig) { r.do(propolis.Ensure{Target: target(), Request: r.request()}, ask(propolis.Run)) },
		"that takes its time": func(r rig) {
			r.run()
			r.arm(world.FaultSlowStop, "propolis stop", 59*time.Second)
		},
		"that is stopping": func(r rig) {
			r.run()
			r.arm(world.FaultSlowStop, "propolis stop", 10*time.Second)
			r.do(ask(propolis.Stop))
		},
	} {
		simulated(t, 0, func(t *testing.T, r rig) {
			before(r)
			r.do(off)
			if s, err := r.client().Get(t.Context()); err != nil || s.State != propolis.StateDestroyed {
				t.Errorf("%s: %+v, %v", name, s, err)
			}
		})
	}
	simulated(t, 0, func(t *testing.T, r rig) {
		if err := off.Do(t.Context(), r.host); err != nil {
			t.Errorf("no machine: %v", err)
		}
		r.run()
		r.arm(world.FaultSlowStop, "propolis stop", time.Hour)
		err := off.Do(t.Context(), r.host)
		if e, ok := errors.AsType[*propolis.LimitError](err); !ok || e.Limit != time.Minute {
			t.Errorf("one that hangs: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := off.Do(ctx, r.host); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the operator's own deadline: %v", err)
		}
	})
}

func TestAMachineIsFollowed(t *testing.T) {
	simulated(t, 0, func(t *testing.T, r rig) {
		r.do(propolis.Ensure{Target: target(), Request: r.request()})
		states := make(chan string, 20)
		done := make(chan error, 1)
		go func() {
			done <- r.client().Follow(t.Context(), func(s propolis.Status) error {
				states <- s.State
				return nil
			})
		}()
		next := func(want string) {
			t.Helper()
			synctest.Wait()
			if got := <-states; got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		next(propolis.StateCreating)
		r.arm(world.FaultDrop, "propolis GET state-monitor", 0) // of the next request
		r.do(ask(propolis.Run))
		next(propolis.StateRunning)
		r.arm(world.FaultSlowStop, "propolis stop", time.Second)
		r.do(ask(propolis.Stop))
		next(propolis.StateStopping)
		next(propolis.StateDestroyed)
		if err := <-done; err != nil || len(states) > 0 {
			t.Errorf("%v, %d more", err, len(states))
		}
	})
	simulated(t, 0, func(t *testing.T, r rig) {
		r.run()
		err := r.client().Follow(t.Context(), func(propolis.Status) error {
			r.change(func(tx *world.Tx) {
				p := *tx.State.Processes[0]
				p.VM = nil
				tx.State.Processes = []*world.Process{&p}
			})
			return nil
		})
		if !errors.Is(err, propolis.ErrLost) {
			t.Errorf("a machine that is lost: %v", err)
		}
		if err := r.client().Follow(t.Context(), nil); !errors.Is(err, propolis.ErrNoInstance) || errors.Is(err, propolis.ErrLost) {
			t.Errorf("no machine: %v", err)
		}
	})
}
