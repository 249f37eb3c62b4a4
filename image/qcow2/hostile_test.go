package qcow2

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
)

// hostile are images that lie, each with the reason for which it is refused.
func hostile() map[string]struct {
	damage func(b built) built
	want   string
} {
	type c = struct {
		damage func(b built) built
		want   string
	}
	set64 := func(at int, v uint64) func(built) built {
		return func(b built) built { b.put64(at, v); return b }
	}
	set32 := func(at int, v uint32) func(built) built {
		return func(b built) built { b.put32(at, v); return b }
	}
	cut := func(at int) func(built) built { return func(b built) built { return b[:at] } }
	return map[string]c{
		"another magic":                        {set32(0, 0x514649fa), "does not begin as a qcow2"},
		"version 1":                            {set32(4, 1), "its version is 1"},
		"version 4":                            {set32(4, 4), "its version is 4"},
		"a backing file":                       {func(b built) built { b.put64(8, 0x200); b.put32(16, 11); copy(b[0x200:], "/etc/shadow"); return b }, `backing file "/etc/shadow"`},
		"a backing file past the end":          {set64(8, 1<<40), "differs from its backing file"},
		"a backing file with a long name":      {func(b built) built { b.put64(8, 0x200); b.put32(16, 1<<31); return b }, "differs from its backing file"},
		"clusters of a byte":                   {set32(20, 0), "2^0 bytes"},
		"clusters of 256 bytes":                {set32(20, 8), "2^8 bytes"},
		"clusters of 4 MiB":                    {set32(20, 22), "2^22 bytes"},
		"clusters whose size overflows":        {set32(20, 1<<31), "2^2147483648 bytes"},
		"no disk":                              {set64(24, 0), "has 0 bytes"},
		"a disk that overflows":                {set64(24, 1<<64-512), "at most"},
		"a negative disk":                      {set64(24, 1<<63), "at most"},
		"a disk of 2 EiB":                      {set64(24, 1<<61), "at most"},
		"a disk of half a sector":              {set64(24, 256), "no whole sectors"},
		"encryption by AES":                    {set32(32, 1), "encrypted (method 1)"},
		"encryption by LUKS":                   {set32(32, 2), "encrypted (method 2)"},
		"no L1 table":                          {set32(36, 0), "needs 1"},
		"an L1 table for less than the disk":   {set64(24, 1<<30), "needs 512"},
		"an L1 table of 32 GiB":                {set32(36, 1<<32-1), "at most"},
		"an L1 table that is longer":           {set32(36, 1<<20), "past the end"},
		"an L1 table past the end":             {set64(40, 0x9000), "past the end"},
		"an L1 table whose place overflows":    {set64(40, 1<<63), "no place for one"},
		"an L1 table between clusters":         {set64(40, 0x1008), "no place for one"},
		"an L1 table over the header":          {set64(40, 0), "no place for one"},
		"an L1 table over the refcounts":       {set64(40, atRefcounts), "where something else lies"},
		"no refcount table":                    {set32(56, 0), "refcount table has 0 clusters"},
		"a refcount table of 16 TiB":           {set32(56, 1<<32-1), "at most"},
		"a refcount table past the end":        {set64(48, 0x10000), "past the end"},
		"a refcount table over the header":     {set64(48, 0), "no place for one"},
		"a refcount table between clusters":    {set64(48, 0x2010), "no place for one"},
		"a refcount block past the end":        {set64(atRefcounts, 0x100000), "past the end"},
		"a refcount block between clusters":    {set64(atRefcounts, 0x3200), "no boundary of clusters"},
		"a refcount block over the L1 table":   {set64(atRefcounts, atL1), "where something else lies"},
		"one refcount block twice":             {set64(atRefcounts+8, atBlock), "where something else lies"},
		"no refcount block":                    {set64(atRefcounts, 0), "refcount is 0"},
		"data that is not counted":             {func(b built) built { b[atBlock+2*5+1] = 0; return b }, "at 0x5000 is used, and its refcount is 0"},
		"compressed data that is not counted":  {func(b built) built { b[atBlock+2*7+1] = 0; return b }, "at 0x7000 is used"},
		"refcounts of 2^7 bits":                {set32(96, 7), "2^7 bits"},
		"too many snapshots":                   {func(b built) built { b.put32(60, 1<<20); b.put64(64, 0x1000); return b }, "snapshots"},
		"snapshots nowhere":                    {set32(60, 1), "list of snapshots"},
		"a header of 96 bytes":                 {set32(100, 96), "header has 96 bytes"},
		"a header of 4 GiB":                    {set32(100, 1<<32-8), "header has"},
		"a header of 107 bytes":                {set32(100, 107), "header has 107 bytes"},
		"the dirty bit":                        {set64(72, dirty), "dirty"},
		"the corrupt bit":                      {set64(72, corrupt), "corrupt"},
		"an external data file":                {set64(72, externalData), "another file"},
		"extended L2 entries":                  {set64(72, extendedL2), "extended L2"},
		"a feature of the future":              {set64(72, 1<<40), "not known"},
		"a compression that is not announced":  {func(b built) built { b[104] = 1; return b }, "compression has the type 1"},
		"a compression that does not exist":    {func(b built) built { b.put64(72, compressionType); b[104] = 9; return b }, "compression has the type 9"},
		"an announced compression that is not": {set64(72, compressionType), "compression has the type 0"},
		"an L2 table past the end":             {set64(atL1, 0x9000), "past the end"},
		"an L2 table in part past the end":     {func(b built) built { b.put64(atL1, 0x7000); return b[:0x7800] }, "past the end"},
		"an L2 table between clusters":         {set64(atL1, 0x4200), "no boundary of clusters"},
		"an L2 table in the header":            {set64(atL1, copiedBit), "where the header does"},
		"an L2 table that is the L1 table":     {set64(atL1, atL1), "where something else lies"},
		"reserved bits of the L1 table":        {set64(atL1, atL2|1<<60), "reserved bits"},
		"one L2 table twice":                   {func(b built) built { b.put64(24, 600<<12); b.put32(36, 2); b.put64(atL1+8, atL2); return b }, "where something else lies"},
		"data past the end":                    {set64(atL2, 0x9000), "past the end"},
		"data far past the end":                {set64(atL2, 1<<55), "past the end"},
		"data between clusters":                {set64(atL2, 0x5200), "no boundary of clusters"},
		"data in the header":                   {set64(atL2, copiedBit), "where the header does"},
		"data in the L2 table itself":          {set64(atL2, atL2), "where something else lies"},
		"data in the refcounts":                {set64(atL2, atBlock), "where something else lies"},
		"one cluster twice":                    {set64(atL2+8, atData), "where something else lies"},
		"reserved bits of an L2 table":         {set64(atL2, atData|1<<57), "reserved bits"},
		"data in compressed data":              {set64(atL2+56, atPacked), "where something else lies"},
		"compressed data in data":              {set64(atL2+24, packedEntry(atData, 100)), "where something else lies"},
		"compressed data past the end":         {set64(atL2+24, packedEntry(0x9000, 100)), "past the end"},
		"compressed data, copied":              {set64(atL2+24, packedEntry(atPacked, 100)|copiedBit), "reserved bits"},
		"compressed data that is none":         {func(b built) built { copy(b[atPacked+100:], "\xff\xff\xff\xff"); return b }, "cannot be unpacked"},
		"compressed data that is too short":    {func(b built) built { copy(b[atPacked+100:], deflated(third()[:99])); return b }, "cannot be unpacked"},
		"cut off in the magic":                 {cut(3), "ends within its header"},
		"cut off in the header":                {cut(71), "ends within its header"},
		"cut off in the header of version 3":   {cut(100), "ends within its header"},
		"cut off before the L1 table":          {cut(0x1000), "past the end"},
		"cut off in the L1 table":              {cut(0x1004), "past the end"},
		"cut off in the refcount table":        {cut(0x2800), "past the end"},
		"cut off in the refcount block":        {cut(0x3800), "past the end"},
		"cut off in the L2 table":              {cut(0x4004), "past the end"},
		"cut off in the data":                  {cut(0x5fff), "past the end"},
		"cut off before the compressed data":   {cut(atPacked), "past the end"},
		"cut off in the compressed data":       {cut(atPacked + 110), "cannot be unpacked"},
	}
}

// A file that lies is refused, with the reason, before a byte of the disk was yielded: only
// what is wrong with compressed data is seen when that is unpacked.
func TestRefusesWhatLies(t *testing.T) {
	if n := len(hostile()); n < 60 {
		t.Errorf("only %d hostile images", n)
	}
	for name, c := range hostile() {
		raw := c.damage(good(3))
		_, err := Open(bytes.NewReader(raw), int64(len(raw)))
		if strings.Contains(c.want, "unpacked") && err == nil {
			_, err = disk(raw)
		}
		if _, ok := errors.AsType[*Error](err); !ok || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// sparse is a file of which only some bytes were ever written.
type sparse struct {
	parts  map[int64][]byte
	length int64
}

func (s sparse) ReadAt(p []byte, at int64) (int, error) {
	n := int(min(int64(len(p)), max(0, s.length-at)))
	clear(p[:n])
	for from, part := range s.parts {
		if lo, hi := max(at, from), min(at+int64(n), from+int64(len(part))); lo < hi {
			copy(p[lo-at:hi-at], part[lo-from:hi-from])
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// What a file of any size claims is read in 128 MiB.
func TestMemoryIsBounded(t *testing.T) {
	largest := good(3)
	largest.put64(24, maxDisk)
	largest.put32(36, maxL1Bytes/8)
	largest.put64(40, 1<<20)
	for name, s := range map[string]sparse{
		"a large L1 table":    {map[int64][]byte{0: largest[:0x1000], 0x2000: largest[0x2000:]}, maxClusters << bitsOfTest},
		"a file of 2^62 byte": {map[int64][]byte{0: good(3)}, 1 << 62},
	} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		_, err := Open(s, s.length)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 100<<20 {
			t.Errorf("%s: %d MiB were taken, and %v", name, used>>20, err)
		}
	}
}

// Entries that claim the same compressed bytes again and again are more than the file can hold:
// 512 MiB out of 384 KiB here.
func TestABombIsRefused(t *testing.T) {
	const cluster = 1 << 16
	b := make(built, 6*cluster)
	copy(b, good(2)[:72])
	b.put32(20, 16)
	b.put64(24, 8192*cluster)
	b.put64(40, cluster)
	b.put64(48, 2*cluster)
	b.put64(cluster, 4*cluster|copiedBit)
	b.put64(2*cluster, 3*cluster)
	for n := range 6 {
		b[3*cluster+2*n+1] = 1
	}
	packed := deflated(make([]byte, cluster))
	copy(b[5*cluster:], packed)
	for n := range 8192 {
		b.put64(4*cluster+8*n, packedBit|5*cluster)
	}
	_, err := Open(bytes.NewReader(b), int64(len(b)))
	if err == nil || !strings.Contains(err.Error(), "no file of 393216 bytes holds as many") {
		t.Errorf("%v", err)
	}
	for n := range 2048 { // 6144 are possible
		b.put64(4*cluster+8*n, 0)
	}
	if i, err := Open(bytes.NewReader(b), int64(len(b))); err != nil || i.Data() != 6144*cluster {
		t.Errorf("%v", err)
	}
}

// FuzzOpen: no file ends the program, takes too much memory, or yields another disk than of its
// size.
func FuzzOpen(f *testing.F) {
	f.Add([]byte(good(2)))
	f.Add([]byte(good(3)))
	z := build(3, zstandard(third()))
	z.put64(72, compressionType)
	z[104] = 1
	f.Add([]byte(z))
	for _, c := range hostile() {
		f.Add([]byte(c.damage(good(3))))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		i, err := Open(bytes.NewReader(raw), int64(len(raw)))
		if err != nil {
			if _, ok := errors.AsType[*Error](err); !ok {
				t.Fatalf("%v is no refusal", err)
			}
			return
		}
		if i.Size() > 1<<24 {
			return
		}
		got, err := disk(raw)
		if err == nil && int64(len(got)) != i.Size() {
			t.Fatalf("%d bytes of %d", len(got), i.Size())
		}
	})
}
