package commands_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/sledtest"
)

// The clone of the ipkg brands leaves snapshots on datasets below the base and
// knows a hundred names for them: if no program removes them, the 101st clone
// fails (omniosorg/pkg5, src/brand/ipkg/clone and common.ksh).
func TestAHundredAndOneStartsLeaveNoSnapshot(t *testing.T) {
	if testing.Short() {
		t.Skip(unraced)
	}
	synctest.Test(t, func(t *testing.T) {
		s := sledtest.New(t, sledtest.Small(), "")
		s.Run("bootstrap")
		before := s.Comparable()
		s.Run("instance ensure web1 --nic over=net0")
		s.Run("instance stop web1")
		for range 101 {
			s.Run("instance start web1")
			s.Run("instance stop web1")
		}
		s.Same(before, "after 101 starts and stops")
	})
}

// A no-op must be free to be used in loops: it asks for the zones and the machine, and once for
// each guest NIC what it is held to, which anybody can take off while the VM runs.
func TestEnsureOfWhatIsThereWritesNothingAndAsksTwiceAndForEachNIC(t *testing.T) {
	t.Parallel()
	for nics, with := range []string{"", " --nic over=net0", " --nic over=net0 --nic over=net1,vlan=7"} {
		t.Run(fmt.Sprint(nics), func(t *testing.T) { asksLittle(t, "instance ensure web1 --cpus 4 --memory 8G"+with, 2+nics) })
	}
}

func asksLittle(t *testing.T, line string, most int) {
	s := sledtest.New(t, sledtest.Small(), "")
	s.Run("bootstrap")
	s.Run(line)
	world, ledger := s.Comparable(), ledgerFile(s)
	for _, again := range []string{line, "instance ensure web1", "instance start web1"} {
		r := traced(s, again)
		if r.Exit != 0 {
			t.Fatalf("sledctl %s: exit %d: %s", again, r.Exit, r.Errs)
		}
		asked := 0
		for _, e := range r.events {
			if e.Line.Mutates() {
				t.Errorf("sledctl %s: %s", again, e.Line.Text)
			}
			if e.Status == 0 {
				asked++
			}
		}
		if asked > most {
			t.Errorf("sledctl %s: %d host commands, want at most %d", again, asked, most)
		}
	}
	s.Same(world, "after ensuring what is there")
	if ledgerFile(s) != ledger {
		t.Error("the ledger was written")
	}
}

// ledgerFile is the content of the ledger's copy on the first M.2.
func ledgerFile(s *sledtest.Operator) string {
	s.T.Helper()
	data, err := host.ReadFile(s.Host().Files(), s.LedgerNames()[0])
	if err != nil {
		s.T.Fatal(err)
	}
	return string(data)
}
