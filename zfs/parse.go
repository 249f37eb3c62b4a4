package zfs

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ErrSyntax is output that zfs and zpool do not print.
var ErrSyntax = errors.New("not in the form of zfs")

// bookmark is a type that listings of newer releases show next to the others.
// Bookmarks hold nothing and go with their dataset.
//
// Guess get-lists-snapshots: `zfs get -r` without -t lists snapshots (zfs_do_get), and bookmarks on
// newer releases, which are left out.
// Check: that line
const bookmark = "bookmark"

// ParseDatasets reads `zfs get -Hp -o name,property,value,source`: a line for
// each property of each dataset, columns separated by a tab (zprop_print_one_property
// of usr/src/lib/libzfs/common/libzfs_util.c). Each dataset must have all the
// properties; others are ignored, and of one that comes twice the last counts.
// The order of the datasets is kept, bookmarks are left out. Output that does
// not end in a newline was cut off. Errors are ErrSyntax.
//
// Guess no-tab-in-properties: no property that is listed holds a tab or newline: one would make the
// listing an error.
// Check: nothing, until it occurs
func ParseDatasets(out []byte, properties []string) ([]Dataset, error) {
	p, err := readLines(out, properties)
	if err != nil || len(out) == 0 {
		return nil, err
	}
	return p.datasets()
}

// readLines reads a listing of which lines may be missing.
func readLines(out []byte, properties []string) (*parser, error) {
	p := newParser(properties, bytes.Count(out, []byte("\n")))
	for text := string(out); text != ""; {
		line, rest, ended := strings.Cut(text, "\n")
		if !ended {
			return nil, fmt.Errorf("dataset listing is cut off: %w", ErrSyntax)
		}
		if err := p.line(line); err != nil {
			return nil, fmt.Errorf("dataset listing: %q: %w", line, err)
		}
		text = rest
	}
	return p, nil
}

// parser reads line after line. It is quick on output in zfs's own order, and
// takes any: no line costs a search then, and none an allocation.
type parser struct {
	properties []string
	all        []Dataset
	index      map[string]int // by name, in all
	seen       []bool         // len(properties) for each of all
	current    int            // the dataset of the last line, in all
	next       int            // the property that should come, in properties
}

// newParser makes room for that many lines.
func newParser(properties []string, lines int) *parser {
	datasets := lines / max(1, len(properties))
	return &parser{
		properties: properties,
		all:        make([]Dataset, 0, datasets),
		index:      make(map[string]int, datasets),
		seen:       make([]bool, 0, lines),
	}
}

func (p *parser) line(line string) error {
	name, rest, one := strings.Cut(line, "\t")
	property, rest, two := strings.Cut(rest, "\t")
	value, source, three := strings.Cut(rest, "\t")
	if !one || !two || !three || strings.IndexByte(source, '\t') >= 0 {
		return fmt.Errorf("%d columns, not 4: %w", 1+strings.Count(line, "\t"), ErrSyntax)
	}
	if name == "" || property == "" || source == "" {
		return fmt.Errorf("a name, property or source is empty: %w", ErrSyntax)
	}
	p.dataset(name)
	if i := p.position(property); i >= 0 {
		p.seen[p.current*len(p.properties)+i] = true
		return p.all[p.current].fill(property, value, source)
	}
	return nil
}

// dataset makes the one of that name the current one.
func (p *parser) dataset(name string) {
	if len(p.all) > 0 && p.all[p.current].Name == name {
		return
	}
	i, known := p.index[name]
	if !known {
		i = len(p.all)
		p.index[name] = i
		p.all = append(p.all, Dataset{Name: name})
		p.seen = append(p.seen, make([]bool, len(p.properties))...)
	}
	p.current, p.next = i, 0
}

// position finds a property, -1 for one that was not asked for.
func (p *parser) position(property string) int {
	if p.next < len(p.properties) && p.properties[p.next] == property {
		p.next++
		return p.next - 1
	}
	for i, q := range p.properties {
		if q == property {
			p.next = i + 1
			return i
		}
	}
	return -1
}

// datasets are those that were read, if each is complete.
func (p *parser) datasets() ([]Dataset, error) {
	for i, d := range p.all {
		for j, property := range p.properties {
			if !p.seen[i*len(p.properties)+j] {
				return nil, fmt.Errorf("dataset listing: %s has no line for %s: %w", d.Name, property, ErrSyntax)
			}
		}
	}
	return slices.DeleteFunc(p.all, func(d Dataset) bool { return d.Type == bookmark }), nil
}

// fill puts one property into its place. "-" is the value of a property that a
// dataset of its type does not have, and of a user property that is not set.
func (d *Dataset) fill(property, value, source string) (err error) {
	switch property {
	case "type":
		d.Type, err = oneOf(value, TypeFilesystem, TypeVolume, TypeSnapshot, bookmark)
	case "guid":
		d.GUID = value
		_, err = digits(value)
	case "mountpoint":
		d.Mountpoint = orNone(value)
	case "mounted":
		d.Mounted = value == "yes"
		_, err = oneOf(value, "yes", "no", "-")
	case "origin":
		d.Origin = orNone(value)
	case "used":
		d.Used, err = number(value)
	case "available":
		d.Available, err = number(value)
	case "quota":
		d.Quota, err = number(value)
	case "reservation":
		d.Reservation, err = number(value)
	case "compression":
		d.Compression = orNone(value)
	case "canmount":
		d.Canmount = orNone(value)
	case "refquota":
		d.Refquota, err = number(value)
	case "volsize", "volblocksize", "refreservation":
		err = d.fillVolume(property, value)
	case "zoned":
		d.Zoned = value == "on"
		_, err = oneOf(value, "on", "off", "-")
	case "encryption":
		d.Encryption = orNone(value)
	case "keyformat":
		d.Keyformat = orNone(value)
	case "keystatus":
		d.Keystatus = orNone(value)
		_, err = oneOf(value, KeyAvailable, KeyUnavailable, "-")
	case "encryptionroot":
		d.EncryptionRoot = orNone(value)
	default:
		d.user(property, value, source)
	}
	return err
}

// fillVolume puts a size of a volume into its place.
func (d *Dataset) fillVolume(property, value string) (err error) {
	switch property {
	case "volsize":
		d.Volsize, err = number(value)
	case "volblocksize":
		d.Volblocksize, err = number(value)
	case "refreservation":
		d.Refreservation, err = number(value)
	}
	return err
}

func (d *Dataset) user(property, value, source string) {
	if source == "-" && value == "-" {
		return
	}
	if d.User == nil {
		d.User = make(map[string]Value, 1)
	}
	d.User[property] = Value{Value: value, Source: source}
}

func oneOf(value string, words ...string) (string, error) {
	for _, w := range words {
		if value == w {
			return value, nil
		}
	}
	return "", fmt.Errorf("%q is none of %s: %w", value, strings.Join(words, ", "), ErrSyntax)
}

// number reads a size of `-p`; what is not set is 0, "none" or "-" there,
// by release.
func number(value string) (uint64, error) {
	if value == "-" || value == "none" {
		return 0, nil
	}
	return digits(value)
}

func digits(value string) (uint64, error) {
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no number: %w", value, ErrSyntax)
	}
	return n, nil
}

func orNone(value string) string {
	if value == "-" {
		return ""
	}
	return value
}
