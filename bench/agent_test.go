package main

import (
	"os"
	"testing"
)

// The measurement of the agent measures something: all its rows come.
func TestTheAgentIsMeasured(t *testing.T) {
	if os.Getenv("SLEDCTL_SOAK") == "" {
		t.Skip("half a minute")
	}
	b := bench{dir: t.TempDir()}
	rows, err := b.agents(t.Context())
	if err != nil || len(rows) != 6 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	print(os.Stdout, rows)
}
