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

// A prefetch as deep as one of its wants answers a less deep one, and asks again for what
// lies deeper.
func TestAPrefetchAnswersNoDeeperThanItLooked(t *testing.T) {
	s := sim.New(sim.Options{M2: 1, U2: 1, Seed: 1}, hosttest.Files)
	t.Cleanup(s.Close)
	pools, err := zfs.Pools(t.Context(), s.Host())
	if err != nil {
		t.Fatal(err)
	}
	pool := below("oxp_")(pools)[0]
	for _, name := range []string{"/a", "/a/b", "/a/b/c"} {
		if r, err := s.Host().Run(t.Context(), host.Command{Program: "zfs", Args: []string{"create", pool + name}}); err != nil || r.Exit != 0 {
			t.Fatal(string(r.Stderr), err)
		}
	}
	deep := func(depth int) inventory.Want {
		return inventory.Want{Parts: []inventory.Part{inventory.Datasets}, Roots: below("oxp_"), Narrow: &inventory.Narrow{Depth: depth}}
	}
	all := deep(0)
	all.Narrow = nil
	h := asked{s.Host(), new(atomic.Int32)}
	prefetched := inventory.Prefetch(t.Context(), h, deep(1), deep(2), inventory.Want{Parts: []inventory.Part{inventory.Zones}})
	before := h.n.Load()
	for _, c := range []struct {
		want  inventory.Want
		asks  bool
		there map[string]bool
	}{
		{deep(1), false, map[string]bool{"/a": true, "/a/b": true, "/a/b/c": false}}, // what is there besides does no harm
		{deep(2), false, map[string]bool{"/a": true, "/a/b": true, "/a/b/c": false}},
		{deep(3), true, map[string]bool{"/a": true, "/a/b": true, "/a/b/c": true}},
		{all, true, map[string]bool{"/a/b/c": true}},
	} {
		inv := inventory.Look(t.Context(), prefetched, c.want)
		for name, want := range c.there {
			if _, there := inv.Dataset(pool + name); there != want || inv.Know(inventory.Datasets) != nil {
				t.Errorf("%+v: %s is there: %v, want %v", c.want.Narrow, name, there, want)
			}
		}
		if asks := h.n.Load() > before; asks != c.asks {
			t.Errorf("%+v: asks the host: %v", c.want.Narrow, asks)
		}
		before = h.n.Load()
	}
	// With a want of everything, everything is prefetched.
	wide := inventory.Prefetch(t.Context(), h, all, deep(1))
	before = h.n.Load()
	if _, there := inventory.Look(t.Context(), wide, all).Dataset(pool + "/a/b/c"); !there || h.n.Load() != before {
		t.Errorf("there: %v, asked %d times", there, h.n.Load()-before)
	}
}
