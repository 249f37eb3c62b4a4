package qcow2

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// The limits of what is read. Those of the cluster, the L1 table and the refcount table are
// QEMU's own (block/qcow2.h).
const (
	minClusterBits   = 9
	maxClusterBits   = 21
	maxL1Bytes       = 32 << 20
	maxRefcountBytes = 8 << 20
	maxDisk          = 1 << 46 // 64 TiB
	maxClusters      = 1 << 27 // of the file: what is known of each fits into 32 MiB
	maxBackingName   = 1023
)

// header is what the first cluster says.
type header struct {
	version          uint32
	length           int64 // of the header
	clusterBits      uint
	size             int64
	l1At, l1Entries  int64
	refcountAt       int64
	refcountClusters int64
	refcountOrder    uint // entries of 1<<order bits
	zstd             bool
}

func (h header) cluster() int64 { return 1 << h.clusterBits }

// entries is how many an L2 table has.
func (h header) entries() int64 { return h.cluster() / 8 }

// clusters is how many the disk has; the last may be one in part.
func (h header) clusters() int64 { return (h.size + h.cluster() - 1) >> h.clusterBits }

// tables is how many L2 tables describe the disk.
func (h header) tables() int64 { return (h.clusters() + h.entries() - 1) / h.entries() }

// The bits of incompatible_features.
const (
	dirty = 1 << iota
	corrupt
	externalData
	compressionType
	extendedL2
)

func (i *Image) readHeader() error {
	var raw [112]byte
	if err := i.read(raw[:72], 0, "its header"); err != nil {
		return err
	}
	u32 := func(at int) uint32 { return binary.BigEndian.Uint32(raw[at:]) }
	u64 := func(at int) uint64 { return binary.BigEndian.Uint64(raw[at:]) }
	h := &i.header
	if string(raw[:4]) != Magic {
		return bad("it does not begin as a qcow2 file does")
	}
	h.version, h.length, h.refcountOrder = u32(4), 72, 4
	if h.version != 2 && h.version != 3 {
		return &Error{Reason: fmt.Sprintf("its version is %d; only 2 and 3 are read", h.version), Convertible: h.version == 1}
	}
	if at, length := u64(8), u32(16); at != 0 {
		return i.backing(at, length)
	}
	bits := u32(20)
	if bits < minClusterBits || bits > maxClusterBits {
		return bad("its clusters have 2^%d bytes; they may have 2^%d to 2^%d", bits, minClusterBits, maxClusterBits)
	}
	h.clusterBits = uint(bits)
	size := u64(24)
	switch {
	case size == 0:
		return bad("its disk has 0 bytes")
	case size > maxDisk:
		return bad("its disk has %d bytes; at most %d are read", size, int64(maxDisk))
	case size%512 != 0:
		return bad("its disk has %d bytes, which are no whole sectors of 512", size)
	}
	h.size = int64(size)
	if method := u32(32); method != 0 {
		return &Error{Reason: fmt.Sprintf("it is encrypted (method %d)", method), Convertible: true}
	}
	if h.version == 3 {
		if err := i.readVersion3(raw[:]); err != nil {
			return err
		}
	}
	return h.locate(u32(36), u64(40), u64(48), u32(56), u32(60), u64(64))
}

// backing refuses an image that lacks what lies in another file.
func (i *Image) backing(at uint64, length uint32) error {
	name := ""
	if length <= maxBackingName && at < uint64(i.length) {
		raw := make([]byte, length)
		if err := i.read(raw, int64(at), "the name of its backing file"); err != nil {
			return err
		}
		name = fmt.Sprintf(" %q", strings.ToValidUTF8(string(raw), "?"))
	}
	return &Error{Reason: "it holds only what differs from its backing file" + name, Convertible: true}
}

// readVersion3 reads what version 3 has behind the header of version 2.
func (i *Image) readVersion3(raw []byte) error {
	h := &i.header
	if err := i.read(raw[72:104], 72, "its header"); err != nil {
		return err
	}
	h.length = int64(binary.BigEndian.Uint32(raw[100:]))
	if h.length < 104 || h.length%8 != 0 || h.length > h.cluster() {
		return bad("its header has %d bytes; it must have at least 104, a multiple of 8, within a cluster of %d", h.length, h.cluster())
	}
	features, order := binary.BigEndian.Uint64(raw[72:]), binary.BigEndian.Uint32(raw[96:])
	switch {
	case features&corrupt != 0:
		return &Error{Reason: "it is marked as corrupt", Repair: true}
	case features&dirty != 0:
		return &Error{Reason: "it is marked as dirty: it was not closed, and may lack what was written last", Repair: true}
	case features&externalData != 0:
		return &Error{Reason: "its data lies in another file", Convertible: true}
	case features&extendedL2 != 0:
		return &Error{Reason: "it has extended L2 entries, which are not read", Convertible: true}
	case features >= extendedL2<<1:
		return bad("it has features that are not known (%#x)", features&^(extendedL2<<1-1))
	case order > 6:
		return bad("its refcounts have 2^%d bits; they may have up to 2^6", order)
	}
	h.refcountOrder = uint(order)
	var kind byte
	if h.length > 104 {
		if err := i.read(raw[104:105], 104, "its header"); err != nil {
			return err
		}
		kind = raw[104]
	}
	h.zstd = kind == 1
	if kind > 1 || (features&compressionType != 0) != (kind != 0) {
		return bad("its compression has the type %d, and the feature that announces one is %t", kind, features&compressionType != 0)
	}
	return nil
}

// locate takes where the tables are said to lie, as far as that can be judged by itself.
func (h *header) locate(l1Entries uint32, l1At, refcountAt uint64, refcountClusters, snapshots uint32, snapshotsAt uint64) error {
	mask := uint64(h.cluster() - 1)
	places := []struct {
		what string
		at   uint64
	}{{"L1 table", l1At}, {"refcount table", refcountAt}, {"list of snapshots", snapshotsAt}}
	for n, p := range places {
		if (n < 2 || snapshots > 0) && (p.at&mask != 0 || p.at == 0 || p.at >= 1<<56) {
			return bad("its %s is said to lie at %#x, which is no place for one", p.what, p.at)
		}
	}
	h.l1At, h.l1Entries, h.refcountAt, h.refcountClusters = int64(l1At), int64(l1Entries), int64(refcountAt), int64(refcountClusters)
	switch {
	case h.l1Entries*8 > maxL1Bytes:
		return bad("its L1 table has %d entries; at most %d are read", l1Entries, maxL1Bytes/8)
	case h.l1Entries < h.tables():
		return bad("its L1 table has %d entries, and a disk of %d bytes needs %d", l1Entries, h.size, h.tables())
	case h.refcountClusters == 0 || h.refcountClusters*h.cluster() > maxRefcountBytes:
		return bad("its refcount table has %d clusters of %d bytes; it must have 1, and at most %d bytes", refcountClusters, h.cluster(), maxRefcountBytes)
	case snapshots > 65536:
		return bad("it has %d snapshots; at most 65536 are possible", snapshots)
	}
	return nil
}
