package tools

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/boot"
	"github.com/sledctl/sledctl/test/hosttest"
)

// do runs a tool that is not in the registry.
func do(ctx context.Context, d *Dispatcher, tool cli.Tool, words ...string) (cli.Reply, error) {
	r := &running{Dispatcher: d, call: cli.Call{Tool: words[0], Args: words[1:], Zone: world.GlobalZone}, locked: map[string]func(){}}
	defer r.unlock()
	return r.run(ctx, tool)
}

// slow is a command of three transactions, the second under a zone's lock.
func slow(tx *world.Tx, c cli.Call) cli.Reply {
	tx.Count("begun")
	return cli.Reply{Stdout: "1", Next: &cli.Next{Lock: "z1", After: time.Second, Do: func(tx *world.Tx) cli.Reply {
		tx.Count("locked")
		return cli.Reply{Stdout: "2", Stderr: "e", Exit: 9, Next: &cli.Next{After: time.Second, Do: func(tx *world.Tx) cli.Reply {
			tx.Count("ended")
			return cli.Reply{Stdout: "3", Exit: 4}
		}}}
	}}}
}

// awaits ends when somebody counts x.
func awaits(*world.Tx, cli.Call) cli.Reply {
	return cli.Reply{Next: &cli.Next{
		Until: func(tx *world.Tx) bool { return tx.State.Counters["x"] > 0 },
		Do:    func(*world.Tx) cli.Reply { return cli.Reply{Stdout: "seen"} },
	}}
}

func update(t *testing.T, d *Dispatcher, fn func(*world.Tx)) {
	t.Helper()
	if err := d.World.Update(t.Context(), func(tx *world.Tx) error { fn(tx); return nil }); err != nil {
		t.Fatal(err)
	}
}

func TestACommandTakesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		got, err := do(t.Context(), &Dispatcher{World: boot.Memory(boot.Options{}, hosttest.Files)}, slow, "slow")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(cli.Reply{Stdout: "123", Stderr: "e", Exit: 4}, got); diff != "" {
			t.Error(diff)
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

// zoneadm(8) does not refuse while another one works on the zone: it waits
// (zonecfg_grab_lock_file in usr/src/lib/libzonecfg/common/libzonecfg.c).
func TestCommandsThatLockOneZoneFollowEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &Dispatcher{World: boot.Memory(boot.Options{}, hosttest.Files)}
		start := time.Now()
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if _, err := do(t.Context(), d, slow, "slow"); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(1500 * time.Millisecond)
		update(t, d, func(tx *world.Tx) {
			if c := tx.State.Counters; c["begun"] != 3 || c["locked"] != 1 {
				t.Errorf("%d have begun and %d hold the lock, want 3 and 1", c["begun"], c["locked"])
			}
		})
		wg.Wait()
		if took := time.Since(start); took != 6*time.Second {
			t.Errorf("three took %s", took)
		}
	})
}

func TestACommandWhoseCallerGivesUpLeavesTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &Dispatcher{World: boot.Memory(boot.Options{}, hosttest.Files)}
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		if _, err := do(ctx, d, slow, "slow"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ended with %v", err)
		}
		unlock, err := d.World.LockZone(t.Context(), "z1")
		if err != nil {
			t.Fatal(err)
		}
		unlock()
	})
}

func TestFaultsOfACommand(t *testing.T) {
	type result struct {
		reply        cli.Reply
		killed       bool
		took         time.Duration
		begun, ended uint64
	}
	for _, c := range []struct {
		fault world.Fault
		want  result
	}{
		{world.Fault{Name: world.FaultFail, Text: "slow: no", Exit: 3}, result{reply: cli.Reply{Stderr: "slow: no\n", Exit: 3}}},
		{world.Fault{Name: world.FaultFail}, result{reply: cli.Reply{Stderr: "slow: I/O error\n", Exit: 1}}},
		{world.Fault{Name: world.FaultBusy}, result{reply: cli.Reply{Stderr: "slow: Device busy\n", Exit: 1}}},
		{world.Fault{Name: world.FaultHalf}, result{reply: cli.Reply{Stdout: "1", Stderr: "slow: I/O error\n", Exit: 1}, begun: 1}},
		{world.Fault{Name: world.FaultHang, Delay: 3 * time.Second},
			result{reply: cli.Reply{Stdout: "123", Stderr: "e", Exit: 4}, took: 5 * time.Second, begun: 1, ended: 1}},
		{world.Fault{Name: world.FaultKill}, result{killed: true}},
		{world.Fault{Name: world.FaultKillAfter},
			result{reply: cli.Reply{Stdout: "123", Stderr: "e", Exit: 4}, killed: true, took: 2 * time.Second, begun: 1, ended: 1}},
	} {
		t.Run(c.fault.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &Dispatcher{World: boot.Memory(boot.Options{}, hosttest.Files)}
				c.fault.Match = "slow -x"
				update(t, d, func(tx *world.Tx) { tx.Arm(c.fault) })
				start := time.Now()
				var got result
				var err error
				got.reply, err = do(t.Context(), d, slow, "slow", "-x")
				if got.killed = errors.Is(err, cli.ErrKilled); err != nil && !got.killed {
					t.Fatal(err)
				}
				got.took = time.Since(start)
				update(t, d, func(tx *world.Tx) { got.begun, got.ended = tx.State.Counters["begun"], tx.State.Counters["ended"] })
				if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(result{})); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// svcprop -w can miss the change that it waits for and then waits forever
// (wait_for_property_change in usr/src/cmd/svc/svcprop/svcprop.c has no timeout).
func TestACommandThatMissesItsEventHangs(t *testing.T) {
	for _, name := range []string{world.FaultHang, world.FaultMissed} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &Dispatcher{World: boot.Memory(boot.Options{}, hosttest.Files)}
				update(t, d, func(tx *world.Tx) {
					tx.Arm(world.Fault{Name: name, Match: "awaits", Times: 1})
					tx.Count("x")
				})
				ended := make(chan error, 1)
				go func() {
					_, err := do(t.Context(), d, awaits, "awaits")
					ended <- err
				}()
				time.Sleep(time.Hour)
				select {
				case err := <-ended:
					t.Fatalf("it ended: %v", err)
				default:
				}
				update(t, d, func(tx *world.Tx) { tx.Disarm(name, "awaits") })
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestBusyWordsAreTheCommandsOwn(t *testing.T) {
	for want, c := range map[string]cli.Call{
		"cannot destroy 'rpool/a': dataset is busy": {Tool: "zfs", Args: []string{"destroy", "-r", "rpool/a"}},
		"dladm: vnic deletion failed: link busy":    {Tool: "dladm", Args: []string{"delete-vnic", "vnic0"}},
		"cannot export 'oxp': pool is busy":         {Tool: "zpool", Args: []string{"export", "oxp"}},
	} {
		if got := busyText(c); got != want {
			t.Errorf("%s: %q, want %q", c.Tool, got, want)
		}
	}
}
