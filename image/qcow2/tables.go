package qcow2

import (
	"encoding/binary"
	"fmt"
)

// The bits of table entries.
const (
	offsetBits  = 1<<56 - 1<<9 // where what the entry describes lies
	copiedBit   = 1 << 63
	packedBit   = 1 << 62
	zeroBit     = 1
	l1Reserved  = ^uint64(offsetBits | copiedBit)
	l2Reserved  = ^uint64(offsetBits | copiedBit | packedBit | zeroBit)
	packedSpace = 512 // the unit in which the length of a compressed cluster is counted
)

// entry is one of an L2 table: where a cluster of the disk is.
type entry struct {
	at     int64 // 0: it reads as zeros
	length int64 // of a compressed one, at most; else 0
}

// entry reads one. Which bits may be set is checked.
func (h header) entry(raw uint64) (entry, error) {
	if raw&packedBit != 0 {
		split := 62 - (h.clusterBits - 8)
		at := int64(raw & (1<<split - 1))
		sectors := int64(raw&(packedBit-1)) >> split
		if raw&copiedBit != 0 || at >= 1<<56 {
			return entry{}, bad("it has reserved bits (%#x)", raw)
		}
		return entry{at, (sectors+1)*packedSpace - at%packedSpace}, nil
	}
	at := int64(raw & offsetBits)
	switch {
	case raw&l2Reserved != 0 || raw&zeroBit != 0 && h.version == 2:
		return entry{}, bad("it has reserved bits (%#x)", raw)
	case at&(h.cluster()-1) != 0:
		return entry{}, bad("it lies at %#x, which is no boundary of clusters", at)
	case at == 0 && raw&copiedBit != 0:
		return entry{}, bad("it lies where the header does")
	}
	if raw&zeroBit != 0 {
		return entry{}, nil // Space that is kept for it is never read.
	}
	return entry{at: at}, nil
}

func (i *Image) claimHeader(u *use) error {
	if err := u.claim(0, i.header.cluster(), i.header.length, "the header"); err != nil {
		return err
	}
	length := i.header.refcountClusters * i.header.cluster()
	return u.claim(i.header.refcountAt, length, length, "the refcount table")
}

// readL1 reads the L1 table, and claims the place of each L2 table. Entries past the end of the disk
// are of snapshots' memory: nobody reads them.
func (i *Image) readL1(u *use) error {
	h := i.header
	if err := u.claim(h.l1At, h.l1Entries*8, h.l1Entries*8, "the L1 table"); err != nil {
		return err
	}
	raw := make([]byte, h.tables()*8)
	if err := i.read(raw, h.l1At, "the L1 table"); err != nil {
		return err
	}
	i.l1 = make([]uint64, h.tables())
	for n := range i.l1 {
		e := binary.BigEndian.Uint64(raw[n*8:])
		at := e & offsetBits
		what := fmt.Sprintf("L2 table %d", n)
		switch {
		case e&l1Reserved != 0:
			return bad("the entry of %s has reserved bits (%#x)", what, e)
		case at&uint64(h.cluster()-1) != 0:
			return bad("%s is said to lie at %#x, which is no boundary of clusters", what, at)
		case at == 0 && e&copiedBit != 0:
			return bad("%s is said to lie where the header does", what)
		case at == 0:
			continue
		}
		if err := u.claim(int64(at), h.cluster(), h.cluster(), what); err != nil {
			return err
		}
		i.l1[n] = at
	}
	return nil
}

// eachCluster calls do with each cluster of the disk that has an entry, in order, and hole for
// the others before it.
func (i *Image) eachCluster(do func(n int64, e entry) error, end func() error) error {
	h := i.header
	raw := make([]byte, h.cluster())
	for t, at := range i.l1 {
		if at == 0 {
			continue
		}
		if err := i.read(raw, int64(at), fmt.Sprintf("L2 table %d", t)); err != nil {
			return err
		}
		first := int64(t) * h.entries()
		for k := range min(h.entries(), h.clusters()-first) {
			word := binary.BigEndian.Uint64(raw[k*8:])
			if word == 0 {
				continue
			}
			e, err := h.entry(word)
			if err != nil {
				return bad("the entry of cluster %d cannot be used: %v", first+k, err)
			}
			if e.at == 0 && e.length == 0 {
				continue
			}
			if err := do(first+k, e); err != nil {
				return err
			}
		}
	}
	return end()
}

// checkL2 claims where each cluster of the disk lies, and counts them.
func (i *Image) checkL2(u *use) error {
	h := i.header
	var packed int64
	return i.eachCluster(func(n int64, e entry) error {
		rest := min(h.cluster(), h.size-n<<h.clusterBits)
		i.data += rest
		if e.length == 0 {
			return u.claim(e.at, h.cluster(), rest, fmt.Sprintf("cluster %d", n))
		}
		packed++
		if packed > h.mostPacked(u.length) {
			return bad("it has %d compressed clusters and more; no file of %d bytes holds as many", packed-1, u.length)
		}
		return u.pack(e.at, e.length, fmt.Sprintf("compressed cluster %d", n))
	}, func() error { return nil })
}

// mostPacked is how many compressed clusters a file can hold: the compressions take at least
// one byte for so many (deflate: 258 bytes for two bits; zstd: a block of
// 128 KiB for 4 bytes). Where entries claim more, they claim the same bytes several
// times that they are a cluster.
func (h header) mostPacked(length int64) int64 {
	ratio := int64(1032)
	if h.zstd {
		ratio = 32768
	}
	return length*ratio/h.cluster() + 1
}
