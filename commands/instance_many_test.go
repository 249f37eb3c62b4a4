package commands_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/test/sledtest"
)

// All instances that start at once need the same base, which is missing: one creates
// it, the others wait for that.
func TestWhoComeUpTogetherShareTheBaseThatOneOfThemMakes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := sledtest.New(t, sim.Options{Seed: 1, M2: 1, U2: 1, Latency: "helios2021"}, "")
		s.Run("bootstrap")
		for _, name := range []string{"web1", "web2", "web3", "web4"} {
			s.Run("instance ensure " + name)
		}
		s.Run("instance stop --all")
		s.Run("base retire " + s.Value("base list -H -o name"))
		start := time.Now()
		out := s.Run("instance ensure --all -H --columns name,state")
		if out != "web1\trunning\nweb2\trunning\nweb3\trunning\nweb4\trunning\n" {
			t.Errorf("%s", out)
		}
		together := time.Since(start)
		if bases := s.Run("base list -H -o name"); strings.Count(bases, "\n") != 1 {
			t.Errorf("bases:\n%s", bases)
		}

		// Side by side takes less than one after the other.
		s.Run("instance stop --all")
		start = time.Now()
		s.Run("instance ensure --all")
		side := time.Since(start)
		s.Run("instance stop --all")
		start = time.Now()
		s.Run("instance ensure --all --parallel 1")
		if alone := time.Since(start); 2*side > alone || together < side {
			t.Errorf("with a base to make %s, side by side %s, one by one %s", together, side, alone)
		}
	})
}
