package inventory

import (
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/zfs"
)

// ZonePools names the pools on which zones may lie.
func (inv *Inventory) ZonePools() []string { return inv.index.zonePools }

// ZonePools picks the pools on which zones may lie: those on U.2 disks, or,
// on a sled without any, every pool that is not on an M.2.
func ZonePools(pools []zfs.Pool) []string {
	var external, other []string
	for _, p := range pools {
		switch kind, _ := naming.ParsePool(p.Name); kind {
		case naming.ExternalPool:
			external = append(external, p.Name)
		case naming.OtherPool:
			other = append(other, p.Name)
		}
	}
	if len(external) > 0 {
		return external
	}
	return other
}
