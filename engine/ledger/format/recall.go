package format

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// What a text's lines hold, and where, follows from its bytes alone. So it may be kept
// next to them, and be recalled where the same bytes are read again: two checksums of
// them, of 64 bits together, cost a tenth of the hashes of the lines and of the search
// for the ends of their values. What is kept says nothing that the text does not.

// openKept begins what Keep makes; the number is that of its layout.
const openKept = "sledctl ledger index 1\n"

// Kept is how much of the text what is kept of it covers, in bytes of its file.
func (t *Text) Kept() int { return int(t.kept.Load()) }

// Keep is the text's lines and index, for Recall.
func (t *Text) Keep() ([]byte, error) {
	x, err := t.indexed()
	if err != nil {
		return nil, err
	}
	x = x.flat(t.data) // those who add a little to it join no layers
	var w keeping
	w.data = append(w.data, openKept...)
	w.data = append(w.data, t.likeness()...)
	w.number(t.lines[0].start, len(t.data))
	w.sums(t.data[t.lines[0].start:])
	w.number(len(t.lines), x.dead, len(t.Epochs), len(x.layers))
	for i, l := range t.lines {
		w.number(l.end, int(x.live[i]))
		w.data = binary.LittleEndian.AppendUint64(w.data, l.seq)
	}
	for _, e := range t.Epochs {
		i, _ := t.find(e.Seq)
		w.number(i)
	}
	for _, layer := range x.layers {
		w.number(len(layer.places), len(layer.slots))
		for _, p := range layer.places {
			w.number(p.start, int(p.length), int(p.key), int(p.line))
		}
		for _, s := range layer.slots {
			w.number(int(s.hash), int(s.n))
		}
	}
	w.number(int(checksum(w.data)))
	t.kept.Store(int64(len(t.data)))
	return w.data, nil
}

// likeness is what the headers of a text's copies have in common.
func (h Header) likeness() string {
	h.Copy = ""
	return Sum(h.encode())
}

// Recall is Verify for data that opens with the bytes of a text of which that was kept;
// else nil. What follows them is verified as ever.
func Recall(data, kept []byte) *Text {
	h, at, err := CutHeader(data)
	if err != nil {
		return nil
	}
	r := recalling{data: kept, ok: len(kept) > 4 && len(kept)%4 == (len(openKept)+hashLen)%4}
	if !r.ok || !r.next(openKept) || !r.next(h.likeness()) || binary.LittleEndian.Uint32(kept[len(kept)-4:]) != checksum(kept[:len(kept)-4]) {
		return nil
	}
	start, end := r.number(), r.number()
	if start != at || end <= start || end > len(data) || !r.sums(data[start:end]) {
		return nil
	}
	t := &Text{Header: h, body: &body{data: data[:end]}}
	x := r.index(t, start)
	if !r.ok || len(r.data) != 4 || len(t.Epochs) == 0 {
		return nil
	}
	t.kept.Store(int64(end))
	if end == len(data) {
		t.index.Store(x)
		return t
	}
	t.before = x
	if err := t.follow(data, end, nil); err != nil {
		return nil // Verify says what is wrong
	}
	return t
}

// index reads the lines of t, which begin at start, and its index.
func (r *recalling) index(t *Text, start int) *index {
	lines, dead, epochs, layers := r.number(), r.number(), r.number(), r.number()
	x := &index{dead: dead, live: make([]int32, 0, r.fits(lines, 16)), keys: newKeys()}
	t.lines = make([]span, 0, cap(x.live))
	for range cap(x.live) {
		end, live := r.number(), r.number()
		r.expect(end > start && end < len(t.data))
		t.lines = append(t.lines, span{start, end, r.long()})
		x.live, start = append(x.live, int32(live)), end+1
	}
	r.expect(start == len(t.data) && lines > 0)
	for range r.fits(epochs, 4) {
		i := r.number()
		if r.expect(i < len(t.lines)); !r.ok {
			return nil
		}
		f, _ := cutLine(t.Line(i))
		e, err := cutEpoch(f)
		r.expect(err == nil)
		t.Epochs = append(t.Epochs, e)
	}
	for range r.fits(layers, 8) {
		x.layers = append(x.layers, r.table(t))
	}
	return x
}

func (r *recalling) table(t *Text) table {
	n, slots := r.number(), r.number()
	read := table{places: make([]place, r.fits(n, 16))}
	from, size := r.data, len(t.data)
	right := true
	for i := range read.places { // number by number they would be most of what a command does that finds nothing to do
		at := from[16*i : 16*i+16]
		p := place{int(uint32At(at, 0)), int32(uint32At(at, 4)), int32(uint32At(at, 8)), int32(uint32At(at, 12))}
		key := p.start - len(openValue) - int(p.key)
		right = right && key >= 0 && p.length >= 0 && p.key >= 0 && p.start+int(p.length) <= size && uint32(p.line) < uint32(len(t.lines))
		read.places[i] = p
	}
	r.skip(16 * len(read.places))
	r.expect(right && slots&(slots-1) == 0 && slots >= 2*n)
	read.slots = make([]slot, r.fits(slots, 8))
	from = r.data
	for i := range read.slots {
		at := from[8*i : 8*i+8]
		s := slot{uint32At(at, 0), uint32At(at, 4)}
		if right = right && int(s.n) <= n; s.n > 0 {
			slots -= 2
		}
		read.slots[i] = s
	}
	r.skip(8 * len(read.slots))
	r.expect(right)
	r.expect(slots >= 0) // half of them are free: a search ends
	return read
}

// keeping writes what is kept.
type keeping struct{ data []byte }

// number writes numbers that fit into 32 bits: no text is longer.
func (w *keeping) number(all ...int) {
	for _, n := range all {
		w.data = binary.LittleEndian.AppendUint32(w.data, uint32(n))
	}
}

func (w *keeping) sums(data []byte) {
	w.number(int(checksum(data)), int(crc32.ChecksumIEEE(data)))
}

// recalling reads it. Once something is not as expected it finds nothing more.
type recalling struct {
	data []byte
	ok   bool
}

func (r *recalling) expect(ok bool) { r.ok = r.ok && ok }

func (r *recalling) next(what string) bool {
	rest, ok := bytes.CutPrefix(r.data, []byte(what))
	r.data = rest
	return ok
}

func (r *recalling) number() int {
	if len(r.data) < 4 {
		r.ok = false
		return 0
	}
	n := binary.LittleEndian.Uint32(r.data)
	r.data = r.data[4:]
	return int(n)
}

func uint32At(data []byte, at int) uint32 { return binary.LittleEndian.Uint32(data[at:]) }

// skip passes over n bytes that were read.
func (r *recalling) skip(n int) { r.data = r.data[n:] }

func (r *recalling) long() uint64 {
	low := r.number()
	return uint64(low) | uint64(r.number())<<32
}

// fits is n if as many things of that size may follow, else 0.
func (r *recalling) fits(n, size int) int {
	if r.expect(n*size <= len(r.data)); !r.ok {
		return 0
	}
	return n
}

// sums says whether data has the checksums that follow. Each has a divisor of its own, so
// that both together miss no more than one of 64 bits would.
func (r *recalling) sums(data []byte) bool {
	one, other := r.number(), r.number()
	return one == int(checksum(data)) && other == int(crc32.ChecksumIEEE(data))
}

func checksum(data []byte) uint32 { return crc32.Checksum(data, newKeys()) }

// newKeys is the polynomial of the checksum that hashes keys too: what is kept is another
// process's.
func newKeys() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }
