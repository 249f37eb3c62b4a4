package boot_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/boot"
	"github.com/sledctl/sledctl/sim/world/zfs"
	"github.com/sledctl/sledctl/test/hosttest"
)

// worlds are a sled of each kind.
func worlds(t *testing.T) map[string]*world.World {
	t.Helper()
	dir, err := boot.Init(t.TempDir(), boot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]*world.World{"memory": boot.Memory(boot.Options{}, hosttest.Files), "directory": dir}
}

func TestATransactionIsSeenByTheNext(t *testing.T) {
	for name, w := range worlds(t) {
		t.Run(name, func(t *testing.T) {
			failed := errors.New("half-way")
			err := w.Update(t.Context(), func(tx *world.Tx) error {
				tx.Count("x")
				return failed
			})
			if !errors.Is(err, failed) {
				t.Fatalf("Update: %v, want what the transaction said", err)
			}
			var x uint64
			if err := w.View(t.Context(), func(tx *world.Tx) error { x = tx.State.Counters["x"]; return nil }); err != nil {
				t.Fatal(err)
			}
			if x != 1 {
				t.Errorf("x is %d: what a failed transaction changed stays changed", x)
			}
		})
	}
}

func TestTransactionsExcludeEachOther(t *testing.T) {
	for name, w := range worlds(t) {
		t.Run(name, func(t *testing.T) {
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					for range 20 {
						err := w.Update(t.Context(), func(tx *world.Tx) error { tx.Count("x"); return nil })
						if err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			if err := w.View(t.Context(), func(tx *world.Tx) error {
				if got := tx.State.Counters["x"]; got != 160 {
					t.Errorf("%d of 160 transactions are there", got)
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestAWaiterIsWokenByAChange(t *testing.T) {
	for name, w := range worlds(t) {
		t.Run(name, func(t *testing.T) {
			asked := make(chan struct{}, 100)
			woken := make(chan error)
			go func() {
				woken <- w.Wait(t.Context(), func(tx *world.Tx) bool {
					asked <- struct{}{}
					return tx.State.Counters["x"] == 1
				})
			}()
			<-asked
			if err := w.Update(t.Context(), func(tx *world.Tx) error { tx.Count("x"); return nil }); err != nil {
				t.Fatal(err)
			}
			if err := <-woken; err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestAWaiterGivesUpWithItsContext(t *testing.T) {
	for name, w := range worlds(t) {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			err := w.Wait(ctx, func(*world.Tx) bool { cancel(); return false })
			if !errors.Is(err, context.Canceled) {
				t.Errorf("Wait: %v", err)
			}
		})
	}
}

func TestWhatWasScheduledHappensInOrderAndAtItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := world.Now()
		var seen []string
		w := boot.Memory(boot.Options{}, hosttest.Files).Handle(world.Handlers{"note": func(tx *world.Tx, e *world.Event) {
			seen = append(seen, fmt.Sprintf("%s at %s", e.Name, tx.Now.Sub(start)))
			if e.Name == "b" {
				tx.Schedule(time.Second, "note", "", "follows b")
			}
		}})
		err := w.Update(t.Context(), func(tx *world.Tx) error {
			tx.Schedule(3*time.Second, "note", "", "c")
			tx.Schedule(time.Second, "note", "", "a")
			tx.Schedule(time.Second, "note", "", "b")
			tx.Schedule(2*time.Second, "note", "", "after follows b was not yet scheduled")
			tx.Schedule(time.Second, "note", "z", "cancelled")
			tx.Cancel("note", "z", "")
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if len(seen) != 0 {
			t.Errorf("happened although nobody looked: %q", seen)
		}
		if err := w.View(t.Context(), func(*world.Tx) error { return nil }); err != nil {
			t.Fatal(err)
		}
		want := []string{"a at 1s", "b at 1s", "after follows b was not yet scheduled at 2s", "follows b at 2s", "c at 3s"}
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAnEventThatNobodyCarriesOutIsAnError(t *testing.T) {
	w := boot.Memory(boot.Options{}, hosttest.Files)
	err := w.Update(t.Context(), func(tx *world.Tx) error { tx.Schedule(0, "mystery", "", ""); return nil })
	if err == nil {
		t.Error("an unknown event was dropped")
	}
}

func TestAWaiterIsWokenByTheTimeThatWasWrittenDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := boot.Memory(boot.Options{}, hosttest.Files)
		start := world.Now()
		err := w.Update(t.Context(), func(tx *world.Tx) error {
			stack := tx.State.Stacks[world.GlobalZone]
			stack.Addresses = append(stack.Addresses, &world.Address{Object: "net0/x", Timeline: []world.Timepoint{
				{State: "tentative", From: start}, {State: "ok", From: start.Add(5 * time.Second)},
			}})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		looks := 0
		err = w.Wait(t.Context(), func(tx *world.Tx) bool {
			looks++
			all := tx.State.Stacks[world.GlobalZone].Addresses
			return world.At(all[len(all)-1].Timeline, tx.Now).State == "ok"
		})
		if took := time.Since(start); err != nil || took != 5*time.Second || looks != 2 {
			t.Errorf("woken after %s and %d looks: %v", took, looks, err)
		}
	})
}

func TestAZoneLockWaitsForItsHolder(t *testing.T) {
	for name, w := range worlds(t) {
		t.Run(name, func(t *testing.T) {
			unlock, err := w.LockZone(t.Context(), "z1")
			if err != nil {
				t.Fatal(err)
			}
			other, err := w.LockZone(t.Context(), "z2")
			if err != nil {
				t.Fatalf("another zone's lock: %v", err)
			}
			other()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			if _, err := w.LockZone(ctx, "z1"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the held lock was taken again: %v", err)
			}
			unlock()
			again, err := w.LockZone(t.Context(), "z1")
			if err != nil {
				t.Fatal(err)
			}
			again()
		})
	}
	if _, err := boot.Memory(boot.Options{}, hosttest.Files).LockZone(t.Context(), "../x"); err == nil {
		t.Error("a lock outside of the directory of locks was taken")
	}
}

func TestDrawsDependOnSeedPurposeAndNumberOnly(t *testing.T) {
	draw := func(seed uint64, purposes ...string) []uint64 {
		tx := world.NewTx(&world.State{Seed: seed}, time.Time{}, nil)
		var all []uint64
		for _, p := range purposes {
			all = append(all, tx.Draw(p))
		}
		return all
	}
	mixed := draw(7, "mac", "guid", "mac")
	if alone := draw(7, "mac", "mac"); alone[0] != mixed[0] || alone[1] != mixed[2] {
		t.Error("a draw for one purpose shifts those for another")
	}
	if mixed[0] == mixed[2] || mixed[0] == mixed[1] || draw(8, "mac")[0] == mixed[0] {
		t.Errorf("draws repeat: %x", mixed)
	}
	tx := world.NewTx(&world.State{}, time.Time{}, nil)
	id := tx.UUID()
	if len(id) != 36 || id[14] != '4' || id == tx.UUID() {
		t.Errorf("%q is no random UUID", id)
	}
}

func TestATimelineIsReadAtATime(t *testing.T) {
	start := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	line := []world.Timepoint{{State: "a", From: start}, {State: "b", From: start.Add(time.Second)}, {State: "c", From: start.Add(time.Second)}}
	for _, c := range []struct {
		in   time.Duration
		want string
	}{{-1, ""}, {0, "a"}, {time.Second - 1, "a"}, {time.Second, "c"}, {time.Hour, "c"}} {
		if got := world.At(line, start.Add(c.in)).State; got != c.want {
			t.Errorf("after %s: %q, want %q", c.in, got, c.want)
		}
	}
}

func TestFaultsMatchSkipAndAreUsedUp(t *testing.T) {
	tx := world.NewTx(&world.State{}, time.Time{}, nil)
	tx.Arm(world.Fault{Name: world.FaultBusy, Match: "zfs destroy rpool/*", Skip: 1, Times: 2})
	tx.Arm(world.Fault{Name: world.FaultFail, Match: "zfs mount"})
	hits := func(words ...string) bool { return tx.TakeFault(words, world.FaultFail, world.FaultBusy) != nil }
	var got []bool
	for _, words := range [][]string{
		{"zfs", "destroy", "oxp/x"}, {"zfs", "destroy", "-r", "rpool/x"}, {"zfs", "destroy", "-r", "rpool/x"},
		{"destroy", "zfs", "rpool/x"}, {"zfs", "destroy", "rpool/y"}, {"zfs", "destroy", "rpool/y"},
		{"zfs", "mount", "a"}, {"zfs", "mount", "b"},
	} {
		got = append(got, hits(words...))
	}
	if want := []bool{false, false, true, false, true, false, true, true}; !slices.Equal(got, want) {
		t.Errorf("hits are %v, want %v", got, want)
	}
	tx.Disarm(world.FaultFail, "zfs mount")
	if len(tx.State.Faults) != 0 {
		t.Errorf("left: %v", tx.State.Faults)
	}
}

func TestAHangHoldsUntilItIsDisarmed(t *testing.T) {
	tx := world.NewTx(&world.State{}, time.Time{}, nil)
	tx.Arm(world.Fault{Name: world.FaultHang, Match: "zoneadm halt", Times: 1})
	words := []string{"zoneadm", "-z", "z", "halt"}
	if tx.TakeFault(words, world.FaultHang) == nil || tx.TakeFault(words, world.FaultHang) != nil {
		t.Error("it does not match exactly once")
	}
	if !tx.Armed(world.FaultHang, "zoneadm halt") {
		t.Error("it let go before it was disarmed")
	}
	tx.Disarm("", "")
	if tx.Armed(world.FaultHang, "zoneadm halt") {
		t.Error("it holds although it was disarmed")
	}
}

func TestALostDiskTakesItsPoolWithIt(t *testing.T) {
	tx := world.NewTx(boot.Fresh(boot.Options{}), world.Now(), nil)
	disk := tx.State.Disks[3]
	if !zfs.LoseDisk(tx, disk.Name) || zfs.LoseDisk(tx, "c99t0d0") {
		t.Error("wrong answer about which disks there are")
	}
	for _, p := range tx.State.Pools {
		if lost := p.Name == disk.Pool; lost != (p.Health == "UNAVAIL") {
			t.Errorf("pool %s is %s", p.Name, p.Health)
		}
	}
}

func TestAFreshSled(t *testing.T) {
	for _, c := range []struct {
		options                    boot.Options
		disks, pools, links, brand int
	}{
		{boot.Options{}, 6, 7, 2, 0},
		{boot.Options{Mode: world.Helios, M2: 1, U2: 10, Links: 4}, 11, 12, 4, 0},
		{boot.Options{Mode: world.SmartOS}, 0, 2, 2, 0},
		{boot.Options{Blank: true}, 6, 1, 2, 0},
	} {
		s := boot.Fresh(c.options)
		if len(s.Disks) != c.disks || len(s.Pools) != c.pools || len(s.Links) != c.links {
			t.Errorf("%+v: %d disks, %d pools, %d links", c.options, len(s.Disks), len(s.Pools), len(s.Links))
		}
		for _, p := range s.Pools {
			if s.Datasets[p.Name] == nil {
				t.Errorf("pool %s has no dataset", p.Name)
			}
		}
	}
	for _, bad := range []boot.Options{{Mode: "plan9"}, {Latency: "slow"}} {
		if bad.Check() == nil {
			t.Errorf("%+v is not refused", bad)
		}
	}
}

func BenchmarkTransaction(b *testing.B) {
	dir, err := boot.Init(b.TempDir(), boot.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for name, w := range map[string]*world.World{"memory": boot.Memory(boot.Options{}, hosttest.Files), "directory": dir} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := w.Update(b.Context(), func(tx *world.Tx) error { tx.Count("x"); return nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Each waiter is asked at every change: with a thousand of them a change must
// still be cheap.
func BenchmarkChangeWithThousandWaiters(b *testing.B) {
	w := boot.Memory(boot.Options{}, hosttest.Files)
	ctx, cancel := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	for range 1000 {
		wg.Go(func() { _ = w.Wait(ctx, func(*world.Tx) bool { return false }) })
	}
	for b.Loop() {
		if err := w.Update(b.Context(), func(*world.Tx) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
	cancel()
	wg.Wait()
}
