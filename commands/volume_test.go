package commands_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/test/sledtest"
)

// The volumes that are made with one instance lie on one pool, unless they do not fit there: a snapshot
// of a VM that runs wants them together.
func TestTheVolumesOfAnInstanceLieTogether(t *testing.T) {
	s := sledtest.New(t, sim.Options{Seed: 1, M2: 1, U2: 2}, "")
	s.Run("bootstrap")
	pools := func(name string) int {
		all := strings.Fields(s.Run("volume list -H --columns pool --instance " + name))
		slices.Sort(all)
		return len(slices.Compact(all))
	}
	for disks, want := range map[string]int{"--disk size=1G --disk size=2G --disk size=1T,thin": 1, "--disk size=2T --disk size=2T": 2} {
		s.Run("instance ensure web1 " + disks)
		if got := pools("web1"); got != want {
			t.Errorf("%s: on %d pools, want %d", disks, got, want)
		}
		s.Run("instance delete web1")
		for _, name := range strings.Fields(s.Run("volume list -o name")) {
			s.Run("volume delete " + name)
		}
	}
}
