package storage_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/ledger"
	"github.com/sledctl/sledctl/operation"
	"github.com/sledctl/sledctl/sim"
)

func newEnv(t *testing.T, o sim.Options) operation.Env {
	t.Helper()
	sled := sim.New(o)
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
