// Package fat reads FAT12 and FAT16 file systems as a guest's kernel does, by Microsoft's
// description of them (FAT: General Overview of On-Disk Format, version 1.03). It knows root
// directories with long names, and no directories below.
package fat

import (
	"encoding/binary"
	"errors"
	"strings"
	"unicode/utf16"
)

// Volume is a file system.
type Volume struct {
	Label string // of the root directory
	Files map[string][]byte
}

// errNone is a disk without such a file system.
var errNone = errors.New("no FAT12 or FAT16 file system")

// geometry is what the boot sector says.
type geometry struct {
	sector, cluster, reserved, tables, entries, sectors, tableSize int
	disk                                                           []byte
}

// Read reads all files of a disk.
func Read(disk []byte) (Volume, error) {
	g := geometry{disk: disk}
	if len(disk) < 512 || disk[510] != 0x55 || disk[511] != 0xaa {
		return Volume{}, errNone
	}
	number := func(at int) int { return int(binary.LittleEndian.Uint16(disk[at:])) }
	g.sector, g.cluster, g.reserved = number(11), int(disk[13]), number(14)
	g.tables, g.entries, g.sectors, g.tableSize = int(disk[16]), number(17), number(19), number(22)
	if g.sectors == 0 {
		g.sectors = int(binary.LittleEndian.Uint32(disk[32:]))
	}
	if g.sector == 0 || g.cluster == 0 || g.tables == 0 || g.tableSize == 0 || g.sectors*g.sector > len(disk) || g.data() >= g.sectors*g.sector {
		return Volume{}, errNone
	}
	return g.root()
}

// rootAt is where the root directory begins, and data where the first cluster does, in bytes.
func (g geometry) rootAt() int { return (g.reserved + g.tables*g.tableSize) * g.sector }
func (g geometry) data() int {
	return g.rootAt() + (g.entries*32+g.sector-1)/g.sector*g.sector
}

// clusters is how many there are: their number alone says which kind of table it is.
func (g geometry) clusters() int { return (g.sectors*g.sector - g.data()) / (g.sector * g.cluster) }

// next is the cluster behind one, and whether there is one.
func (g geometry) next(n int) (int, bool) {
	table := g.disk[g.reserved*g.sector : (g.reserved+g.tableSize)*g.sector]
	twelve := g.clusters() < 4085
	at := 2 * n
	if twelve {
		at = n * 3 / 2
	}
	if at+2 > len(table) {
		return 0, false
	}
	value := int(binary.LittleEndian.Uint16(table[at:]))
	if twelve {
		value = value >> (4 * (n % 2)) & 0xfff
	}
	return value, value >= 2 && value < g.clusters()+2
}

// content is that of a file which begins at a cluster.
func (g geometry) content(first, size int) ([]byte, error) {
	data := []byte{}
	for n, more := first, size > 0; more; n, more = g.next(n) {
		at := g.data() + (n-2)*g.cluster*g.sector
		if n < 2 || n >= g.clusters()+2 || len(data) > size {
			return nil, errors.New("a file has clusters that do not exist, or too many")
		}
		data = append(data, g.disk[at:at+g.cluster*g.sector]...)
	}
	if len(data) < size {
		return nil, errors.New("a file has too few clusters")
	}
	return data[:size], nil
}

// The attributes of entries of a directory.
const (
	attrLabel = 0x08
	attrDir   = 0x10
	attrLong  = 0x0f // a part of the long name of the entry behind
)

func (g geometry) root() (Volume, error) {
	v := Volume{Files: map[string][]byte{}}
	var long []uint16
	for i := range g.entries {
		e := g.disk[g.rootAt()+32*i : g.rootAt()+32*i+32]
		switch attr := e[11]; {
		case e[0] == 0:
			return v, nil
		case e[0] == 0xe5: // deleted
			long = nil
		case attr == attrLong:
			long = append(part(e), long...)
		case attr&attrLabel != 0:
			v.Label, long = strings.TrimRight(string(e[:11]), " "), nil
		case attr&attrDir != 0:
			return v, errors.New("not simulated: a directory on a FAT file system")
		default:
			data, err := g.content(int(binary.LittleEndian.Uint16(e[26:])), int(binary.LittleEndian.Uint32(e[28:])))
			if err != nil {
				return v, err
			}
			v.Files[nameOf(e, long)], long = data, nil
		}
	}
	return v, nil
}

// part is what an entry has of a long name: up to 13 characters.
func part(e []byte) (all []uint16) {
	for _, from := range [][2]int{{1, 11}, {14, 26}, {28, 32}} {
		for at := from[0]; at < from[1]; at += 2 {
			c := binary.LittleEndian.Uint16(e[at:])
			if c == 0 || c == 0xffff {
				return all
			}
			all = append(all, c)
		}
	}
	return all
}

func nameOf(e []byte, long []uint16) string {
	if len(long) > 0 {
		return string(utf16.Decode(long))
	}
	name, ext := strings.TrimRight(string(e[:8]), " "), strings.TrimRight(string(e[8:11]), " ")
	if ext != "" {
		name += "." + ext
	}
	return strings.ToLower(name)
}
