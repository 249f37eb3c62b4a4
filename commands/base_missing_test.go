package commands_test

import (
	"strings"
	"testing"

	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/test/sledtest"
)

// No pool has a base zone: the one that is chosen gets one, and the instance is
// made there, as the dry run has said.
func TestAnInstanceOnASledWithoutBases(t *testing.T) {
	t.Parallel()
	s := sledtest.New(t, sim.Options{Seed: 1, M2: 1, U2: 3}, "")
	s.Run("bootstrap")
	for _, base := range strings.Fields(s.Run("base list -H --columns zone")) {
		s.Run("base retire " + base)
	}
	said := s.Run("instance ensure web1 -n")
	s.Run("instance ensure web1")
	pool := s.Value("instance list -H --columns pool")
	if bases := s.Value("base list -H --columns pool"); bases != pool || !strings.Contains(said, "dataset "+pool+"/crypt/zone/propolis_base_") {
		t.Errorf("web1 is on %s, the bases on %s; the dry run said:\n%s", pool, bases, said)
	}
}
