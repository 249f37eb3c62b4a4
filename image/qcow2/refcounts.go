package qcow2

import (
	"encoding/binary"
	"fmt"
)

// checkRefcounts holds the use of each cluster to the refcounts: what is used must be counted,
// or the next one who had written to the image would have written over it. Counts of
// clusters that nothing uses are those of snapshots and of what was lost: they harm nobody who reads.
func (i *Image) checkRefcounts(u *use) error {
	h := i.header
	table := make([]byte, h.refcountClusters*h.cluster())
	if err := i.read(table, h.refcountAt, "the refcount table"); err != nil {
		return err
	}
	perBlock := h.cluster() * 8 >> h.refcountOrder
	blocks := (u.clusters + perBlock - 1) / perBlock
	if blocks > int64(len(table)/8) {
		return bad("its refcount table has room for %d blocks, and the file needs %d", len(table)/8, blocks)
	}
	for n := range int64(len(table) / 8) {
		what := fmt.Sprintf("refcount block %d", n)
		switch at := binary.BigEndian.Uint64(table[n*8:]); {
		case at == 0:
		case at&uint64(h.cluster()-1) != 0 || at >= 1<<56:
			return bad("%s is said to lie at %#x, which is no boundary of clusters", what, at)
		default:
			if err := u.claim(int64(at), h.cluster(), h.cluster(), what); err != nil {
				return err
			}
		}
	}
	block := make([]byte, h.cluster())
	for n := range blocks {
		at := int64(binary.BigEndian.Uint64(table[n*8:]))
		if at != 0 {
			if err := i.read(block, at, fmt.Sprintf("refcount block %d", n)); err != nil {
				return err
			}
		}
		for k := range min(perBlock, u.clusters-n*perBlock) {
			c := n*perBlock + k
			if (u.taken.has(c) || u.packed.has(c)) && (at == 0 || !counted(block, k, h.refcountOrder)) {
				return &Error{Reason: fmt.Sprintf("the cluster at %#x is used, and its refcount is 0", c<<h.clusterBits), Repair: true}
			}
		}
	}
	return nil
}

// counted reports whether a refcount of 1<<order bits is not 0.
func counted(block []byte, n int64, order uint) bool {
	if order < 3 {
		width := int64(1) << order
		return block[n*width/8]>>(n*width%8)&(1<<width-1) != 0
	}
	bytes := int64(1) << (order - 3)
	for _, b := range block[n*bytes : (n+1)*bytes] {
		if b != 0 {
			return true
		}
	}
	return false
}
