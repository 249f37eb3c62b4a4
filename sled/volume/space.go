package volume

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/zfs"
)

// reserve is the share of a pool, one in so many parts, that a volume leaves free: zones that
// run on the pool write, and a pool that is full stops them all.
const reserve = 32

// SpaceError is a pool that has no room for a volume.
type SpaceError struct {
	Pool       string
	Need, Free uint64 // bytes; Free without what is to be left
	Quota      string // the dataset whose quota bounds it; empty: the pool does
	Holds      []Held // the largest first
	Err        error  // of zfs, which found so itself; nil: it was not asked
}

// Held is what somebody has of a pool.
type Held struct {
	What string
	Used uint64
}

// mostHeld bounds how many are named.
const mostHeld = 5

// Error says what is free, and who holds what.
func (e *SpaceError) Error() string {
	where := "pool " + e.Pool
	if e.Quota != "" {
		where = "the quota of " + e.Quota
	}
	var held []string
	for _, h := range e.Holds[:min(mostHeld, len(e.Holds))] {
		held = append(held, h.What+" "+sizeText(h.Used))
	}
	if more := len(e.Holds) - mostHeld; more > 0 {
		held = append(held, fmt.Sprintf("%d more", more))
	}
	said := fmt.Sprintf("%s has no room: %s is needed, %s is free", where, sizeText(e.Need), sizeText(e.Free))
	if len(held) > 0 {
		said += "; held by " + strings.Join(held, ", ")
	}
	return said
}

func (*SpaceError) Kind() fault.Kind { return fault.Refused }

// Unwrap gives what zfs printed.
func (e *SpaceError) Unwrap() error { return e.Err }

// Hint says what would make room.
func (*SpaceError) Hint() string {
	return "ask for less, add --thin, or name another pool with --pool; to see the volumes, run: sledctl volume list"
}

// room refuses what does not fit where volumes lie on a pool.
func (s Settings) room(view ledger.View, inv *inventory.Inventory, pool string, need uint64) error {
	if need <= free(inv, pool) {
		return nil
	}
	return s.full(view, inv, pool, need)
}

// free is what a volume may take on a pool. What zfs calls available is without the slop that it
// keeps back itself, and within all quotas. The reserve is the pool's: a quota that leaves more of
// the pool than that is not lowered by it.
func free(inv *inventory.Inventory, pool string) uint64 {
	parent, _ := naming.VolumeParent(pool)
	d, _ := inv.Dataset(parent)
	root, _ := inv.Dataset(pool)
	if root.Quota > 0 {
		return d.Available
	}
	return min(d.Available, minus(root.Available, sizeOf(inv, pool)/reserve))
}

// share is how many parts of a pool's reserve are free.
func share(inv *inventory.Inventory, pool string) uint64 {
	return free(inv, pool) / max(sizeOf(inv, pool)/reserve, 1)
}

// full is the error about a pool that has no room.
func (s Settings) full(view ledger.View, inv *inventory.Inventory, pool string, need uint64) *SpaceError {
	parent, _ := naming.VolumeParent(pool)
	d, _ := inv.Dataset(parent)
	e := &SpaceError{Pool: pool, Need: need, Free: free(inv, pool), Holds: s.holds(view, inv, pool)}
	if d.Quota > 0 && d.Available == minus(d.Quota, d.Used) {
		e.Quota = parent
	}
	return e
}

func sizeOf(inv *inventory.Inventory, pool string) uint64 {
	pools, _ := inv.Pools()
	i := slices.IndexFunc(pools, func(p zfs.Pool) bool { return p.Name == pool })
	if i < 0 {
		return 0
	}
	return pools[i].Size
}

// holds says what lies on a pool, the largest first: volumes by name, with their instances, and
// other datasets.
func (s Settings) holds(view ledger.View, inv *inventory.Inventory, pool string) []Held {
	datasets, _ := inv.Datasets()
	has := map[string][]string{}
	if s.Attached != nil {
		has, _ = s.Attached(view) // only to name them
	}
	var all []Held
	for _, d := range datasets {
		if d.Type == zfs.TypeSnapshot || !strings.HasPrefix(d.Name, pool+"/") || d.Used == 0 || hasBelow(datasets, d.Name) {
			continue
		}
		h := Held{What: "dataset " + d.Name, Used: d.Used}
		if r, recorded := At(view, d.Name); recorded {
			h.What = "volume " + r.Name
		} else if d.Type == zfs.TypeVolume {
			h.What = "volume " + d.Name
		} else if at, ok := naming.ZoneParent(pool); ok && d.Name == at.Dataset {
			h.What = "zones"
		} else if path.Dir(d.Name) != pool {
			h.What = path.Base(d.Name)
		}
		if names := has[d.Name]; len(names) > 0 {
			h.What += " (instance " + strings.Join(names, ", ") + ")"
		}
		all = append(all, h)
	}
	slices.SortStableFunc(all, func(a, b Held) int { return cmp.Compare(b.Used, a.Used) })
	return all
}

// hasBelow reports whether a file system or volume that is listed lies in another one: what that
// uses is counted there.
func hasBelow(datasets []zfs.Dataset, name string) bool {
	return slices.ContainsFunc(datasets, func(d zfs.Dataset) bool {
		return d.Type != zfs.TypeSnapshot && strings.HasPrefix(d.Name, name+"/")
	})
}

func minus(a, b uint64) uint64 { return max(a, b) - b }

// sizeText is a number of bytes for people: 20G, 1.5T.
func sizeText(n uint64) string {
	units := []string{"", "K", "M", "G", "T", "P", "E"}
	at, value := 0, float64(n)
	for value >= 1024 && at < len(units)-1 {
		at, value = at+1, value/1024
	}
	return strings.TrimSuffix(strconv.FormatFloat(value, 'f', 1, 64), ".0") + units[at]
}
