// Package operationtest is for tests of what is done through package operation:
// hosts with a ledger, and ledgers that hold what a test says.
package operationtest

import (
	"context"
	"fmt"
	"sync"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/hosttest"
)

// RunDir is where the operations of an Env keep what a reboot may forget.
const RunDir = "/var/run/sledctl"

// T is a test, also one of random properties.
type T interface {
	Helper()
	Fatal(...any)
}

// places are those of a sled that has no M.2s.
func places() ledger.Places {
	return ledger.Places{Lock: RunDir + "/ledger.lock", Locations: []ledger.Location{{Directory: "/state"}}}
}

// New is a process on a host, which gets a ledger with nothing in it.
func New(t T, h host.Host) operation.Env {
	t.Helper()
	for _, dir := range []string{"/state", RunDir} {
		if err := host.MkdirAll(h.Files(), dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := ledger.Create(context.Background(), h.Files(), places(), ledger.Creation{Who: "test"}); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	n := 0
	draw := func() string { mu.Lock(); defer mu.Unlock(); n++; return fmt.Sprint("draw-", n) }
	return On(operation.Env{RunDir: RunDir, PID: 1, NewID: draw}, h)
}

// On is env as it is on a host that has the files of env's, such as one on
// which it dies.
func On(env operation.Env, h host.Host) operation.Env {
	env.Host = h
	env.Ledger = func(ctx context.Context) (*ledger.Ledger, error) {
		l, _, err := ledger.Open(ctx, h.Files(), places())
		return l, err
	}
	return env
}

// View is what env's ledger says.
func View(t T, env operation.Env) ledger.View {
	t.Helper()
	l, err := env.Ledger(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	view, err := l.Read(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return view
}

// Book is what a ledger says that holds these facts.
func Book(t T, facts ...ledger.Fact) ledger.View {
	t.Helper()
	l, err := New(t, files{all: hosttest.Memory()}).Ledger(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	view, err := l.Update(context.Background(), func(ledger.View) ([]ledger.Fact, error) { return facts, nil })
	if err != nil {
		t.Fatal(err)
	}
	return view
}

// files is a host that has nothing but files.
type files struct {
	host.Host
	all host.Files
}

func (f files) Files() host.Files { return f.all }
