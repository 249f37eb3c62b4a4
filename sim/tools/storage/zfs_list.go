package storage

import (
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// zfs list: zfs_do_list in zfs_main.c.

func (z *zfsCall) list(args []string) int {
	options, operands, bad := z.options(args, "HS:d:o:prs:t:", "")
	if bad {
		return 2
	}
	w := walk{depth: -1, types: zfs.TypeDataset, poolDecides: true, paths: true}
	fields := "name,used,available,referenced,mountpoint"
	scripted, literal, ok := false, false, true
	for _, o := range options {
		switch o.Letter {
		case 'o':
			fields = o.Value
		case 'p':
			literal = true
		case 'H':
			scripted = true
		case 'r':
			w.recursive = true
		case 'd':
			w.recursive = true
			w.depth, ok = z.depth(o.Value)
		case 's', 'S':
			if zfs.FindDatasetProperty(o.Value) == nil && !zfs.UserProperty(o.Value) {
				return z.usage("invalid property '%s'", o.Value)
			}
			w.sort = append(w.sort, sortColumn{property: o.Value, reverse: o.Letter == 'S'})
		case 't':
			w.poolDecides = false
			w.types, ok = z.types(o.Value, true)
		}
		if !ok {
			return 2
		}
	}
	if fields == "space" && w.poolDecides {
		w.types &^= zfs.TypeSnapshot
	}
	columns, ok := z.columns(fields)
	if !ok {
		return 2
	}
	survey, found, exit := z.find(w, operands)
	if fields == "all" {
		name := column{name: "name", native: zfs.FindDatasetProperty("name"), all: true}
		columns = append([]column{name}, z.users(columns, found)...)
	}
	z.table(survey, found, columns, scripted, literal)
	if exit == 0 && len(found) == 0 && !scripted {
		z.out.WriteString("no datasets available\n")
	}
	return exit
}

// table prints datasets as rows, with a heading unless it is for scripts.
func (z *zfsCall) table(s *zfs.Survey, all []*world.Dataset, columns []column, scripted, literal bool) {
	if len(all) == 0 {
		return
	}
	rows := make([][]string, len(all))
	for i, d := range all {
		rows[i] = make([]string, len(columns))
		for j, c := range columns {
			rows[i][j] = "-"
			if value, _, ok := s.Value(d, c.name, literal); ok {
				rows[i][j] = value
			}
		}
	}
	if scripted {
		for _, row := range rows {
			z.out.WriteString(strings.Join(row, "\t"))
			z.out.WriteByte('\n')
		}
		return
	}
	z.grid(rows, columns, literal)
}

// grid prints rows below their headings, in columns of equal width.
func (z *zfsCall) grid(rows [][]string, columns []column, literal bool) {
	head := make([]string, len(columns))
	widths := make([]int, len(columns))
	for j, c := range columns {
		var fixed bool
		head[j], widths[j], fixed = c.heading()
		for i := range rows {
			if !fixed || literal {
				widths[j] = max(widths[j], len(rows[i][j]))
			}
		}
	}
	for _, row := range append([][]string{head}, rows...) {
		for j, c := range columns {
			if j > 0 {
				z.out.WriteString("  ")
			}
			pad := fmt.Sprintf("%*s", max(0, widths[j]-len(row[j])), "")
			switch {
			case c.right():
				z.out.WriteString(pad + row[j])
			case j == len(columns)-1:
				z.out.WriteString(row[j])
			default:
				z.out.WriteString(row[j] + pad)
			}
		}
		z.out.WriteByte('\n')
	}
}

// heading is a column's title and least width, and whether no value is wider.
func (c column) heading() (title string, width int, fixed bool) {
	if c.native == nil {
		return strings.ToUpper(c.name), len(c.name), false
	}
	width, fixed = c.native.Width()
	return c.native.Column, width, fixed
}

// right says whether a column is corrected.
func (c column) right() bool {
	if c.native == nil {
		return accounting(c.name)
	}
	return c.native.Right()
}
