package qcow2

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// The image that tests damage: clusters of 4 KiB, and in it
//
//	0x0000 header      0x3000 refcount block   0x5000 data of cluster 0
//	0x1000 L1 table    0x4000 L2 table         0x6000 data of cluster 1
//	0x2000 refcounts                           0x7000 compressed cluster 3
//
// Cluster 2 is a hole, cluster 4 one that reads as zeros, and the disk has 8.
const (
	atL1, atRefcounts, atBlock, atL2, atData, atPacked = 0x1000, 0x2000, 0x3000, 0x4000, 0x5000, 0x7000
	bitsOfTest                                         = 12
	testSize                                           = 8 << bitsOfTest
)

type built []byte

func (b built) put64(at int, v uint64) { binary.BigEndian.PutUint64(b[at:], v) }
func (b built) put32(at int, v uint32) { binary.BigEndian.PutUint32(b[at:], v) }

// build makes the image; packed gives the compressed bytes of a cluster.
func build(version uint32, packed []byte) built {
	b := make(built, 0x8000)
	copy(b, Magic)
	b.put32(4, version)
	b.put32(20, bitsOfTest)
	b.put64(24, testSize)
	b.put32(36, 1)
	b.put64(40, atL1)
	b.put64(48, atRefcounts)
	b.put32(56, 1)
	if version == 3 {
		b.put32(96, 4)
		b.put32(100, 112)
	}
	b.put64(atL1, atL2|copiedBit)
	b.put64(atRefcounts, atBlock)
	for n := range 8 {
		binary.BigEndian.PutUint16(b[atBlock+2*n:], 1)
	}
	b.put64(atL2, atData|copiedBit)
	b.put64(atL2+8, (atData+0x1000)|copiedBit)
	b.put64(atL2+24, packedEntry(atPacked+100, len(packed)))
	if version == 3 {
		b.put64(atL2+32, zeroBit)
	}
	for n := range 0x2000 {
		b[atData+n] = byte(n*7 + n>>8)
	}
	copy(b[atPacked+100:], packed)
	return b
}

func packedEntry(at, length int) uint64 {
	sectors := (at%512+length+511)/512 - 1
	return packedBit | uint64(sectors)<<(62-(bitsOfTest-8)) | uint64(at)
}

// wanted is the disk of the image.
func wanted() []byte {
	disk := make([]byte, testSize)
	copy(disk, build(2, nil)[atData:atData+0x2000])
	copy(disk[0x3000:], third())
	return disk
}

// third is what is in the compressed cluster.
func third() []byte { return bytes.Repeat([]byte("sledctl."), 512) }

func deflated(data []byte) []byte {
	var out bytes.Buffer
	w, _ := flate.NewWriter(&out, 6)
	_, _ = w.Write(data)
	_ = w.Close()
	return out.Bytes()
}

func zstandard(data []byte) []byte {
	w, _ := zstd.NewWriter(nil, zstd.WithEncoderCRC(false))
	return w.EncodeAll(data, nil)
}

func good(version uint32) built { return build(version, deflated(third())) }

// disk reads all of an image; what it yields must follow each other.
func disk(raw []byte) ([]byte, error) {
	i, err := Open(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		return nil, err
	}
	var out []byte
	err = i.Walk(context.Background(), func(at, length int64, data []byte) error {
		if at != int64(len(out)) || data != nil && int64(len(data)) != length || length <= 0 {
			return fmt.Errorf("%d bytes at %d, after %d, with %d of data", length, at, len(out), len(data))
		}
		if data == nil {
			data = make([]byte, length)
		}
		out = append(out, data...)
		return nil
	})
	return out, err
}

// The image as it is built is read, in both versions and with both compressions.
func TestReadsWhatIsThere(t *testing.T) {
	z := build(3, zstandard(third()))
	z.put64(72, compressionType)
	z[104] = 1
	shorter := good(3)
	shorter.put64(24, testSize-512) // the last cluster is one in part
	for name, c := range map[string]struct {
		image built
		size  int
	}{
		"version 2": {good(2), testSize}, "version 3": {good(3), testSize}, "zstd": {z, testSize}, "part of a cluster": {shorter, testSize - 512},
	} {
		got, err := disk(c.image)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !bytes.Equal(got, wanted()[:c.size]) {
			t.Errorf("%s: another disk was read", name)
		}
	}
	i, err := Open(bytes.NewReader(good(3)), 0x8000)
	if err != nil || i.Data() != 3<<bitsOfTest || i.Size() != testSize {
		t.Errorf("%v; data %d, size %d", err, i.Data(), i.Size())
	}
}

// Refcounts are read in each width that version 3 allows.
func TestRefcountsOfEachWidth(t *testing.T) {
	for order := range uint32(7) {
		b := good(3)
		b.put32(96, order)
		clear(b[atBlock : atBlock+64])
		for n := range 8 {
			bit := n << order
			if order < 3 {
				b[atBlock+bit/8] |= 1 << (bit % 8)
			} else {
				b[atBlock+(n+1)<<(order-3)-1] = 1
			}
		}
		if _, err := disk(b); err != nil {
			t.Errorf("2^%d bits: %v", order, err)
		}
	}
}
