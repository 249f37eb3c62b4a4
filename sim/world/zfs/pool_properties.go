package zfs

import (
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

func listPoolProperties() []*PoolProperty {
	number := func(name, column, values string) *PoolProperty {
		return &PoolProperty{Name: name, Column: column, ReadOnly: true, Values: values}
	}
	text := func(name, column, def, values string) *PoolProperty {
		return &PoolProperty{Name: name, Column: column, Kind: PropertyText, Default: def, Values: values}
	}
	words := func(name, column, def, values string) *PoolProperty {
		return &PoolProperty{Name: name, Column: column, Kind: PropertyWord, Default: def, Values: values,
			Words: strings.Split(values, " | ")}
	}
	return []*PoolProperty{
		number("size", "SIZE", "<size>"),
		number("capacity", "CAP", "<size>"),
		text("altroot", "ALTROOT", "-", "<path>"),
		number("health", "HEALTH", "<state>"),
		number("guid", "GUID", "<guid>"),
		{Name: "version", Column: "VERSION", Default: "-", Values: "<version>"},
		text("bootfs", "BOOTFS", "-", "<filesystem>"),
		words("delegation", "DELEGATION", "on", "on | off"),
		words("autoreplace", "REPLACE", "off", "on | off"),
		text("cachefile", "CACHEFILE", "-", "<file> | none"),
		words("failmode", "FAILMODE", "wait", "wait | continue | panic"),
		words("listsnapshots", "LISTSNAPS", "off", "on | off"),
		words("autoexpand", "EXPAND", "off", "on | off"),
		number("dedupratio", "DEDUP", "<1.00x or higher if deduped>"),
		number("free", "FREE", "<size>"),
		number("allocated", "ALLOC", "<size>"),
		{Name: "readonly", Column: "RDONLY", Kind: PropertyWord, Default: "off", Values: "on | off", Words: []string{"on", "off"}},
		{Name: "ashift", Column: "ASHIFT", Default: "0", Values: "<ashift, 9-16, or 0=default>"},
		text("comment", "COMMENT", "-", "<comment-string>"),
		number("expandsize", "EXPANDSZ", "<size>"),
		number("freeing", "FREEING", "<size>"),
		number("fragmentation", "FRAG", "<percent>"),
		number("leaked", "LEAKED", "<size>"),
		{Name: "bootsize", Column: "BOOTSIZE", Default: "-", Values: "<size>"},
		number("checkpoint", "CKPOINT", "<size>"),
		words("multihost", "MULTIHOST", "off", "on | off"),
		words("autotrim", "AUTOTRIM", "off", "on | off"),
	}
}

// FindPoolProperty finds a property by its name or its column's in lower case,
// the name too. It is nil for anything else.
func FindPoolProperty(name string) *PoolProperty { return poolTable().byName[name] }

// PoolFeatures are the names behind "feature@" (usr/src/common/zfs/zfeature_common.c).
func PoolFeatures() []string {
	return strings.Fields("async_destroy empty_bpobj lz4_compress multi_vdev_crash_dump spacemap_histogram enabled_txg hole_birth " +
		"extensible_dataset embedded_data bookmarks filesystem_limits large_blocks large_dnode sha512 skein edonr " +
		"device_removal obsolete_counts zpool_checkpoint spacemap_v2 allocation_classes resilver_defer encryption bookmark_v2 " +
		"userobj_accounting project_quota log_spacemap")
}

// PoolValue is the value of a property as zpool get prints it, and its source.
func (s *Survey) PoolValue(p *world.Pool, property string, literal bool) (value, source string, ok bool) {
	if feature, is := strings.CutPrefix(property, "feature@"); is {
		if !slices.Contains(PoolFeatures(), feature) {
			return "-", SourceNone, false
		}
		if v := p.Properties[property]; v != "" {
			return v, SourceLocal, true
		}
		return "enabled", SourceLocal, true
	}
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
	if p.Properties == nil {
		p.Properties = map[string]string{}
	}
	for k, v := range checked {
		p.Properties[k] = v
	}
	return nil
}

// checkPoolSettings is zpool_valid_proplist.
func checkPoolSettings(c *checker, props map[string]string) (map[string]string, error) {
	out := map[string]string{}
	for _, name := range sortedNames(props) {
		value := props[name]
		if feature, is := strings.CutPrefix(name, "feature@"); is {
			switch {
			case !slices.Contains(PoolFeatures(), feature):
				return nil, c.refuse("invalid feature '%s'", feature)
			case value != "enabled" && value != "disabled":
				return nil, c.refuse("property '%s' can only be set to 'enabled'", name)
			}
			out[name] = value
			continue
		}
		p := FindPoolProperty(name)
		switch {
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
