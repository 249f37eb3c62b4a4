package inventory

import (
	"slices"
	"strings"

	"github.com/sledctl/sledctl/vnic"
	"github.com/sledctl/sledctl/zfs"
	"github.com/sledctl/sledctl/zone"
)

// index finds things by name: a sled may hold ten thousand, and who judges them
// asks for each.
type index struct {
	zones, links, datasets map[string]int
	mounts                 map[string]int // file systems that are mounted, by directory
	byName                 []int          // datasets, by name: what lies below one stands together
	ranks                  []int          // of each dataset, in byName
	zonePools              []string       // ZonePools of the pools
}

func (inv *Inventory) indexed() index {
	x := index{
		zones:    places(inv.zones, func(z zone.Zone) string { return z.Name }),
		links:    places(inv.links, func(l vnic.Link) string { return l.Name }),
		datasets: places(inv.datasets, func(d zfs.Dataset) string { return d.Name }),
		mounts:   make(map[string]int, len(inv.datasets)),
		byName:   make([]int, len(inv.datasets)),
		ranks:    make([]int, len(inv.datasets)),

		zonePools: ZonePools(inv.pools),
	}
	for i, d := range inv.datasets {
		if d.Type == zfs.TypeFilesystem && d.Mounted {
			x.mounts[d.Mountpoint] = i
		}
	}
	for i := range x.byName {
		x.byName[i] = i
	}
	slices.SortFunc(x.byName, func(a, b int) int { return strings.Compare(inv.datasets[a].Name, inv.datasets[b].Name) })
	for rank, i := range x.byName {
		x.ranks[i] = rank
	}
	return x
}

func places[T any](list []T, name func(T) string) map[string]int {
	found := make(map[string]int, len(list))
	for i, x := range list {
		found[name(x)] = i
	}
	return found
}

func at[T any](list []T, index map[string]int, name string) (T, bool) {
	i, ok := index[name]
	if !ok {
		var none T
		return none, false
	}
	return list[i], true
}

// Below lists what lies below a dataset, itself excluded, in the order of the
// listing; snapshots of the dataset itself are below it.
func (inv *Inventory) Below(name string) []zfs.Dataset {
	after := inv.index.byName
	if i, known := inv.index.datasets[name]; known {
		after = after[inv.index.ranks[i]+1:]
		if len(after) == 0 || !strings.HasPrefix(inv.datasets[after[0]].Name, name) {
			return nil // as of most
		}
	}
	var found []int
	for _, prefix := range []string{name + "/", name + "@"} {
		from, _ := slices.BinarySearchFunc(after, prefix, func(i int, prefix string) int {
			return strings.Compare(inv.datasets[i].Name, prefix)
		})
		for _, i := range after[from:] {
			if !strings.HasPrefix(inv.datasets[i].Name, prefix) {
				break
			}
			found = append(found, i)
		}
	}
	slices.Sort(found)
	below := make([]zfs.Dataset, len(found))
	for i, at := range found {
		below[i] = inv.datasets[at]
	}
	return below
}
