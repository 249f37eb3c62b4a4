package zfs

import (
	"cmp"
	_ "embed" // of the table
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/sledctl/sledctl/sim/world"
)

// Properties of pools: usr/src/common/zfs/zpool_prop.c, and zpool_get_prop in
// usr/src/lib/libzfs/common/libzfs_pool.c.

// PoolProperty describes a property of pools.
type PoolProperty struct {
	Name     string
	ReadOnly bool
	Default  string
	Words    []string // nil: any
}

// poolProperties has a line for each property that is simulated: name, kind (ro:
// computed), default, values.
//
//go:embed pool_properties.txt
var poolProperties string

var poolTable = sync.OnceValue(func() map[string]*PoolProperty {
	table := map[string]*PoolProperty{}
	for line := range strings.Lines(poolProperties) {
		w := strings.Fields(line)
		p := &PoolProperty{Name: w[0], ReadOnly: w[1] == "ro", Default: w[2]}
		if w[1] == "word" {
			p.Words = strings.Split(strings.Join(w[3:], " "), " | ")
		}
		table[p.Name] = p
	}
	return table
})

// FindPoolProperty is the property of this name, nil if there is none or it is not
// simulated.
func FindPoolProperty(name string) *PoolProperty { return poolTable()[name] }

// PoolValue is the value of a property as zpool list prints it. Literal is -p.
func (s *Survey) PoolValue(p *world.Pool, property string, literal bool) string {
	d := FindPoolProperty(property)
	switch {
	case p.Unloaded && d.Name == "health":
		return "FAULTED" // zpool_get_prop, POOL_STATE_UNAVAIL
	case p.Unloaded && d.Name != "name" && d.Name != "guid":
		return "-"
	case !d.ReadOnly:
		return cmp.Or(p.Properties[d.Name], d.Default)
	}
	figure := func(n uint64, unit string) string {
		switch {
		case literal:
			return strconv.FormatUint(n, 10)
		case unit == "%":
			return strconv.FormatUint(n, 10) + unit
		}
		return NiceNumber(n)
	}
	switch property {
	case "name":
		return p.Name
	case "health":
		return p.Health
	case "guid":
		return strconv.FormatUint(p.GUID, 10)
	case "dedupratio":
		return "1.00x"
	case "size":
		return figure(p.Size, "")
	case "allocated":
		return figure(s.allocated(p), "")
	case "free":
		return figure(minus(p.Size, s.allocated(p)), "")
	case "capacity":
		return figure(s.allocated(p)*100/max(1, p.Size), "%")
	case "fragmentation":
		return figure(0, "%")
	}
	return "-" // altroot, expandsize, checkpoint: there is none.
}

// allocated is what the datasets of a pool have written; what is only reserved
// does not count.
func (s *Survey) allocated(p *world.Pool) uint64 {
	total, known := s.allocation[p]
	if known {
		return total
	}
	total = p.Ballast
	if root := FindDataset(s.tx, p.Name); root != nil {
		for _, own := range s.written(root) {
			total += own
		}
	}
	s.allocation[p] = total
	return total
}

// SetPoolProperty is zpool set.
func SetPoolProperty(tx *world.Tx, name, property, value string) error {
	p, err := OpenPool(tx, name)
	if err != nil {
		return err
	}
	checked, err := checkPoolSettings(&checker{tx: tx, action: "cannot set property for '" + name + "'"}, map[string]string{property: value})
	if err != nil {
		return err
	}
	if p.Properties == nil {
		p.Properties = map[string]string{}
	}
	maps.Copy(p.Properties, checked)
	return nil
}

// checkPoolSettings is zpool_valid_proplist.
func checkPoolSettings(c *checker, props map[string]string) (map[string]string, error) {
	for name, value := range props {
		p := FindPoolProperty(name)
		n, err := strconv.Atoi(value)
		if p == nil || p.ReadOnly || p.Words != nil && !slices.Contains(p.Words, value) ||
			p.Name == "ashift" && (err != nil || n != 0 && (n < 9 || n > 16)) {
			return nil, world.NotSimulated("zpool: the property %s=%s of a pool", name, value)
		}
	}
	return maps.Clone(props), nil
}
