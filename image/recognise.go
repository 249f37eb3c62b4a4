package image

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/image/qcow2"
)

// startLength is how much of a file's beginning shows what it is.
const startLength = 4096

// kind is what a file is.
type kind struct {
	name string // "raw", "qcow2", or what is refused
	pack string // how it is packed; then the name is of no interest
	// command is what makes a raw disk of it, with IN and OUT; empty: nothing does.
	command string
}

// sign is how a kind of file is known.
type sign struct {
	kind
	at    int
	magic string
}

// signs are known at the beginning of a file. What has none of them is a raw disk.
func signs() []sign {
	qemu := func(format string) string { return "qemu-img convert -f " + format + " -O qcow2 IN OUT.qcow2" }
	return []sign{
		{kind{name: "qcow2"}, 0, qcow2.Magic},
		{kind{pack: "gzip"}, 0, "\x1f\x8b\x08"},
		{kind{pack: "xz"}, 0, "\xfd7zXZ\x00"},
		{kind{pack: "zstd"}, 0, "\x28\xb5\x2f\xfd"},
		{kind{name: "a VMDK", command: qemu("vmdk")}, 0, "KDMV"},
		{kind{name: "a VMDK", command: qemu("vmdk")}, 0, "COWD"},
		{kind{name: "a VMDK", command: qemu("vmdk")}, 0, "# Disk DescriptorFile"},
		{kind{name: "a VDI", command: qemu("vdi")}, 64, "\x7f\x10\xda\xbe"},
		{kind{name: "a VHDX", command: qemu("vhdx")}, 0, "vhdxfile"},
		{kind{name: "a VHD", command: qemu("vpc")}, 0, "conectix"},
		{kind{name: "a QED", command: qemu("qed")}, 0, "QED\x00"},
		{kind{name: "a disk of Parallels", command: qemu("parallels")}, 0, "WithoutFreeSpace"},
		{kind{name: "a disk of Parallels", command: qemu("parallels")}, 0, "WithouFreSpacExt"},
		{kind{name: "packed by bzip2", command: "bzip2 -dk IN"}, 0, "BZh"},
		{kind{name: "packed by lz4", command: "lz4 -dk IN"}, 0, "\x04\x22\x4d\x18"},
		{kind{name: "packed by lzma", command: "lzma -dk IN"}, 0, "\x5d\x00\x00"},
		{kind{name: "a zip archive", command: "unzip IN"}, 0, "PK\x03\x04"},
		{kind{name: "a tar archive", command: "tar xf IN"}, 257, "ustar"},
		{kind{name: "a ZFS stream"}, 8, "\xac\xcb\xba\xf5\x02\x00\x00\x00"},
		{kind{name: "a ZFS stream"}, 8, "\x00\x00\x00\x02\xf5\xba\xcb\xac"},
	}
}

// recognise says what a file is, by its beginning and its last sector. A fixed VHD is known by the
// latter only.
func recognise(start, end []byte) kind {
	for _, s := range signs() {
		if len(start) >= s.at && bytes.HasPrefix(start[s.at:], []byte(s.magic)) {
			return s.kind
		}
	}
	switch {
	case bytes.HasPrefix(end, []byte("conectix")):
		return kind{name: "a VHD", command: "qemu-img convert -f vpc -O qcow2 IN OUT.qcow2"}
	case bytes.HasPrefix(end, []byte("koly")):
		return kind{name: "a DMG", command: "qemu-img convert -f dmg -O qcow2 IN OUT.qcow2"}
	case isPage(start):
		return kind{name: "a web page"}
	}
	return kind{name: "raw"}
}

// isPage reports whether it is what a server sends instead of a file that it lacks.
func isPage(start []byte) bool {
	text := strings.ToLower(strings.TrimSpace(string(start[:min(len(start), 64)])))
	return strings.HasPrefix(text, "<!doctype html") || strings.HasPrefix(text, "<html") || strings.HasPrefix(text, "<?xml")
}

func (k kind) refuse(name string) error {
	e := &Refused{Reason: fmt.Sprintf("it is %s; what is read are raw disks and qcow2", k.name)}
	if k.command != "" {
		e.Next = "to get a disk out of it, run: " + strings.NewReplacer("IN", host.Quote(name), "OUT", host.Quote(name)).Replace(k.command)
	}
	return e
}

// convert is the hint that rewrites a qcow2 without what is not read.
func convert(name string) string {
	return "to rewrite it without that, run: qemu-img convert -O qcow2 " + host.Quote(name) + " " + host.Quote(name+".new")
}

func repair(name string) string {
	return "to repair it, run: qemu-img check -r all " + host.Quote(name)
}

// wholeDisk refuses a raw disk of which a part is missing: whose size is no whole
// sectors, or which ends before its GPT says (UEFI specification 2.10, table 5-5: AlternateLBA is
// the last sector of the disk).
func wholeDisk(start []byte, size int64) error {
	switch {
	case size%Sector != 0:
		return &Refused{Reason: fmt.Sprintf("its disk has %d bytes, which are no whole sectors of %d: its end is missing", size, Sector)}
	case size > MaxSize:
		return &Refused{Reason: fmt.Sprintf("its disk has %d bytes; at most %d are taken", size, int64(MaxSize))}
	case len(start) < 2*Sector || string(start[Sector:Sector+8]) != "EFI PART":
		return nil
	}
	last := binary.LittleEndian.Uint64(start[Sector+32:])
	if last >= uint64(size/Sector) {
		return &Refused{Reason: fmt.Sprintf("its partition table is of a disk of %d sectors, and it has %d: its end is missing", last+1, size/Sector)}
	}
	return nil
}
