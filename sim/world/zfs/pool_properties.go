package zfs

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/sledctl/sledctl/sim/world"
)

// Properties of pools: usr/src/common/zfs/zpool_prop.c, in the order of zpool
// get all, and zpool_get_prop in usr/src/lib/libzfs/common/libzfs_pool.c.

// PoolProperty describes a property of pools.
type PoolProperty struct {
	Name, Column string
	Kind         PropertyKind
	ReadOnly     bool
	Default      string
	Values       string
	Words        []string
}

// Right says that zpool list sets its column right.
func (p *PoolProperty) Right() bool { return p.Kind != PropertyText }

// Width is the least width of its column, and whether no value is wider.
func (p *PoolProperty) Width() (width int, fixed bool) {
	width, fixed = len(p.Column), p.Kind != PropertyText
	switch {
	case p.Name == "health":
		width = len("DEGRADED")
	case p.Kind == PropertyNumber:
		width = max(width, 5)
	}
	for _, w := range p.Words {
		width = max(width, len(w))
	}
	return width, fixed
}

// PoolProperties gives all but the name, in the order of zpool get all.
func PoolProperties() []*PoolProperty { return slices.Clone(poolTable().all) }

type poolPropertyTable struct {
	all    []*PoolProperty
	byName map[string]*PoolProperty
}

var poolTable = sync.OnceValue(func() poolPropertyTable {
	name := &PoolProperty{Name: "name", Column: "NAME", Kind: PropertyText, ReadOnly: true}
	t := poolPropertyTable{all: listPoolProperties(), byName: map[string]*PoolProperty{name.Name: name}}
	for _, p := range t.all {
		t.byName[strings.ToLower(p.Column)] = p
	}
	for _, p := range t.all {
		t.byName[p.Name] = p
	}
	return t
})

// poolRows describe the properties of pools, in the order of zpool get all: name,
// heading, kind (ro: computed), default, values.
const poolRows = `
size          SIZE      ro     -    <size>
capacity      CAP       ro     -    <size>
altroot       ALTROOT   text   -    <path>
health        HEALTH    ro     -    <state>
guid          GUID      ro     -    <guid>
bootfs        BOOTFS    text   -    <filesystem>
autoreplace   REPLACE   word   off  on | off
cachefile     CACHEFILE text   -    <file> | none
failmode      FAILMODE  word   wait wait | continue | panic
listsnapshots LISTSNAPS word  off  on | off
autoexpand    EXPAND    word   off  on | off
free          FREE      ro     -    <size>
allocated     ALLOC     ro     -    <size>
readonly      RDONLY    word   off  on | off
ashift        ASHIFT    number 0    <ashift, 9-16, or 0=default>
comment       COMMENT   text   -    <comment-string>
expandsize    EXPANDSZ  ro     -    <size>
fragmentation FRAG      ro     -    <percent>
dedupratio    DEDUP     ro     -    <1.00x or higher if deduped>
checkpoint    CKPOINT   ro     -    <size>
autotrim      AUTOTRIM  word   off  on | off
`

// listPoolProperties reads poolRows.
func listPoolProperties() []*PoolProperty {
	kinds := map[string]PropertyKind{"text": PropertyText, "word": PropertyWord}
	var all []*PoolProperty
	for line := range strings.SplitSeq(strings.TrimSpace(poolRows), "\n") {
		w := strings.Fields(line)
		p := &PoolProperty{Name: w[0], Column: w[1], Kind: kinds[w[2]], ReadOnly: w[2] == "ro", Default: w[3], Values: strings.Join(w[4:], " ")}
		if p.Kind == PropertyWord {
			p.Words = strings.Split(p.Values, " | ")
		}
		all = append(all, p)
	}
	return all
}

// FindPoolProperty finds a property by its name or its column's in lower case,
// the name too. It is nil for anything else.
func FindPoolProperty(name string) *PoolProperty { return poolTable().byName[name] }

// PoolValue is the value of a property as zpool get prints it, and its source.
func (s *Survey) PoolValue(p *world.Pool, property string, literal bool) (value, source string, ok bool) {
	d := FindPoolProperty(property)
	switch {
	case d == nil:
		return "-", SourceNone, false
	case p.Unloaded && d.Name == "health":
		return "FAULTED", SourceNone, true // zpool_get_prop, POOL_STATE_UNAVAIL
	case p.Unloaded && d.Name != "name" && d.Name != "guid":
		return "-", SourceNone, true
	}
	if d.ReadOnly {
		return s.poolFigure(p, d.Name, literal), SourceNone, true
	}
	if v, set := p.Properties[d.Name]; set {
		return v, SourceLocal, true
	}
	return d.Default, SourceDefault, true
}

func (s *Survey) poolFigure(p *world.Pool, property string, literal bool) string {
	bytes := func(n uint64) string {
		if literal {
			return strconv.FormatUint(n, 10)
		}
		return NiceNumber(n)
	}
	percent := func(n uint64) string {
		if literal {
			return strconv.FormatUint(n, 10)
		}
		return strconv.FormatUint(n, 10) + "%"
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
		return bytes(p.Size)
	case "allocated":
		return bytes(s.allocated(p))
	case "free":
		return bytes(minus(p.Size, s.allocated(p)))
	case "capacity":
		return percent(s.allocated(p) * 100 / max(1, p.Size))
	case "fragmentation", "freeing", "leaked":
		if property == "fragmentation" {
			return percent(0)
		}
		return bytes(0)
	}
	return "-" // expandsize, checkpoint: there is none.
}

// allocated is what the datasets of a pool have written; what is only reserved
// does not count.
func (s *Survey) allocated(p *world.Pool) uint64 {
	if s.allocation == nil {
		s.allocation = map[string]uint64{}
		for _, d := range s.All() {
			s.allocation[PoolName(d.Name)] += s.own(d)
		}
	}
	return p.Ballast + s.allocation[p.Name]
}

// SetPoolProperty is zpool set.
func SetPoolProperty(tx *world.Tx, name, property, value string) error {
	p, err := OpenPool(tx, name)
	if err != nil {
		return err
	}
	c := &checker{tx: tx, action: "cannot set property for '" + name + "'"}
	checked, err := checkPoolSettings(c, map[string]string{property: value})
	switch {
	case err != nil:
		return err
	case checked["readonly"] != "":
		return c.refuse("property 'readonly' can only be set at import time")
	case ReadOnly(p):
		return c.refuse("pool is read-only")
	}
	setPoolProperties(p, checked)
	return nil
}

// checkPoolSettings is zpool_valid_proplist.
func checkPoolSettings(c *checker, props map[string]string) (map[string]string, error) {
	out := map[string]string{}
	for _, name := range sortedNames(props) {
		value := props[name]
		p := FindPoolProperty(name)
		switch {
		case strings.HasPrefix(name, "feature@"):
			return nil, world.NotSimulated("the property %s of a pool", name)
		case p == nil:
			return nil, c.refuse("invalid property '%s'", name)
		case p.ReadOnly:
			return nil, c.refuse("'%s' is readonly", name)
		case p.Words != nil && !slices.Contains(p.Words, value):
			return nil, c.refuse("'%s' must be one of '%s'", name, p.Values)
		case p.Name == "ashift":
			if n, err := strconv.Atoi(value); err != nil || n != 0 && (n < 9 || n > 16) {
				return nil, c.refuse("invalid '%s=%s' property: only values between 9 and 16 are allowed.", name, value)
			}
		case p.Name == "altroot" && !strings.HasPrefix(value, "/"):
			return nil, c.refuse("bad alternate root '%s'", value)
		}
		out[p.Name] = value
	}
	return out, nil
}

func setPoolProperties(p *world.Pool, checked map[string]string) {
	if p.Properties == nil {
		p.Properties = map[string]string{}
	}
	maps.Copy(p.Properties, checked)
}
