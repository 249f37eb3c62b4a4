package inventory_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/hosttest"
	"github.com/sledctl/sledctl/zfs"
)

// asked counts the commands that a host is asked to run.
type asked struct {
	host.Host
	n *atomic.Int32
}

func (a asked) Run(ctx context.Context, c host.Command) (host.Result, error) {
	a.n.Add(1)
	return a.Host.Run(ctx, c)
}

// below picks the pools whose name says that they are on disks of a kind.
func below(prefix string) func([]zfs.Pool) []string {
	return func(pools []zfs.Pool) []string {
		var names []string
		for _, p := range pools {
			if len(p.Name) > 4 && p.Name[:4] == prefix {
				names = append(names, p.Name)
			}
		}
		return names
	}
}

func TestAPrefetchAnswersAsALookWould(t *testing.T) {
	s := sim.New(sim.Options{M2: 2, U2: 2, Seed: 1}, hosttest.Files)
	t.Cleanup(s.Close)
	h := asked{s.Host(), new(atomic.Int32)}
	internal := inventory.Want{Parts: []inventory.Part{inventory.Datasets}, Roots: below("oxi_"), User: zfs.Extended()}
	external := inventory.Want{Parts: []inventory.Part{inventory.Zones, inventory.Links, inventory.Datasets}, Roots: below("oxp_"), User: []string{"a:b"}}
	none := inventory.Want{Parts: []inventory.Part{inventory.Zones}}
	prefetched := inventory.Prefetch(t.Context(), h, internal, external, none)
	before := h.n.Load()
	for name, want := range map[string]inventory.Want{"internal": internal, "external": external, "none": none} {
		got := inventory.Look(t.Context(), host.ReadOnly(prefetched), want)
		real := inventory.Look(t.Context(), s.Host(), want)
		for _, part := range append(every(), inventory.Addresses) {
			if is, must := got.Know(part) == nil, real.Know(part) == nil; is != must {
				t.Errorf("%s: %s is known: %v, want %v", name, part, is, must)
			}
		}
		names := func(inv *inventory.Inventory) (names []string) {
			all, _ := inv.Datasets()
			for _, d := range all {
				names = append(names, d.Name)
			}
			return names
		}
		if d := cmp.Diff(names(real), names(got)); d != "" {
			t.Errorf("%s (-look +prefetch):\n%s", name, d)
		}
		for _, d := range names(real) {
			if _, found := got.Dataset(d); !found {
				t.Errorf("%s: %s is not found by name", name, d)
			}
		}
	}
	if n := h.n.Load() - before; n != 0 {
		t.Errorf("%d commands were run for what had been seen", n)
	}
	all := inventory.Look(t.Context(), prefetched, inventory.Want{Parts: every()})
	if datasets, err := all.Datasets(); err != nil || !slices.ContainsFunc(datasets, func(d zfs.Dataset) bool { return d.Name == "rpool" }) || h.n.Load() == before {
		t.Errorf("what had not been seen is not looked at: %v", err)
	}
}

func TestAPrefetchRefusesChangesAndKeepsWhatFailed(t *testing.T) {
	s := newSled(t)
	err := s.World().Update(t.Context(), func(tx *world.Tx) error {
		tx.Arm(world.Fault{Name: world.FaultFail, Match: "zoneadm list", Times: 1, Exit: 1, Text: "out of luck"})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := inventory.Want{Parts: []inventory.Part{inventory.Zones, inventory.Links}}
	h := inventory.Prefetch(t.Context(), s.Host(), want)
	if inv := inventory.Look(t.Context(), h, want); inv.Know(inventory.Zones) == nil || inv.Know(inventory.Links) != nil {
		t.Errorf("%v, %v", inv.Know(inventory.Zones), inv.Know(inventory.Links))
	}
	if _, err := h.Run(t.Context(), host.Command{Program: "zfs", Args: []string{"create", "rpool/a"}}); !errors.Is(err, host.ErrReadOnly) {
		t.Errorf("it changes things: %v", err)
	}
}
