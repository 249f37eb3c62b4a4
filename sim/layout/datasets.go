package layout

import (
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// datasets are those of zfs get: type, sizes and settings of each, in the order of the
// listing. What a dataset has written itself is what it takes without what is below it.
func (l *layout) datasets() error {
	type property struct{ value, source string }
	found, order := map[string]map[string]property{}, []string(nil)
	for _, a := range l.all {
		if len(a.Argv) < 2 || a.Argv[0] != "zfs" || a.Argv[1] != "get" {
			continue
		}
		for _, f := range lines(a.Stdout, "\t") {
			if len(f) != 4 {
				continue
			}
			if found[f[0]] == nil {
				found[f[0]] = map[string]property{}
				order = append(order, f[0])
			}
			found[f[0]][f[1]] = property{f[2], f[3]}
		}
	}
	for name := range l.tx.State.Datasets {
		l.tx.TouchDataset(name)
		delete(l.tx.State.Datasets, name)
	}
	used := map[string]uint64{}
	for _, name := range order {
		n := number(found[name]["used"].value)
		used[name] += n
		if above := parent(name); above != "" && found[above] != nil {
			used[above] -= n
		}
	}
	mounted := l.mountpoints()
	for _, name := range order {
		p := found[name]
		d := &world.Dataset{Name: name, Type: p["type"].value, GUID: number(p["guid"].value), Created: l.tx.Count("txg"), Used: used[name]}
		if int64(d.Used) < 0 { // what it shares with others is counted once
			d.Used = 0
		}
		if origin := p["origin"].value; origin != "-" {
			d.Origin = origin
		}
		for key, v := range p {
			l.set(d, key, v.value, v.source)
		}
		if p["encryptionroot"].value == name {
			d.Key, d.KeyReady = strings.Repeat("0", 64), p["keystatus"].value == "available"
			l.local(d, "encryption", p["encryption"].value)
			l.local(d, "keyformat", p["keyformat"].value)
			l.local(d, "keylocation", "prompt")
		}
		if p["mounted"].value == "yes" {
			d.Mounted = mounted[name]
			if d.Mounted == "" {
				d.Mounted = p["mountpoint"].value
			}
			if err := l.directory(d.Mounted); err != nil {
				return err
			}
		}
		l.tx.TouchDataset(name)
		l.tx.State.Datasets[name] = d
	}
	for _, p := range l.tx.State.Pools {
		for name := range used {
			if name == p.Name || strings.HasPrefix(name, p.Name+"/") || strings.HasPrefix(name, p.Name+"@") {
				p.Ballast -= min(p.Ballast, l.tx.State.Datasets[name].Used)
			}
		}
		if l.tx.State.Datasets[p.Name] == nil {
			l.note("pool %s: its datasets", p.Name)
		}
	}
	return nil
}

// set keeps a setting that is the dataset's own.
func (l *layout) set(d *world.Dataset, key, value, source string) {
	switch key {
	case "type", "guid", "mounted", "origin", "used", "available", "encryption", "keyformat", "keystatus", "encryptionroot":
		return
	}
	switch {
	case source == "local" || key == "volsize" && value != "-" && d.Type == "volume":
		l.local(d, key, value)
	case source == "received" || strings.HasPrefix(source, "temporary"):
		l.local(d, key, value)
		l.note("dataset %s: %s is %s", d.Name, key, source)
	}
}

func (*layout) local(d *world.Dataset, key, value string) {
	if d.Local == nil {
		d.Local = map[string]string{}
	}
	d.Local[key] = value
}

// parent is what a dataset or snapshot lies below; empty: it is a pool's.
func parent(name string) string {
	return name[:max(0, strings.LastIndexAny(name, "/@"))]
}

// device is a disk as the device tree shows it.
type device struct {
	name, driver, serial, vendor, model, board string
	slot                                       int // -1: none
	size                                       uint64
}

// deviceTree reads prtconf -vD: the disks, and a node with the name of the board. A disk
// has the slot and the vendor of the nearest node above that has one.
func deviceTree(out string) (all []device) {
	type level struct {
		indent, slot int
		vendor       string
	}
	var above []level
	var now *device
	var blocks, size uint64
	property := ""
	for line := range strings.Lines(out) {
		text := strings.TrimSpace(line)
		indent := len(line) - len(strings.TrimLeft(line, " "))
		name, isProperty := strings.CutPrefix(text, "name='")
		value, isValue := strings.CutPrefix(text, "value=")
		link, isLink := strings.CutPrefix(text, "dev_link=/dev/dsk/")
		switch {
		case isProperty:
			property, _, _ = strings.Cut(name, "'")
		case isValue && property != "":
			value = strings.Trim(value, "'")
			top := &above[len(above)-1]
			switch property {
			case "physical-slot#":
				top.slot = hexadecimal(value)
			case "baseboard-identifier":
				all = append(all, device{board: value, slot: -1})
			case "device-nblocks":
				blocks = uint64(hexadecimal(value))
			case "device-blksize":
				size = uint64(hexadecimal(value))
			case "inquiry-serial-no":
				now.serial = value
			case "inquiry-product-id":
				now.model = value
			}
			property = ""
		case isLink && now != nil && now.name == "":
			now.name = strings.TrimSuffix(link, "s0")
			now.size = blocks * size
			all = append(all, *now)
		case strings.Contains(text, "(driver name: ") || strings.Contains(text, ", instance #"):
			above = slices.DeleteFunc(above, func(a level) bool { return a.indent >= indent })
			next := level{indent: indent, slot: -1}
			if len(above) > 0 {
				next.slot, next.vendor = above[len(above)-1].slot, above[len(above)-1].vendor
			}
			if v, ok := strings.CutPrefix(text, "pci"); ok {
				next.vendor, _, _ = strings.Cut(v, ",")
			}
			above = append(above, next)
			_, driver, _ := strings.Cut(text, "(driver name: ")
			now, blocks, size = &device{driver: strings.TrimSuffix(driver, ")"), slot: next.slot, vendor: next.vendor}, 0, 0
		}
	}
	return all
}

func hexadecimal(s string) int {
	n := 0
	for _, c := range s {
		switch {
		case c >= '0' && c <= '9':
			n = n<<4 | int(c-'0')
		case c >= 'a' && c <= 'f':
			n = n<<4 | int(c-'a'+10)
		default:
			return n
		}
	}
	return n
}
