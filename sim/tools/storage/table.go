package storage

import (
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/sim/world/zfs"
)

// What zfs and zpool print for a person: print_header and print_dataset in zfs_main.c,
// print_header and print_pool in zpool_main.c, zprop_print_headers in libzfs_util.c.

// column is how a column of such a table is printed.
type column struct {
	head  string
	least int  // its width is not below that
	right bool // its values end below each other
}

// heads are the titles of columns that are not the property's name (the colnames of
// usr/src/common/zfs/zfs_prop.c and zpool_prop.c).
func heads() map[string]string {
	return map[string]string{
		"available": "AVAIL", "referenced": "REFER", "compression": "COMPRESS", "reservation": "RESERV", "recordsize": "RECSIZE",
		"readonly":  "RDONLY",
		"allocated": "ALLOC", "capacity": "CAP", "checkpoint": "CKPOINT", "dedupratio": "DEDUP", "expandsize": "EXPANDSZ", "fragmentation": "FRAG",
	}
}

func head(property string) string {
	if title := heads()[property]; title != "" {
		return title
	}
	return strings.ToUpper(property)
}

// datasetColumn is that of a property of datasets. Numbers are five characters wide
// (zprop_width in usr/src/common/zfs/zprop_common.c).
func datasetColumn(property string) column {
	c := column{head: head(property), least: len(property)}
	if p := zfs.FindDatasetProperty(property); p != nil {
		c.least, c.right = len(c.head), p.Kind != zfs.PropertyText
		if p.Kind == zfs.PropertyNumber {
			c.least = max(c.least, 5)
		}
		for _, word := range p.Words {
			c.least = max(c.least, len(word))
		}
	}
	return c
}

// poolColumn is that of a property of pools.
func poolColumn(property string) column {
	c := column{head: head(property), right: property != "name" && property != "altroot"}
	switch property {
	case "health":
		c.least = len("DEGRADED")
	case "size", "free", "allocated", "guid", "capacity", "expandsize", "fragmentation", "dedupratio", "checkpoint":
		c.least = 5
	}
	return c
}

// table prints rows below their heads, with two blanks between columns; nothing without rows.
func (s *session) table(columns []column, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	first := make([]string, len(columns))
	for i, c := range columns {
		first[i] = c.head
		columns[i].least = max(c.least, len(c.head))
		for _, row := range rows {
			columns[i].least = max(columns[i].least, len(row[i]))
		}
	}
	for _, row := range append([][]string{first}, rows...) {
		for i, c := range columns {
			switch {
			case c.right:
				fmt.Fprintf(&s.out, "%*s", c.least, row[i])
			case i == len(columns)-1:
				s.out.WriteString(row[i])
			default:
				fmt.Fprintf(&s.out, "%-*s", c.least, row[i])
			}
			if i < len(columns)-1 {
				s.out.WriteString("  ")
			}
		}
		s.out.WriteByte('\n')
	}
}
