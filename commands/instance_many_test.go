package commands_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/sim"
)

// All that come up at once need the same base, which is not there any more: one
// makes it, the others wait for that.
func TestWhoComeUpTogetherShareTheBaseThatOneOfThemMakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSled(t, sim.Options{Seed: 1, M2: 1, U2: 1, Latency: "helios2021"}, "")
		s.run("bootstrap")
		for _, name := range []string{"web1", "web2", "web3", "web4"} {
			s.run("instance ensure " + name)
		}
		s.run("instance stop --all")
		s.run("base retire " + s.value("base list -H -o name"))
		start := time.Now()
		out := s.run("instance ensure --all -H --columns name,state")
		if out != "web1\trunning\nweb2\trunning\nweb3\trunning\nweb4\trunning\n" {
			t.Errorf("%s", out)
		}
		together := time.Since(start)
		if bases := s.run("base list -H -o name"); strings.Count(bases, "\n") != 1 {
			t.Errorf("bases:\n%s", bases)
		}

		// Side by side takes less than one after the other.
		s.run("instance stop --all")
		start = time.Now()
		s.run("instance ensure --all")
		side := time.Since(start)
		s.run("instance stop --all")
		start = time.Now()
		s.run("instance ensure --all --parallel 1")
		if alone := time.Since(start); 2*side > alone || together < side {
			t.Errorf("with a base to make %s, side by side %s, one by one %s", together, side, alone)
		}
	})
}
