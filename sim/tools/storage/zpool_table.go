package storage

import (
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// What zpool list prints: print_header, print_pool and print_list_stats in
// usr/src/cmd/zpool/zpool_main.c.

// listing is what zpool list was told.
type listing struct {
	fields                     string
	names                      []string
	scripted, literal, verbose bool
}

// poolColumn is how wide a column of zpool list is, and which way it is set.
type poolColumn struct {
	head  string
	width int
	right bool
}

func (z *zpool) table(pools []*world.Pool, l listing) {
	s := zfs.NewSurvey(z.tx)
	rows := make([][]string, len(pools))
	for i, p := range pools {
		for _, name := range l.names {
			value, _, ok := s.PoolValue(p, name, l.literal)
			if !ok {
				value = "-"
			}
			rows[i] = append(rows[i], value)
		}
	}
	columns := z.columns(pools, rows, l)
	if !l.scripted && len(rows) > 0 {
		head := make([]string, len(columns))
		for i, c := range columns {
			head[i] = c.head
		}
		z.row(head, columns, false)
	}
	for i, row := range rows {
		z.row(row, columns, l.scripted)
		if l.verbose {
			z.devices(s, pools[i], columns, l)
		}
	}
}

func (z *zpool) columns(pools []*world.Pool, rows [][]string, l listing) []poolColumn {
	columns := make([]poolColumn, len(l.names))
	for j, name := range l.names {
		c := poolColumn{head: strings.ToUpper(name), width: len(name)}
		fixed := false
		if p := zfs.FindPoolProperty(name); p != nil {
			c.head, c.right = p.Column, p.Right()
			c.width, fixed = p.Width()
		}
		for i := range rows {
			if !fixed || l.literal {
				c.width = max(c.width, len(rows[i][j]))
			}
			if j == 0 && l.verbose {
				for _, v := range z.vdevRows(pools[i]) {
					c.width = max(c.width, v.depth+len(v.name))
				}
			}
		}
		columns[j] = c
	}
	return columns
}

func (z *zpool) row(cells []string, columns []poolColumn, scripted bool) {
	if scripted {
		z.out.WriteString(strings.Join(cells, "\t") + "\n")
		return
	}
	for j, cell := range cells {
		if j > 0 {
			z.out.WriteString("  ")
		}
		pad := fmt.Sprintf("%*s", max(0, columns[j].width-len(cell)), "")
		switch {
		case columns[j].right:
			z.out.WriteString(pad + cell)
		case j == len(cells)-1:
			z.out.WriteString(cell)
		default:
			z.out.WriteString(cell + pad)
		}
	}
	z.out.WriteByte('\n')
}

// devices are the lines of zpool list -v below a pool: the same columns whatever
// -o says, and sizes only for top-level devices (print_list_stats).
//
// Guess: those of a top-level device are the pool's. Pools here have one as a rule.
func (z *zpool) devices(s *zfs.Survey, p *world.Pool, columns []poolColumn, l listing) {
	fixed := []string{"size", "allocated", "free", "checkpoint", "expandsize", "fragmentation", "capacity", "dedupratio", "health"}
	for _, v := range z.vdevRows(p) {
		if l.scripted {
			z.out.WriteString("\t" + v.name)
		} else {
			fmt.Fprintf(&z.out, "%*s%-*s", v.depth, "", max(0, columns[0].width-v.depth), v.name)
		}
		for _, property := range fixed {
			value := "-"
			switch {
			case property == "health":
				value = v.state
			case property != "dedupratio" && v.depth == 2 && !p.Unloaded:
				value, _, _ = s.PoolValue(p, property, l.literal)
			}
			if l.scripted {
				z.out.WriteString("\t" + value)
				continue
			}
			width, _ := zfs.FindPoolProperty(property).Width()
			fmt.Fprintf(&z.out, "  %*s", width, value)
		}
		z.out.WriteByte('\n')
	}
}
