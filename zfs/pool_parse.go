package zfs

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// ParsePools reads `zpool list -HpvP -o name,size,allocated,free,health,guid,failmode`:
// a line for each pool, and below it one for each of its devices and groups of
// devices, which begins with a tab and has columns of its own: the state is the
// tenth where there are so many (print_list_stats of
// usr/src/cmd/zpool/zpool_main.c). Words with dashes head the devices of logs,
// caches and spares. Errors are ErrSyntax.
func ParsePools(out []byte) ([]Pool, error) {
	var pools []Pool
	use := ""
	for line := range strings.Lines(string(out)) {
		line, ended := strings.CutSuffix(line, "\n")
		if !ended {
			return nil, fmt.Errorf("pool listing is cut off: %w", ErrSyntax)
		}
		switch heading := headed(line); {
		case heading != "":
			use = heading
		case strings.HasPrefix(line, "\t"):
			if len(pools) == 0 {
				return nil, fmt.Errorf("pool listing: %q: a device of no pool: %w", line, ErrSyntax)
			}
			d, err := parseDevice(line, use)
			if err != nil {
				return nil, fmt.Errorf("pool listing: %q: %w", line, err)
			}
			if p := &pools[len(pools)-1]; !grouping(d.Name) {
				p.Devices = append(p.Devices, d)
			}
		default:
			p, err := parsePool(line)
			if err != nil {
				return nil, fmt.Errorf("pool listing: %q: %w", line, err)
			}
			pools, use = append(pools, p), ""
		}
	}
	return pools, nil
}

// Guess no-sizes-of-unavail-pool: sizes of a pool that is UNAVAIL are "-".
// Check: `zpool list -Hp` with one
func parsePool(line string) (Pool, error) {
	var column [6]string // size, allocated, free, health, guid, failmode
	for i := len(column) - 1; i >= 0; i-- {
		line = strings.TrimRight(line, " \t")
		cut := strings.LastIndexAny(line, " \t") + 1
		line, column[i] = line[:cut], line[cut:]
	}
	p := Pool{Name: strings.TrimRight(line, " \t"), Health: column[3], GUID: column[4], Failmode: orNone(column[5])}
	if badPart(p.Name) != "" {
		return Pool{}, fmt.Errorf("7 columns expected, the first one a pool's name: %w", ErrSyntax)
	}
	if !isState(p.Health) {
		return Pool{}, fmt.Errorf("health %q: %w", p.Health, ErrSyntax)
	}
	var errs [5]error
	p.Size, errs[0] = number(column[0])
	p.Allocated, errs[1] = number(column[1])
	p.Free, errs[2] = number(column[2])
	_, errs[3] = digits(p.GUID)
	_, errs[4] = oneOf(column[5], "wait", "continue", "panic", "-")
	return p, errors.Join(errs[:]...)
}

// Guess columns-of-devices: `zpool list -v` has columns of its own below a pool, whatever -o says:
// ten with the state, eight before 2022 (print_list_stats).
// Check: `zpool list -HpvP -o name`
func parseDevice(line, use string) (Device, error) {
	const columns, newer = 9, 11 // with the empty one before the name
	fields := strings.Split(line, "\t")
	d := Device{Name: fields[1], Use: use}
	if len(fields) >= newer {
		d.State = fields[newer-1]
	}
	if len(fields) < columns || d.Name == "" || d.State != "" && !isState(d.State) {
		return Device{}, fmt.Errorf("no line of a device: %w", ErrSyntax)
	}
	return d, nil
}

// headed is the word over the devices of one use: "log", "cache", "spare", or a
// class; empty for other lines.
func headed(line string) string {
	if !strings.HasSuffix(line, " -") {
		return "" // as most lines are: no need to look closely
	}
	if m := regexp.MustCompile(`^ ?([a-z]+) *( +-){6,9}$`).FindStringSubmatch(line); m != nil {
		return strings.TrimSuffix(m[1], "s")
	}
	return ""
}

// grouping tells the names of what groups devices: "mirror-0".
func grouping(name string) bool {
	word, _, _ := strings.Cut(name, "-")
	return slices.Contains([]string{"mirror", "raidz", "raidz1", "raidz2", "raidz3", "replacing", "spare", "indirect"}, word)
}

func isState(s string) bool {
	return s != "" && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// parsePlainPools reads `zpool list -H -o name,guid,health,failmode`, and the
// devices from `zpool status`. A pool that only one of them shows came or went
// meanwhile, and is left out.
func parsePlainPools(list, status []byte) ([]Pool, error) {
	devices, err := parseParagraphs(status)
	if err != nil {
		return nil, err
	}
	var pools []Pool
	for line := range strings.Lines(string(list)) {
		text, ended := strings.CutSuffix(line, "\n")
		fields := strings.Split(text, "\t")
		if !ended || len(fields) != 4 || badPart(fields[0]) != "" || !isState(fields[2]) {
			return nil, fmt.Errorf("pool listing: %q: %w", line, ErrSyntax)
		}
		if _, err := digits(fields[1]); err != nil {
			return nil, fmt.Errorf("pool listing: %q: %w", line, err)
		}
		i := slices.IndexFunc(devices, func(d Importable) bool { return d.Name == fields[0] })
		if i < 0 {
			continue
		}
		pools = append(pools, Pool{Name: fields[0], GUID: fields[1], Health: fields[2], Failmode: orNone(fields[3]), Devices: devices[i].Devices})
	}
	return pools, nil
}

// parseOnePool reads `zpool list -H -o name,guid POOL`.
func parseOnePool(out []byte, pool string) (guid string, err error) {
	line, rest, ended := strings.Cut(string(out), "\n")
	name, guid, two := strings.Cut(line, "\t")
	if !ended || !two || rest != "" || name != pool {
		return "", fmt.Errorf("pool listing: %q: %w", out, ErrSyntax)
	}
	_, err = digits(guid)
	return guid, err
}

// ParseImportable reads what `zpool import` prints of the pools that it finds:
// a paragraph for each, whose lines are "key: text", continued behind a
// tab, and then the tree of its devices (show_import and print_import_config of
// usr/src/cmd/zpool/zpool_main.c). Errors are ErrSyntax.
func ParseImportable(out []byte) ([]Importable, error) {
	found, err := parseParagraphs(out)
	if err != nil {
		return nil, err
	}
	for _, i := range found {
		if _, err := digits(i.GUID); err != nil {
			return nil, fmt.Errorf("pool %q has no id: %w", i.Name, ErrSyntax)
		}
	}
	return found, nil
}

// parseParagraphs reads what both zpool import and zpool status print of a pool.
func parseParagraphs(out []byte) ([]Importable, error) {
	p := importParser{}
	for line := range strings.Lines(string(out)) {
		line, ended := strings.CutSuffix(line, "\n")
		if !ended {
			return nil, fmt.Errorf("pools and devices are cut off: %w", ErrSyntax)
		}
		if err := p.line(line); err != nil {
			return nil, fmt.Errorf("pools and devices: %q: %w", line, err)
		}
	}
	for _, i := range p.all {
		if !isState(i.State) || len(i.Devices) == 0 {
			return nil, fmt.Errorf("pool %q is not whole: %w", i.Name, ErrSyntax)
		}
	}
	return p.all, nil
}

// importParser reads line after line.
type importParser struct {
	all  []Importable
	key  string // of the last "key: text"
	tree treePart
	use  string // of the devices that come
}

// treePart is how far the tree of a pool's devices is read.
type treePart int

const (
	noTree   treePart = iota
	treeAt            // "config:" was read
	treeTop           // and the line of the pool
	treeOver          // and the blank line behind
)

func (p *importParser) line(line string) error {
	key, text, keyed := strings.Cut(strings.TrimLeft(line, " "), ":")
	switch {
	case line == "":
		if p.tree == treeTop {
			p.tree = treeOver
		}
		return nil
	case keyed && !strings.HasPrefix(line, "\t"):
		return p.field(key, strings.TrimSpace(text))
	case !strings.HasPrefix(line, "\t") || len(p.all) == 0:
		return fmt.Errorf("neither a field nor a device: %w", ErrSyntax)
	case p.tree == noTree:
		if p.key == "status" {
			p.last().Status += " " + strings.TrimSpace(line)
		}
		return nil
	case p.tree == treeOver:
		return nil // words about devices that are missing
	}
	return p.device(line)
}

func (p *importParser) last() *Importable { return &p.all[len(p.all)-1] }

func (p *importParser) field(key, text string) error {
	if key == "pool" {
		if badPart(text) != "" {
			return fmt.Errorf("no name of a pool: %w", ErrSyntax)
		}
		p.all = append(p.all, Importable{Name: text})
		p.tree, p.use = noTree, ""
	}
	if len(p.all) == 0 {
		return fmt.Errorf("before any pool: %w", ErrSyntax)
	}
	p.key = key
	switch key {
	case "id":
		p.last().GUID = text
	case "state":
		p.last().State, _, _ = strings.Cut(text, " ")
	case "status":
		p.last().Status = text
		p.last().Foreign = strings.HasSuffix(text, "by another system.")
	case "config":
		p.tree = treeAt
	}
	return nil
}

func (p *importParser) device(line string) error {
	if p.tree == treeAt { // the columns' names, which only zpool status has, and the pool itself
		if !strings.HasPrefix(line, "\tNAME ") || !strings.Contains(line, " STATE ") {
			p.tree = treeTop
		}
		return nil
	}
	m := regexp.MustCompile(`^\t( *)(.+?)(?:  +([A-Z]+)(?:  .*)?)?\t?$`).FindStringSubmatch(line)
	switch {
	case m == nil:
		return fmt.Errorf("no line of a device: %w", ErrSyntax)
	case m[1] == "":
		p.use = strings.TrimSuffix(m[2], "s")
	case m[3] == "" && p.use == "":
		return fmt.Errorf("a device without a state: %w", ErrSyntax)
	case !grouping(m[2]):
		p.last().Devices = append(p.last().Devices, Device{Name: m[2], State: m[3], Use: p.use})
	}
	return nil
}
