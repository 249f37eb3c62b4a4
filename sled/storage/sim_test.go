package storage_test

import (
	"testing"

	"github.com/sledctl/sledctl/host"
)

func run(t *testing.T, h host.Host, argv ...string) {
	t.Helper()
	result, err := h.Run(t.Context(), host.Command{Program: argv[0], Args: argv[1:]})
	if err != nil || result.Exit != 0 {
		t.Fatalf("%q: %v, exit %d, %s", argv, err, result.Exit, result.Stderr)
	}
}
