package format

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// keptOf is a text of some appends, with what is kept of it.
func keptOf(t testing.TB, r *rand.Rand, appends int) (*Text, []byte) {
	t.Helper()
	x := appended(t, made(t), r, appends)
	if r.IntN(2) > 0 {
		x = rewritten(t, x)
		x = appended(t, x, r, r.IntN(3))
	}
	kept, err := x.Keep()
	try(t, err)
	return x, kept
}

func appended(t testing.TB, x *Text, r *rand.Rand, appends int) *Text {
	t.Helper()
	for range appends {
		f := gone(fmt.Sprint("k", r.IntN(9)))
		if r.IntN(4) > 0 {
			f.Value = []byte(fmt.Sprint(r.IntN(1000)))
		}
		x = grown(t, x, f, fact("last", fmt.Sprint(r.IntN(1000))))
		if r.IntN(2) > 0 {
			_, err := x.Facts() // layers of all sizes
			try(t, err)
		}
	}
	return x
}

// same fails unless x is what verifying makes of its file.
func same(t testing.TB, x *Text, file []byte) {
	t.Helper()
	want, err := Verify(bytes.Clone(file), nil)
	try(t, err)
	a, err := x.indexed()
	try(t, err)
	b, err := want.indexed()
	try(t, err)
	if x.Header != want.Header || x.End != want.End || x.Rest != want.Rest || x.Begun != want.Begun || !bytes.Equal(x.data, want.data) ||
		!slices.Equal(x.lines, want.lines) || !sameEpochs(x.Epochs, want.Epochs) || len(x.Epochs) != len(want.Epochs) {
		t.Fatalf("the texts differ: %+v, want %+v", x.Header, want.Header)
	}
	if diff := cmp.Diff(want.Epochs, x.Epochs, cmp.AllowUnexported(Epoch{})); diff != "" {
		t.Fatal(diff)
	}
	if a.dead != b.dead || !slices.Equal(a.live, b.live) || !maps.Equal(a.all(x.data), b.all(want.data)) {
		t.Fatal("the indexes differ")
	}
}

func TestWhatWasKeptIsRecalledWithWhatFollows(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		x, kept := keptOf(t, r, 1+r.IntN(30))
		longer := appended(t, x, r, r.IntN(4))
		file := longer.As(x.Copy)
		if cut := r.IntN(5); cut > 0 && r.IntN(2) > 0 && longer != x {
			file = file[:len(file)-cut] // a torn end, or one without its newline
		}
		y := Recall(bytes.Clone(file), kept)
		if y == nil {
			t.Fatalf("seed %d: not recalled", seed)
		}
		same(t, y, file)
		if y.Kept() != len(x.data) || x.Kept() != len(x.data) {
			t.Errorf("seed %d: %d bytes are kept, want %d", seed, y.Kept(), len(x.data))
		}
		if y.End == EndComplete {
			z := appended(t, y, r, 3)
			same(t, z, z.As(x.Copy))
		}
	}
}

// Another copy of the same ledger has the same lines: its header is its own.
func TestWhatWasKeptOfACopyIsRecalledForTheOthers(t *testing.T) {
	x, kept := keptOf(t, rand.New(rand.NewPCG(1, 1)), 9)
	file := x.As(x.Epochs[0].Copies[1].Copy)
	y := Recall(file, kept)
	if y == nil {
		t.Fatal("not recalled")
	}
	same(t, y, file)
}

func TestWhatWasKeptOfOtherBytesIsNotRecalled(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	x, kept := keptOf(t, r, 20)
	for at := range x.data {
		file := bytes.Clone(x.data)
		file[at] ^= byte(1 + r.IntN(255))
		if Recall(file, kept) != nil {
			t.Fatalf("byte %d: recalled", at)
		}
	}
	for name, file := range map[string][]byte{
		"nothing": nil, "too short": x.data[:len(x.data)-1], "another ledger": made(t).data, "rewritten": rewritten(t, grown(t, x, gone("last"))).data,
	} {
		if Recall(file, kept) != nil {
			t.Errorf("%s: recalled", name)
		}
	}
}

func TestWhatIsNotWhatWasKeptIsNotRecalled(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	x, kept := keptOf(t, r, 20)
	for at := range kept {
		other := bytes.Clone(kept)
		other[at] ^= byte(1 + r.IntN(255))
		if Recall(x.data, other) != nil {
			t.Fatalf("byte %d: recalled", at)
		}
		if Recall(x.data, kept[:at]) != nil {
			t.Fatalf("%d bytes: recalled", at)
		}
	}
}

// What another program writes there with the right checksum is wrong at worst.
func TestWhatIsRecalledNeverEndsTheProcess(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	x, kept := keptOf(t, r, 20)
	body := len(openKept) + hashLen + 4*4
	for range 20_000 {
		other := bytes.Clone(kept)
		for range 1 + r.IntN(3) {
			at := body + 4*r.IntN((len(kept)-body)/4)
			binary.LittleEndian.PutUint32(other[at:], []uint32{0, 1, uint32(r.IntN(64)), uint32(r.IntN(len(x.data))), r.Uint32()}[r.IntN(5)])
		}
		binary.LittleEndian.PutUint32(other[len(other)-4:], checksum(other[:len(other)-4]))
		y := Recall(x.data, other)
		if y == nil {
			continue
		}
		facts, err := y.Facts()
		if err != nil {
			continue
		}
		for range facts.All("") {
		}
		facts.Get("k1")
		facts.Get("none")
		y.Head()
	}
}
