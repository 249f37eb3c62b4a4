package format

import (
	"bytes"
	"slices"
	"testing"
)

// FuzzVerify edits a file in many ways. The fuzzer is given the edits and not the
// file: such inputs are small, and it would spend its time on making large ones so.
func FuzzVerify(f *testing.F) {
	x := sample(f)
	files := [][]byte{x.data, rewritten(f, x).data}
	f.Add([]byte{})
	f.Add([]byte{1, cutThere, 0xff, 0xf0, 0})
	f.Add([]byte{2, setByte, 1, 0, 'x'})
	f.Add([]byte{3, repeatLine, 2, 0, 1, removeBytes, 1, 0, 3, addByte, 0, 0, '{'})
	f.Fuzz(func(t *testing.T, edits []byte) {
		if len(edits) > 1+4*32 {
			return
		}
		data := edited(files, edits)
		for _, known := range []*Text{nil, x} {
			y, err := Verify(bytes.Clone(data), known)
			if err != nil {
				continue
			}
			at := y.lines[0].start // known's header may differ
			if y.End != EndBare && (int64(len(y.data))+y.Rest != int64(len(data)) || !bytes.HasPrefix(data[at:], y.data[at:])) {
				t.Fatal("bytes were lost")
			}
			if _, err := y.Facts(); err != nil {
				continue
			}
			if z, err := Verify(bytes.Clone(y.data), nil); err != nil || z.Head() != y.Head() || z.End != EndComplete {
				t.Fatalf("what was verified is not, the second time: %v", err)
			}
			rewritten(t, y)
		}
	})
}

// Edits: a byte that picks the file and says whether its lines get their hashes
// again, then four for each edit: what, where (two), and a byte.
const (
	setByte = iota
	addByte
	removeBytes
	cutThere
	repeatLine
	kindsOfEdits
)

func edited(files [][]byte, edits []byte) []byte {
	if len(edits) == 0 {
		return files[0]
	}
	how, edits := edits[0], edits[1:]
	data := bytes.Clone(files[int(how>>1)%len(files)])
	for ; len(edits) >= 4; edits = edits[4:] {
		at, with := (int(edits[1])<<8|int(edits[2]))%(len(data)+1), edits[3]
		switch edits[0] % kindsOfEdits {
		case setByte:
			data = append(data[:at], append([]byte{with}, data[min(at+1, len(data)):]...)...)
		case addByte:
			data = slices.Insert(data, at, with)
		case removeBytes:
			data = slices.Delete(data, at, min(at+int(with), len(data)))
		case cutThere:
			data = data[:at]
		case repeatLine:
			lines := bytes.SplitAfter(data, []byte{'\n'})
			from, to := int(edits[1])%len(lines), int(with)%len(lines)
			data = bytes.Join(slices.Insert(lines, to, lines[from]), nil)
		}
	}
	if how&1 == 1 {
		data = rehashed(data)
	}
	return data
}
