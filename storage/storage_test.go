package storage_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/ledger"
	"github.com/sledctl/sledctl/operation"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/storage"
)

func newEnv(t *testing.T) operation.Env {
	t.Helper()
	sled := sim.New(sim.Options{})
	t.Cleanup(sled.Close)
	n := 0
	return operation.Env{
		Host: sled.Host(), RunDir: "/var/run/sledctl", PID: 1,
		Ledger: func(context.Context) (*ledger.Ledger, error) { return nil, &ledger.AbsentError{} },
		Draw:   func() string { n++; return fmt.Sprint("draw-", n) },
	}
}

func run(t *testing.T, h host.Host, argv ...string) {
	t.Helper()
	result, err := h.Run(t.Context(), host.Command{Program: argv[0], Args: argv[1:]})
	if err != nil || result.Exit != 0 {
		t.Fatalf("%q: %v, exit %d, %s", argv, err, result.Exit, result.Stderr)
	}
}

// somePool is the first pool of a kind that the sled has.
func somePool(t *testing.T, env operation.Env, prefix string) string {
	t.Helper()
	inv, err := storage.Look(t.Context(), env.Host)
	if err != nil {
		t.Fatal(err)
	}
	pools, err := inv.Pools()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pools {
		if strings.HasPrefix(p.Name, prefix) {
			return p.Name
		}
	}
	t.Fatalf("no pool %s*", prefix)
	return ""
}

func ensure(t *testing.T, env operation.Env) operation.Report {
	t.Helper()
	report, err := storage.Ensure(t.Context(), env, false)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestAFreshSledGetsTheExpectedDatasetsOnce(t *testing.T) {
	env := newEnv(t)
	if first := ensure(t, env); len(first.Outcome.Done) != 2*7+4*3 {
		t.Errorf("%d actions for two M.2 and four U.2", len(first.Outcome.Done))
	}
	if second := ensure(t, env); len(second.Plan.Actions) != 0 {
		t.Errorf("the second time: %v", second.Plan.Actions)
	}
}

func TestDriftIsMended(t *testing.T) {
	env := newEnv(t)
	ensure(t, env)
	pool := somePool(t, env, "oxp_")
	run(t, env.Host, "zfs", "set", "quota=1073741824", pool+"/crypt/debug")
	run(t, env.Host, "zfs", "unmount", pool+"/crypt/zone")
	report := ensure(t, env)
	if len(report.Outcome.Done) != 2 {
		t.Errorf("done: %v", report.Outcome.Done)
	}
	if again := ensure(t, env); len(again.Plan.Actions) != 0 {
		t.Errorf("the second time: %v", again.Plan.Actions)
	}
}

func TestWhatSomeoneElseMadeUnderAnExpectedNameIsNotOverwritten(t *testing.T) {
	for name, make := range map[string]func(t *testing.T, env operation.Env, pool string){
		"another mountpoint": func(t *testing.T, env operation.Env, pool string) {
			run(t, env.Host, "zfs", "create", "-o", "mountpoint=/elsewhere", pool+"/crypt")
		},
		"a volume": func(t *testing.T, env operation.Env, pool string) {
			run(t, env.Host, "zfs", "create", "-V", "1048576", pool+"/crypt")
		},
	} {
		t.Run(name, func(t *testing.T) {
			env := newEnv(t)
			pool := somePool(t, env, "oxp_")
			make(t, env, pool)
			_, err := storage.Ensure(t.Context(), env, false)
			conflict, ok := errors.AsType[*storage.ConflictError](err)
			if !ok || conflict.Dataset != pool+"/crypt" {
				t.Errorf("error: %v", err)
			}
		})
	}
}

func TestASledWithoutSuchDisksGetsOneDatasetForZones(t *testing.T) {
	sled := sim.New(sim.Options{M2: -1, U2: -1})
	t.Cleanup(sled.Close)
	env := newEnv(t)
	env.Host = sled.Host()
	report := ensure(t, env)
	if len(report.Outcome.Done) != 1 || report.Outcome.Done[0].Object != "dataset rpool/zone" {
		t.Errorf("done: %v", report.Outcome.Done)
	}
}
