package commands_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/sim/world"
)

// neighbour is another host on the sled's etherstub, of which no listing tells.
func (s *sled) neighbour(addresses ...string) {
	s.t.Helper()
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
		s.t.Fatal(err)
	}
}

// Another host on the underlay has the addresses that are chosen: others are, and
// nothing is left of the first attempts. One that was asked for is not changed.
func TestAnAddressThatAnotherHostHas(t *testing.T) {
	s := newSled(t, small(), "")
	s.run("bootstrap")
	s.neighbour("127.77.0.2/16", "127.77.0.3/16", "127.77.0.5/16")
	before := s.run("zone list -H --columns name")
	a := s.try("instance ensure web1 -H --columns name,state,address")
	if a.exit != 0 || a.out != "web1\trunning\t127.77.0.4/16\n" {
		t.Fatalf("exit %d: %s%s", a.exit, a.out, a.errs)
	}
	for _, said := range []string{"another host already uses 127.77.0.2", "another host already uses 127.77.0.3"} {
		if !strings.Contains(a.errs, said) {
			t.Errorf("%q is not told: %s", said, a.errs)
		}
	}
	if a := s.try("instance ensure web2 --address 127.77.0.5/16"); a.exit != 1 || !strings.Contains(a.errs, "duplicate address") || !strings.Contains(a.errs, "--address asks for another one") {
		t.Errorf("exit %d: %s", a.exit, a.errs)
	}
	s.run("instance delete web1")
	if after := s.run("zone list -H --columns name"); after != before {
		t.Errorf("zones: %s, were %s", after, before)
	}
	if out := s.run("reap -n -H"); strings.Contains(out, "orphan") {
		t.Error(out)
	}
}

// Every address that is tried is another host's: it ends, and leaves nothing.
func TestEveryAddressIsAnotherHosts(t *testing.T) {
	s := newSled(t, small(), "")
	s.run("bootstrap")
	var all []string
	for n := range 20 {
		all = append(all, fmt.Sprintf("127.77.0.%d/16", 2+n))
	}
	s.neighbour(all...)
	before := s.world()
	a := s.try("instance ensure web1")
	if a.exit != 1 || strings.Count(a.errs, "another host already uses") != 8 || !strings.Contains(a.errs, "another host has this address") {
		t.Errorf("exit %d: %s", a.exit, a.errs)
	}
	s.same(before, "after nothing could be made")
}
