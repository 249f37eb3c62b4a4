package sim

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

// The test binary is the stand-in commands too, when it is called by their
// names in a simulated sled. No goroutine outlives the tests.
func TestMain(m *testing.M) {
	if name := filepath.Base(os.Args[0]); IsStandIn(name) && os.Getenv(DirVariable) != "" {
		os.Exit(StandIn(context.Background(), name, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ()))
	}
	goleak.VerifyTestMain(m)
}
