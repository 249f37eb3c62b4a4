package storage

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// zfs get: zfs_do_get in zfs_main.c and zprop_print_one_property in libzfs_util.c.

// field is a column of zfs get and zpool get.
type field int

const (
	fieldName field = iota
	fieldProperty
	fieldValue
	fieldReceived
	fieldSource
	fieldCount
)

func (f field) String() string {
	return [fieldCount]string{"name", "property", "value", "received", "source"}[f]
}

// printer prints lines of properties.
type printer struct {
	out      *strings.Builder
	fields   []field
	sources  []string // nil: all
	scripted bool
	widths   [fieldCount]int
	begun    bool
}

func newPrinter(out *strings.Builder) *printer {
	return &printer{out: out, fields: []field{fieldName, fieldProperty, fieldValue, fieldSource}}
}

func (z *zfsCall) get(args []string) int {
	options, operands, bad := z.options(args, "d:o:s:rt:Hp", missingArgument)
	if bad {
		return 2
	}
	w := walk{depth: -1, types: zfs.TypeDataset, paths: true}
	p := newPrinter(&z.out)
	literal, ok, fault := false, true, ""
	for _, o := range options {
		switch o.Letter {
		case 'p':
			literal = true
		case 'H':
			p.scripted = true
		case 'r':
			w.recursive = true
		case 'd':
			w.recursive = true
			w.depth, ok = z.depth(o.Value)
		case 't':
			w.types, ok = z.types(o.Value, false)
		case 'o':
			p.fields, fault = readFields(o.Value, []field{fieldName, fieldProperty, fieldValue, fieldReceived, fieldSource})
		case 's':
			p.sources, fault = readSources(o.Value)
		}
		switch {
		case !ok:
			return 2
		case fault != "":
			return z.usage("%s", fault)
		}
	}
	if len(operands) == 0 {
		return z.usage("missing property argument")
	}
	columns, ok := z.columns(operands[0])
	if !ok {
		return 2
	}
	survey, found, exit := z.find(w, operands[1:])
	columns = z.users(columns, found)
	if !p.scripted {
		p.measure(survey, found, columns, literal)
	}
	z.out.Grow(len(found) * len(columns) * 80) // Of ten thousand datasets it is megabytes.
	for _, d := range found {
		for _, c := range columns {
			value, source, has := survey.Value(d, c.name, literal)
			switch {
			case !has && c.all:
				continue
			case !has:
				value, source = "-", zfs.SourceNone
			}
			p.line(d.Name, c.name, value, source)
		}
	}
	return exit
}

// readFields reads -o of a get.
func readFields(list string, known []field) (fields []field, fault string) {
	for word := range strings.SplitSeq(list, ",") {
		at := slices.IndexFunc(known, func(f field) bool { return f.String() == word })
		switch {
		case len(fields) == len(known):
			return nil, "too many fields given to -o option"
		case word == "all" && len(fields) > 0:
			return nil, "\"all\" conflicts with specific fields given to -o option"
		case word == "all":
			fields = known
		case at >= 0:
			fields = append(fields, known[at])
		default:
			return nil, fmt.Sprintf("invalid column name '%s'", word)
		}
	}
	return fields, ""
}

// readSources reads -s of zfs get.
func readSources(list string) (sources []string, fault string) {
	for word := range strings.SplitSeq(list, ",") {
		if !slices.Contains(strings.Fields("local default inherited received temporary none"), word) {
			return nil, fmt.Sprintf("invalid source '%s'", word)
		}
		sources = append(sources, word)
	}
	return sources, ""
}

// measure finds how wide the columns are (zprop_print_headers): what is of a
// kind with a fixed width counts with that, whatever its value.
func (p *printer) measure(s *zfs.Survey, all []*world.Dataset, columns []column, literal bool) {
	name, property, value := len("NAME"), len("PROPERTY"), len("VALUE")
	for _, d := range all {
		name = max(name, len(d.Name))
	}
	for _, c := range columns {
		property = max(property, len(c.name))
		width, fixed := len(c.name), false
		if c.native != nil {
			width, fixed = c.native.Width()
		}
		value = max(value, width)
		for _, d := range all {
			if fixed {
				break
			}
			if v, _, ok := s.Value(d, c.name, literal); ok {
				value = max(value, len(v))
			}
		}
	}
	p.widths = [fieldCount]int{name, property, value, len("RECEIVED"), max(len("SOURCE"), name+len("inherited from"))}
}

// line prints a property, if its source is one of those wanted.
func (p *printer) line(name, property, value, source string) {
	if p.sources != nil && !slices.Contains(p.sources, sourceKind(source)) {
		return
	}
	if !p.begun && !p.scripted {
		p.row([fieldCount]string{"NAME", "PROPERTY", "VALUE", "RECEIVED", "SOURCE"})
	}
	p.begun = true
	p.row([fieldCount]string{name, property, value, "-", source})
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

func (p *printer) row(cells [fieldCount]string) {
	for i, f := range p.fields {
		p.out.WriteString(cells[f])
		switch {
		case i == len(p.fields)-1:
		case p.scripted:
			p.out.WriteByte('\t')
		default:
			fmt.Fprintf(p.out, "%*s  ", max(0, p.widths[f]-len(cells[f])), "")
		}
	}
	p.out.WriteByte('\n')
}
