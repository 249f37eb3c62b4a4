package commands_test

import (
	"testing"
	"testing/synctest"

	"github.com/sledctl/sledctl/host"
)

// The clone of the ipkg brands leaves snapshots on datasets below the base and
// knows a hundred names for them: without someone who takes them away, the
// 101st clone fails (omniosorg/pkg5, src/brand/ipkg/clone and common.ksh).
func TestAHundredAndOneStartsLeaveNoSnapshot(t *testing.T) {
	if testing.Short() {
		t.Skip(unraced)
	}
	synctest.Test(t, func(t *testing.T) {
		s := newSled(t, small(), "")
		s.run("bootstrap")
		before := s.world()
		s.run("instance ensure web1 --nic over=net0")
		s.run("instance stop web1")
		for range 101 {
			s.run("instance start web1")
			s.run("instance stop web1")
		}
		s.same(before, "after 101 starts and stops")
	})
}

// A no-op must be free to be used in loops.
func TestEnsureOfWhatIsThereWritesNothingAndAsksTwice(t *testing.T) {
	s := newSled(t, small(), "")
	s.run("bootstrap")
	const line = "instance ensure web1 --cpus 4 --memory 8G --nic over=net0"
	s.run(line)
	world, ledger := s.world(), s.ledgerFile()
	for _, again := range []string{line, "instance ensure web1", "instance start web1"} {
		r := s.traced(again)
		if r.exit != 0 {
			t.Fatalf("sledctl %s: exit %d: %s", again, r.exit, r.errs)
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
		if asked > 2 {
			t.Errorf("sledctl %s: %d host commands", again, asked)
		}
	}
	s.same(world, "after ensuring what is there")
	if s.ledgerFile() != ledger {
		t.Error("the ledger was written")
	}
}

// ledgerFile is the content of the ledger's copy on the first M.2.
func (s *sled) ledgerFile() string {
	s.t.Helper()
	data, err := host.ReadFile(s.Host().Files(), s.ledgerNames()[0])
	if err != nil {
		s.t.Fatal(err)
	}
	return string(data)
}

// ledgerNames are the names of the ledger's copies.
func (s *sled) ledgerNames() (names []string) {
	s.t.Helper()
	const pools = "/pool/int"
	below, err := s.Host().Files().ReadDir(pools)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, pool := range below {
		names = append(names, pools+"/"+pool.Name+"/config/sledctl/ledger.jsonl")
	}
	return names
}
