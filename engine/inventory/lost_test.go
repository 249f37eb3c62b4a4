package inventory_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// A pool whose disk was missing when the sled booted is named by zpool list, and
// zfs cannot open it (spa_load of usr/src/uts/common/fs/zfs/spa.c leaves it
// UNAVAIL). The other pools are known nevertheless.
func TestAPoolWithoutItsDiskHidesNoOther(t *testing.T) {
	s := newSled(t)
	look := func() *inventory.Inventory {
		return inventory.Look(t.Context(), s.Host(), inventory.Want{Parts: every()})
	}
	if lost := look().Lost(); len(lost) != 0 {
		t.Errorf("of a whole sled: %q", lost)
	}
	var name string
	err := s.World().Update(t.Context(), func(tx *world.Tx) error {
		for _, p := range tx.State.Pools {
			disk, _, _ := strings.Cut(p.Vdevs[0], "s")
			if strings.HasPrefix(p.Name, "oxp_") && zfs.LoseDisk(tx, disk) {
				name = p.Name
				return nil
			}
		}
		return errors.New("no disk")
	})
	if err == nil {
		err = s.Reboot(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	inv := look()
	pools, err := inv.Pools()
	if err != nil {
		t.Fatal(err)
	}
	datasets, err := inv.Datasets()
	if err != nil || !slices.Equal(inv.Lost(), []string{name}) {
		t.Fatalf("lost: %q, %v", inv.Lost(), err)
	}
	seen := map[string]bool{}
	for _, d := range datasets {
		pool, _, _ := strings.Cut(d.Name, "/")
		seen[pool] = true
	}
	if seen[name] || len(seen) != len(pools)-1 {
		t.Errorf("of %d pools: %v", len(pools), seen)
	}
}
