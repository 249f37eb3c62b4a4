package guard

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/fleet/guard/clock"
	"github.com/sledctl/sledctl/fleet/node"
	"github.com/sledctl/sledctl/host"
)

const (
	mine   = "2e1ff83e-9d5e-5d6d-bd46-73c3c5f1e6a3"
	others = "3e1ff83e-9d5e-5d6d-bd46-73c3c5f1e6a3"
)

// zones is a host with zones, of which zoneadm halts those that run.
type zones struct {
	host.Host
	mu     sync.Mutex
	state  map[string]string
	halted []string
}

func (z *zones) Run(_ context.Context, c host.Command) (host.Result, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	argv := strings.Join(c.Args, " ")
	for name := range z.state {
		if strings.HasSuffix(argv, name+" halt") {
			z.state[name] = "installed"
			z.halted = append(z.halted, name)
			return host.Result{}, nil
		}
	}
	out := "0:global:running:/::ipkg:shared:0\n"
	for name, state := range z.state {
		id := "-"
		if state == "running" {
			id = "1"
		}
		out += id + ":" + name + ":" + state + ":/zone/" + name + "::sparse:excl:0\n"
	}
	return host.Result{Stdout: []byte(out)}, nil
}

func (z *zones) runs(id string) bool {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.state["propolis_instance_"+id] == "running"
}

func TestVMsEndWithTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		now := func() int64 { return int64(time.Since(start)) + 1 }
		sled := &zones{state: map[string]string{"propolis_instance_" + mine: "running", "propolis_instance_" + others: "running"}}
		file := filepath.Join(t.TempDir(), "lease")
		w := &Writer{File: file, Fence: 15 * time.Second, Now: now}
		g := &Guard{File: file, Host: sled, Now: now, Log: slog.New(slog.DiscardHandler)}
		ctx, done := context.WithCancel(t.Context())
		defer done()
		go func() { _ = g.Run(ctx) }()

		if _, err := w.Watch(ctx, node.Run{PropolisID: mine}, now()); err == nil {
			t.Error("a VM is started under a lease that was never renewed")
		}
		renew := func(asked int64) {
			t.Helper()
			if err := w.Renewed(ctx, asked); err != nil {
				t.Fatal(err)
			}
		}
		renew(now())
		if left, err := w.Watch(ctx, node.Run{PropolisID: mine}, now()); err != nil || left != 15*time.Second {
			t.Fatal(left, err)
		}
		if _, err := w.Watch(ctx, node.Run{PropolisID: mine}, now()-int64(16*time.Second)); err == nil {
			t.Error("a claim that was read long ago is started")
		}
		for range 10 {
			time.Sleep(10 * time.Second)
			renew(now())
		}
		if !sled.runs(mine) {
			t.Fatal("it was halted although the lease was renewed")
		}
		asked := now()
		time.Sleep(14 * time.Second)
		renew(asked - int64(time.Second)) // one that was overtaken
		if !sled.runs(mine) {
			t.Fatal("it was halted too early")
		}
		time.Sleep(3 * time.Second)
		if sled.runs(mine) {
			t.Error("it runs although no renewal that was asked for within 15 s has succeeded")
		}
		if !sled.runs(others) {
			t.Error("the VM of another keeper was halted")
		}
	})
}

// A guard that is restarted does not begin to count again, and one whose file is damaged goes
// by what it has read.
func TestAGuardRemembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		now := func() int64 { return int64(time.Since(start)) + 1 }
		file := filepath.Join(t.TempDir(), "lease")
		w := &Writer{File: file, Fence: 15 * time.Second, Now: now}
		ctx, done := context.WithCancel(t.Context())
		defer done()
		if err := w.Renewed(ctx, now()); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Watch(ctx, node.Run{PropolisID: mine}, now()); err != nil {
			t.Fatal(err)
		}
		sled := &zones{state: map[string]string{"propolis_instance_" + mine: "running"}}
		guard := &Guard{File: file, Host: sled, Now: now, Log: slog.New(slog.DiscardHandler)}
		first, end := context.WithCancel(ctx)
		go func() { _ = guard.Run(first) }()
		time.Sleep(10 * time.Second)
		end()
		synctest.Wait()
		go func() { _ = guard.Run(ctx) }()
		time.Sleep(time.Second)
		if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if sled.runs(mine) {
			t.Error("it runs 16 s after the last renewal was asked for")
		}
	})
}

func TestTheClockRuns(t *testing.T) {
	a := clock.Now()
	time.Sleep(time.Millisecond)
	if b := clock.Now(); b-a < int64(time.Millisecond) || a <= 0 {
		t.Errorf("%d, then %d", a, b)
	}
}
