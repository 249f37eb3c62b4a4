package storage

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// walk is which datasets a subcommand is about: zfs_for_each in
// usr/src/cmd/zfs/zfs_iter.c.
type walk struct {
	recursive bool
	depth     int // below an operand; -1: any
	types     zfs.DatasetTypes
	// poolDecides is set by zfs list without -t: snapshots are found below an
	// operand only if the pool's property listsnapshots is on.
	poolDecides bool
	paths       bool // operands may be paths
	sort        []sortColumn
}

// sortColumn is -s or -S of zfs list.
type sortColumn struct {
	property string
	reverse  bool
}

// find lists the datasets that the operands name, sorted and each once; none is
// all. What cannot be opened is told on standard error, and makes exit 1.
func (z *zfsCall) find(w walk, operands []string) (s *zfs.Survey, found []*world.Dataset, exit int) {
	s = zfs.NewSurvey(z.tx)
	if len(operands) == 0 {
		w.recursive = true
		for _, d := range s.All() {
			// The pools are what is walked down from.
			if w.takes(z.tx, d, false, 0, strings.Count(d.Name, "/")) && z.visible(d.Name) && zfs.Reachable(z.tx, d.Name) {
				found = append(found, d)
			}
		}
		w.order(s, found)
		return s, found, 0
	}
	types := w.types
	if w.recursive {
		types |= zfs.TypeFilesystem
		if types&zfs.TypeSnapshot != 0 {
			types |= zfs.TypeVolume
		}
	}
	for _, word := range operands {
		d, err := z.open(word, types, w.paths)
		if err != nil {
			z.refused(err)
			exit = 1
			continue
		}
		if !w.recursive {
			if w.takes(z.tx, d, true, 0, 0) {
				found = append(found, d)
			}
			continue
		}
		base := strings.Count(d.Name, "/")
		for _, o := range s.Below(d) {
			if w.takes(z.tx, o, o == d, base, strings.Count(o.Name, "/")) && z.visible(o.Name) {
				found = append(found, o)
			}
		}
	}
	if len(operands) > 1 {
		found = unique(found)
	}
	if len(operands) > 1 || w.sort != nil {
		w.order(s, found)
	}
	return s, found, exit
}

// takes says whether a dataset is one of those wanted, given how many names
// deep it and the operand are.
func (w walk) takes(tx *world.Tx, d *world.Dataset, operand bool, base, depth int) bool {
	kind := zfs.Kind(d)
	if kind == zfs.TypeSnapshot {
		depth++
	}
	if w.depth >= 0 && !operand && depth-base > w.depth {
		return false
	}
	if kind != zfs.TypeSnapshot || operand || !w.poolDecides {
		return kind&w.types != 0
	}
	pool, _, _ := strings.Cut(strings.ReplaceAll(d.Name, "@", "/"), "/")
	p := zfs.FindPool(tx, pool)
	return p != nil && p.Properties["listsnapshots"] == "on"
}

func unique(all []*world.Dataset) []*world.Dataset {
	seen := map[*world.Dataset]bool{}
	return slices.DeleteFunc(all, func(d *world.Dataset) bool {
		twice := seen[d]
		seen[d] = true
		return twice
	})
}

// order sorts as zfs_sort does: by the columns, then by name. What has no value
// comes last, in either direction.
func (w walk) order(s *zfs.Survey, all []*world.Dataset) {
	slices.SortStableFunc(all, func(a, b *world.Dataset) int {
		for _, c := range w.sort {
			av, _, aok := s.Value(a, c.property, true)
			bv, _, bok := s.Value(b, c.property, true)
			switch {
			case !aok && !bok:
				continue
			case !aok:
				return 1
			case !bok:
				return -1
			}
			by := compareValues(c.property, av, bv)
			if c.reverse {
				by = -by
			}
			if by != 0 {
				return by
			}
		}
		return zfs.CompareDatasets(a, b)
	})
}

func compareValues(property, a, b string) int {
	if p := zfs.FindDatasetProperty(property); p != nil && p.Kind == zfs.PropertyNumber {
		an, _ := strconv.ParseUint(a, 10, 64)
		bn, _ := strconv.ParseUint(b, 10, 64)
		return cmp.Compare(an, bn)
	}
	return strings.Compare(a, b)
}

// types reads -t. Bookmarks are a type of which there are none.
func (z *zfsCall) types(list string, abbreviated bool) (types zfs.DatasetTypes, ok bool) {
	for word := range strings.SplitSeq(list, ",") {
		switch {
		case word == "filesystem":
			types |= zfs.TypeFilesystem
		case word == "volume":
			types |= zfs.TypeVolume
		case word == "snapshot" || word == "snap" && abbreviated:
			types |= zfs.TypeSnapshot
		case word == "bookmark":
		case word == "all":
			types = zfs.TypeDataset
		default:
			z.usage("invalid type '%s'", word)
			return 0, false
		}
	}
	return types, true
}

// depth reads -d.
func (z *zfsCall) depth(word string) (int, bool) {
	n, err := strconv.ParseInt(word, 0, 32)
	switch {
	case err != nil:
		z.usage("%s is not an integer", word)
		return 0, false
	case n < 0:
		z.usage("Depth can not be negative.")
		return 0, false
	}
	return int(n), true
}

// column is a property that zfs list or get shows.
type column struct {
	name   string // as it is printed
	native *zfs.DatasetProperty
	all    bool // found by "all": shown only where there is a value
}

// columns reads a list of properties (zprop_get_list). It is not ok, and says
// why with the usage, if one is none.
func (z *zfsCall) columns(list string) (columns []column, ok bool) {
	switch list {
	case "all":
		for _, p := range zfs.DatasetProperties() {
			if !p.Hidden {
				columns = append(columns, column{name: p.Name, native: p, all: true})
			}
		}
		return columns, true
	case "":
		z.usage("bad property list: no properties specified")
		return nil, false
	}
	for word := range strings.SplitSeq(strings.TrimSuffix(list, ","), ",") {
		words := []string{word}
		if word == "space" {
			words = strings.Fields("name avail used usedbysnapshots usedbydataset usedbyrefreservation usedbychildren")
		}
		for _, name := range words {
			p := zfs.FindDatasetProperty(name)
			switch {
			case name == "":
				z.usage("bad property list: empty property name")
				return nil, false
			case p == nil && !zfs.UserProperty(name) && !accounting(name):
				z.usage("bad property list: invalid property '%s'", name)
				return nil, false
			case p != nil:
				name = p.Name
			}
			columns = append(columns, column{name: name, native: p})
		}
	}
	return columns, true
}

// accounting says whether a property is one of those with a user, group or
// snapshot in its name. Nothing has a value for them.
func accounting(name string) bool {
	kind, _, ok := strings.Cut(name, "@")
	return ok && slices.Contains(strings.Fields("userused userquota groupused groupquota userobjused userobjquota groupobjused "+
		"groupobjquota projectused projectquota projectobjused projectobjquota written"), kind)
}

// users adds the user properties that the datasets have to "all".
//
// Guess: by name; the real order is that of an nvlist.
func (z *zfsCall) users(columns []column, all []*world.Dataset) []column {
	if len(columns) == 0 || !columns[0].all {
		return columns
	}
	names := map[string]bool{}
	for _, d := range all {
		for at := d; at != nil; at = zfs.FindDataset(z.tx, above(at.Name)) {
			for name := range at.Local {
				if zfs.FindDatasetProperty(name) == nil {
					names[name] = true
				}
			}
		}
	}
	sorted := make([]string, 0, len(names))
	for name := range names {
		sorted = append(sorted, name)
	}
	slices.Sort(sorted)
	for _, name := range sorted {
		columns = append(columns, column{name: name, all: true})
	}
	return columns
}

func above(name string) string {
	if i := strings.LastIndexAny(name, "/@"); i >= 0 {
		return name[:i]
	}
	return ""
}
