package commands_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/sledtest"
)

// neighbour is another host on the sled's etherstub, which no listing shows.
func neighbour(s *sledtest.Operator, addresses ...string) {
	s.T.Helper()
	err := s.World().Update(context.Background(), func(tx *world.Tx) error {
		tx.State.Links = append(tx.State.Links, &world.Link{Name: "other0", Class: "vnic", Over: "propolis_stub0", MAC: "02:08:20:fe:fe:fe", Zone: "other", Up: true})
		stack := &world.Stack{Interfaces: []*world.Interface{{Name: "other0"}}}
		for _, a := range addresses {
			stack.Addresses = append(stack.Addresses, &world.Address{Object: "other0/" + a, Type: "static", Address: a, Timeline: []world.Timepoint{{State: "ok"}}})
		}
		tx.State.Stacks["other"] = stack
		return nil
	})
	if err != nil {
		s.T.Fatal(err)
	}
}

// Another host on the underlay has the addresses that are chosen: others are, and
// nothing is left of the first attempts. One that was asked for is not changed.
func TestAnAddressThatAnotherHostHas(t *testing.T) {
	t.Parallel()
	s := sledtest.New(t, sledtest.Small(), "")
	s.Run("bootstrap")
	neighbour(s, "127.77.0.2/16", "127.77.0.3/16", "127.77.0.5/16")
	before := s.Run("zone list -H --columns name")
	a := s.Try("instance ensure web1 -H --columns name,state,address")
	if a.Exit != 0 || a.Out != "web1\trunning\t127.77.0.4/16\n" {
		t.Fatalf("exit %d: %s%s", a.Exit, a.Out, a.Errs)
	}
	for _, said := range []string{"another host already uses 127.77.0.2", "another host already uses 127.77.0.3"} {
		if !strings.Contains(a.Errs, said) {
			t.Errorf("%q is not told: %s", said, a.Errs)
		}
	}
	if a := s.Try("instance ensure web2 --address 127.77.0.5/16"); a.Exit != 1 || !strings.Contains(a.Errs, "duplicate address") || !strings.Contains(a.Errs, "to ask for an address that no other host has, add --address") {
		t.Errorf("exit %d: %s", a.Exit, a.Errs)
	}
	s.Run("instance delete web1")
	if after := s.Run("zone list -H --columns name"); after != before {
		t.Errorf("zones: %s, were %s", after, before)
	}
	if out := s.Run("reap -n -H"); strings.Contains(out, "orphan") {
		t.Error(out)
	}
}

// Every address that is tried is another host's: it ends, and leaves nothing.
func TestEveryAddressIsAnotherHosts(t *testing.T) {
	t.Parallel()
	s := sledtest.New(t, sledtest.Small(), "")
	s.Run("bootstrap")
	var all []string
	for n := range 20 {
		all = append(all, fmt.Sprintf("127.77.0.%d/16", 2+n))
	}
	neighbour(s, all...)
	before := s.Comparable()
	a := s.Try("instance ensure web1")
	if a.Exit != 1 || strings.Count(a.Errs, "another host already uses") != 8 || !strings.Contains(a.Errs, "to ask for an address that no other host has") {
		t.Errorf("exit %d: %s", a.Exit, a.Errs)
	}
	s.Same(before, "after nothing could be made")
}
