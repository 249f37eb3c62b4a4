package storage

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// zfs get and list: zfs_do_get, zfs_do_list in zfs_main.c and
// zprop_print_one_property in libzfs_util.c.

// get is zfs get.
func (z *zfsCall) get(args []string) int {
	w := walk{depth: -1, types: zfs.TypeDataset, paths: true}
	known := "name property value source"
	fields, sources := strings.Fields(known), []string(nil)
	literal, scripted := false, false
	all, operands := cli.Getopt(args, "d:o:s:rt:Hp", nil)
	for _, o := range all {
		switch o.Letter {
		case 'p':
			literal = true
		case 'H':
			scripted = true
		case 'o':
			fields = words(o.Value, known)
		case 's':
			sources = words(o.Value, "local default inherited none")
		default:
			w.option(o)
		}
	}
	only(len(operands) > 0)
	columns := properties(operands[0])
	survey, found, exit := z.find(w, operands[1:])
	var rows [][]string // for a person
	cells := make([]string, len(fields))
	localOnly := slices.Equal(sources, []string{zfs.SourceLocal})
	if !localOnly {
		z.out.Grow(len(found) * len(columns) * 80) // Of ten thousand datasets it is megabytes.
	}
	for _, d := range found {
		for _, name := range columns {
			if _, own := d.Local[name]; !own && localOnly {
				continue
			}
			value, source, has := survey.Value(d, name, literal)
			if !has {
				value, source = "-", zfs.SourceNone
			}
			if sources != nil && !slices.Contains(sources, sourceKind(source)) {
				continue
			}
			for i, f := range fields {
				switch f {
				case "name":
					cells[i] = d.Name
				case "property":
					cells[i] = name
				case "value":
					cells[i] = value
				case "source":
					cells[i] = source
				}
			}
			if scripted {
				z.row(cells)
			} else {
				rows = append(rows, slices.Clone(cells))
			}
		}
	}
	columnsOf := make([]column, len(fields))
	for i, f := range fields {
		columnsOf[i] = column{head: strings.ToUpper(f)}
	}
	z.table(columnsOf, rows)
	return exit
}

// sourceKind is what -s calls a source.
func sourceKind(source string) string {
	switch {
	case source == zfs.SourceNone:
		return "none"
	case strings.HasPrefix(source, zfs.SourceInherited):
		return "inherited"
	}
	return source
}

// list is zfs list. Without -t, snapshots are found below an operand only if the
// pool's property listsnapshots is on.
func (z *zfsCall) list(args []string) int {
	w := walk{depth: -1, types: zfs.TypeDataset, poolDecides: true, paths: true}
	fields, scripted, literal := "name,used,available,referenced,mountpoint", false, false
	all, operands := cli.Getopt(args, "Hd:o:prt:", nil)
	for _, o := range all {
		switch o.Letter {
		case 'o':
			fields = o.Value
		case 'H':
			scripted = true
		case 'p':
			literal = true
		default:
			w.option(o)
		}
	}
	columns := properties(fields)
	survey, found, exit := z.find(w, operands)
	var rows [][]string // for a person
	cells := make([]string, len(columns))
	for _, d := range found {
		for i, name := range columns {
			cells[i] = "-"
			if value, _, ok := survey.Value(d, name, literal); ok {
				cells[i] = value
			}
		}
		if scripted {
			z.row(cells)
		} else {
			rows = append(rows, slices.Clone(cells))
		}
	}
	columnsOf := make([]column, len(columns))
	for i, name := range columns {
		columnsOf[i] = datasetColumn(name)
	}
	z.table(columnsOf, rows)
	if exit == 0 && len(found) == 0 && !scripted {
		z.out.WriteString("no datasets available\n")
	}
	return exit
}

// words splits a list, of which each word must be known.
func words(list, known string) []string {
	all := strings.Split(list, ",")
	for _, word := range all {
		only(slices.Contains(strings.Fields(known), word))
	}
	return all
}

// properties reads a list of properties (zprop_get_list).
func properties(list string) []string {
	names := strings.Split(list, ",")
	for i, name := range names {
		if p := zfs.FindDatasetProperty(name); p != nil {
			names[i] = p.Name
		}
		only(zfs.FindDatasetProperty(name) != nil || zfs.UserProperty(name))
	}
	return names
}

// walk is which datasets a subcommand is about: zfs_for_each in
// usr/src/cmd/zfs/zfs_iter.c.
type walk struct {
	recursive   bool
	depth       int // below an operand; -1: any
	types       zfs.DatasetTypes
	poolDecides bool // see list
	paths       bool // operands may be paths
}

// option reads -r, -d and -t.
func (w *walk) option(o cli.Option) {
	switch o.Letter {
	case 'r':
		w.recursive = true
	case 'd':
		depth, err := strconv.Atoi(o.Value)
		only(err == nil && depth >= 0)
		w.recursive, w.depth = true, depth
	case 't':
		w.types, w.poolDecides = 0, false
		for _, word := range words(o.Value, "filesystem volume snapshot all") {
			w.types |= map[string]zfs.DatasetTypes{
				"filesystem": zfs.TypeFilesystem, "volume": zfs.TypeVolume, "snapshot": zfs.TypeSnapshot, "all": zfs.TypeDataset,
			}[word]
		}
	default:
		only(false)
	}
}

// find lists the datasets that the operands name, sorted and each once; none is
// all. What cannot be opened is an error on standard error and exit code 1.
func (z *zfsCall) find(w walk, operands []string) (s *zfs.Survey, found []*world.Dataset, exit int) {
	s = zfs.NewSurvey(z.tx)
	if len(operands) == 0 {
		for _, d := range s.All() {
			// The pools are what is walked down from.
			if w.takes(z.tx, d, false, 0) && zfs.Reachable(z.tx, d.Name) {
				found = append(found, d)
			}
		}
		return s, found, 0
	}
	types := w.types
	if w.recursive {
		types |= zfs.TypeFilesystem
		if types&zfs.TypeSnapshot != 0 {
			types |= zfs.TypeVolume
		}
	}
	seen := map[*world.Dataset]bool{} // an operand may lie below another
	for _, word := range operands {
		if strings.HasPrefix(word, "/") { // a path that lies on it (zfs_path_to_zhandle)
			d := zfs.DatasetOf(z.tx, word)
			only(w.paths && d != nil && z.tx.Exists(word))
			word = d.Name
		}
		d, err := zfs.OpenDataset(z.tx, word, types)
		if err != nil {
			exit = z.refused(err)
			continue
		}
		base, candidates := strings.Count(d.Name, "/"), []*world.Dataset{d}
		if w.recursive {
			candidates = s.Below(d)
		}
		for _, o := range candidates {
			if len(operands) > 1 && seen[o] || !w.takes(z.tx, o, o == d, base) {
				continue
			}
			if found = append(found, o); len(operands) > 1 {
				seen[o] = true
			}
		}
	}
	if len(operands) > 1 && !slices.IsSortedFunc(found, zfs.CompareDatasets) {
		slices.SortStableFunc(found, zfs.CompareDatasets)
	}
	return s, found, exit
}

// takes says whether a dataset is one of those wanted, given how many names deep
// the operand is.
func (w walk) takes(tx *world.Tx, d *world.Dataset, operand bool, base int) bool {
	kind := zfs.Kind(d)
	if w.depth >= 0 && !operand {
		depth := strings.Count(d.Name, "/")
		if kind == zfs.TypeSnapshot {
			depth++
		}
		if depth-base > w.depth {
			return false
		}
	}
	if kind != zfs.TypeSnapshot || operand || !w.poolDecides {
		return kind&w.types != 0
	}
	p := zfs.FindPool(tx, zfs.PoolName(d.Name))
	return p != nil && p.Properties["listsnapshots"] == "on"
}
