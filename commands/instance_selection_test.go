package commands_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sledctl/sledctl/test/sledtest"
)

// What a pattern has picked is asked for on a terminal, and nothing is touched without a yes;
// what was typed is not asked for.
func TestAVerbOnManyAsks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := sledtest.New(t, sledtest.Small(), "")
		s.Run("bootstrap")
		s.Run("instance ensure web1")
		s.Run("instance ensure web2")
		states := func() string {
			return strings.Join(strings.Fields(s.Run("instance list -H --columns state")), " ")
		}
		for _, typed := range []string{"", "n\n", "maybe\n"} {
			a := onTerminal(s, "instance stop web*", typed)
			if a.Exit != 8 || !strings.Contains(a.Errs, "Stop 2 VMs that run: web1 web2? [y/N]") || states() != "running running" {
				t.Errorf("%q: exit %d, %s, %s", typed, a.Exit, a.Errs, states())
			}
		}
		if a := onTerminal(s, "instance stop web1 web2 -n", ""); a.Exit != 0 || strings.Contains(a.Errs, "[y/N]") {
			t.Errorf("a dry run: exit %d, %s", a.Exit, a.Errs)
		}
		if a := onTerminal(s, "instance stop web1", ""); a.Exit != 0 || strings.Contains(a.Errs, "[y/N]") || states() != "stopped running" {
			t.Errorf("a name: exit %d, %s, %s", a.Exit, a.Errs, states())
		}
		a := onTerminal(s, "instance delete --filter name~^web", "y\n")
		if a.Exit != 0 || !strings.Contains(a.Errs, "Delete 1 VM that runs: web2, and 1 that does not: web1? [y/N]") || states() != "" {
			t.Errorf("a yes: exit %d, %s, %s", a.Exit, a.Errs, states())
		}
	})
}
