package ledger

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
)

// sample is a file with three appends.
func sample(t testing.TB) *text {
	return made(t,
		[]Fact{fact("instance/1", `{"name":"web1","nics":["a","b"]}`), fact("address/fd00::1", `"instance/1"`)},
		[]Fact{fact("instance/2", `{"name":"web2"}`)},
		[]Fact{gone("address/fd00::1")},
	)
}

func TestVerifyReadsWhatWasWritten(t *testing.T) {
	x := sample(t)
	y, err := verify(bytes.Clone(x.data), nil)
	if err != nil {
		t.Fatal(err)
	}
	if y.head() != x.head() || y.head().Seq != 4 || len(y.lines) != 4 || y.torn != 0 || y.header != x.header {
		t.Errorf("head %v, %d lines, %d torn", y.head(), len(y.lines), y.torn)
	}
	if e := y.epoch(); e.N != 1 || e.Seq != 1 || len(e.Copies) != 2 || e.Who != "test" || !e.Time.Equal(noon) {
		t.Errorf("epoch %+v", e)
	}
	z, err := verify(x.as("other"), y)
	if err != nil || z.head() != x.head() || z.Copy != "other" {
		t.Errorf("beside a known text: %v", err)
	}
}

func TestATornLastLineIsIgnored(t *testing.T) {
	x := sample(t)
	last := x.lines[3]
	for cut := last.start + 1; cut <= last.end; cut++ {
		y, err := verify(bytes.Clone(x.data[:cut]), nil)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if y.head().Seq != 3 || y.torn != cut-last.start || len(y.data) != last.start {
			t.Fatalf("cut at %d: %v, %d torn", cut, y.head(), y.torn)
		}
		zeros := append(bytes.Clone(x.data[:cut]), make([]byte, len(x.data)-cut)...)
		if y, err = verify(zeros, nil); err != nil || y.head().Seq != 3 || y.torn == 0 {
			t.Fatalf("zeros from %d: %v", cut, err)
		}
	}
}

// A byte that changed in the middle must never pass for a torn end: the lines
// behind it were acknowledged.
func TestAChangedByteIsNeverATornEnd(t *testing.T) {
	x := sample(t)
	last := x.lines[3].start
	for at := range last {
		for _, to := range []byte{0, '\n', '"', '1', x.data[at] ^ 1} {
			data := bytes.Clone(x.data)
			if data[at] == to {
				continue
			}
			data[at] = to
			for _, known := range []*text{nil, x} {
				if y, err := verify(bytes.Clone(data), known); err == nil {
					t.Fatalf("byte %d made %q: read up to %v", at, to, y.head())
				}
			}
		}
	}
}

func TestAChangedByteAmongKeptLinesIsFound(t *testing.T) {
	x := rewritten(t, sample(t))
	for at := x.lines[0].start; at < len(x.data); at++ {
		data := bytes.Clone(x.data)
		data[at] ^= 1
		for _, known := range []*text{nil, x} {
			if y, err := verify(data, known); err == nil {
				t.Fatalf("byte %d: read up to %v", at, y.head())
			}
		}
	}
	if y, err := verify(bytes.Clone(x.data), x); err != nil || y.head() != x.head() {
		t.Errorf("unchanged: %v", err)
	}
}

func TestTwoBadLinesAreNoTornEnd(t *testing.T) {
	x := sample(t)
	data := bytes.Clone(x.data)
	data[x.lines[2].start+20] ^= 1
	data[x.lines[3].start] = 'x'
	if y, err := verify(data, nil); err == nil {
		t.Errorf("read up to %v", y.head())
	}
}

func TestBrokenFilesAreNamedByLineAndReason(t *testing.T) {
	x := sample(t)
	other := made(t, []Fact{fact("a", "1")})
	lines := bytes.SplitAfter(bytes.Clone(x.data), []byte{'\n'})
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	newer := x.header
	newer.Format = 2
	tests := []struct {
		name string
		data []byte
		line int
		says string
	}{
		{"empty", nil, 1, "empty"},
		{"not ours", []byte("hello\n"), 1, "no header"},
		{"a newer format", join(newer.encode(), x.data[x.lines[0].start:]), 1, "format 2"},
		{"header only", lines[0], 2, "no line says which copies count"},
		{"no epoch line", join(lines[0], lines[2]), 2, "no line says"},
		{"a line lost", join(lines[0], lines[1], lines[3], lines[4]), 3, "not the last"},
		{"two lines exchanged", join(lines[0], lines[1], lines[3], lines[2], lines[4]), 3, "not the last"},
		{"a line twice", join(lines[0], lines[1], lines[2], lines[2], lines[3]), 4, "not the last"},
		{"another ledger's lines", join(lines[0], other.data[other.lines[0].start:]), 2, "not the last"},
	}
	for _, test := range tests {
		_, err := verify(test.data, nil)
		f, ok := errors.AsType[*fault](err)
		if !ok || f.line != test.line || !strings.Contains(f.reason, test.says) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestEpochsFollowOneAnother(t *testing.T) {
	x := sample(t)
	line := func(epoch uint64, facts ...Fact) error {
		_, err := sample(t).extendAs(x, encodeLine(x.head(), epoch, noon, facts))
		return err
	}
	e := x.epoch()
	tests := map[string]struct {
		err  error
		good bool
	}{
		"the next":           {line(2, e.next(e.Copies, nil, reason{}).fact()), true},
		"a fact of this one": {line(1, fact("a", "1")), true},
		"a fact of the next": {line(2, fact("a", "1")), false},
		"the same number":    {line(1, e.fact()), false},
		"a later one":        {line(3, e.next(e.Copies, nil, reason{}).next(e.Copies, nil, reason{}).fact()), true},
		"without members":    {line(2, e.next(nil, nil, reason{}).fact()), false},
		"with another fact":  {line(2, e.next(e.Copies, nil, reason{}).fact(), fact("a", "1")), false},
	}
	for name, test := range tests {
		if (test.err == nil) != test.good {
			t.Errorf("%s: %v", name, test.err)
		}
	}
}

// extendAs extends another text, so that each case has one of its own.
func (t *text) extendAs(other *text, line []byte) (*text, error) {
	*t = text{header: other.header, body: &body{data: bytes.Clone(other.data), lines: slices.Clip(other.lines), epochs: slices.Clip(other.epochs)}}
	return t.extend(line)
}

func TestTwoExtensionsOfOneTextDoNotMeet(t *testing.T) {
	x := sample(t)
	a, b := grown(t, x, fact("a", "1")), grown(t, x, fact("b", "2"))
	if !bytes.Contains(a.line(4), []byte(`"key":"a"`)) || !bytes.Contains(b.line(4), []byte(`"key":"b"`)) {
		t.Errorf("a: %s\nb: %s", a.line(4), b.line(4))
	}
}

func TestCopiesThatAreAlikeAreKeptOnce(t *testing.T) {
	x := sample(t)
	y, err := verify(x.as("b0b0b0b0-0000-4000-8000-000000000002"[:len(x.Copy)]), x)
	if err != nil {
		t.Fatal(err)
	}
	line := encodeLine(x.head(), x.epoch().N, noon, []Fact{fact("a", "1")})
	longer, err := x.extend(line)
	try(t, err)
	other, err := y.extend(bytes.Clone(line))
	try(t, err)
	behind, err := verify(bytes.Clone(y.data), longer)
	try(t, err)
	if y.Copy == x.Copy || other.Copy != y.Copy || y.body != x.body || other.body != longer.body || behind.body == longer.body {
		t.Errorf("alike: %v; after the same line: %v; one that is behind: %v", y.body == x.body, other.body == longer.body, behind.body == longer.body)
	}
}

func TestLinesAreFoundByNumberAcrossAGap(t *testing.T) {
	x := rewritten(t, sample(t))
	x = grown(t, x, fact("b", "1"))
	for seq, known := range map[uint64]bool{0: false, 1: true, 2: true, 3: true, 4: true, 5: true, 6: false} {
		if _, ok := x.hashAt(seq); ok != known {
			t.Errorf("line %d: %v", seq, ok)
		}
	}
}

// rewritten is a text without its dead lines.
func rewritten(t testing.TB, x *text) *text {
	t.Helper()
	kept, left, err := x.split(0)
	if err != nil {
		t.Fatal(err)
	}
	y, err := verify(x.without(kept, left), nil)
	if err != nil {
		t.Fatal(err)
	}
	return y
}

func FuzzVerify(f *testing.F) {
	x := sample(f)
	f.Add(x.data, true)
	f.Add(x.data[:len(x.data)-5], false)
	f.Add(rewritten(f, x).data, true)
	f.Fuzz(func(t *testing.T, data []byte, hashed bool) {
		if hashed {
			data = rehashed(data)
		}
		for _, known := range []*text{nil, x} {
			y, err := verify(bytes.Clone(data), known)
			if err != nil {
				continue
			}
			at := y.lines[0].start // known's header may differ
			if len(y.data)+y.torn != len(data) || !bytes.HasPrefix(data[at:], y.data[at:]) {
				t.Fatal("bytes were lost")
			}
			if _, err := y.facts(); err != nil {
				continue
			}
			if z, err := verify(bytes.Clone(y.data), nil); err != nil || z.head() != y.head() || z.torn != 0 {
				t.Fatalf("what was verified is not, the second time: %v", err)
			}
			rewritten(t, y)
		}
	})
}

// rehashed is data with the hashes that its lines should have, so that a fuzzer
// gets behind them.
func rehashed(data []byte) []byte {
	data = bytes.Clone(data)
	var prev []byte
	for line := range bytes.Lines(data) {
		line = bytes.TrimSuffix(line, []byte{'\n'})
		if len(line) < hashEnd {
			break
		}
		copy(line[len(openHash):], newChain().hash(prev, line[hashEnd:]))
		if prev == nil {
			h, _, err := cutHeader(data)
			if err != nil {
				break
			}
			prev = []byte(h.Base.Hash)
			continue
		}
		prev = line[len(openHash):hashEnd]
	}
	return data
}

// FuzzRot cuts a good file and changes a byte of it: what is read must be all
// that is left but the end of one append, or nothing.
func FuzzRot(f *testing.F) {
	x := sample(f)
	f.Add(300, byte('\n'), len(x.data))
	f.Add(len(x.data)-1, byte(0), len(x.data)-3)
	f.Fuzz(func(t *testing.T, at int, to byte, size int) {
		data := bytes.Clone(x.data)
		if size >= 0 && size < len(data) {
			data = data[:size]
		}
		if at >= 0 && at < len(data) {
			data[at] = to
		}
		y, err := verify(bytes.Clone(data), x)
		if err != nil {
			return
		}
		if !bytes.HasPrefix(x.data, y.data) {
			t.Fatal("something was read that was never written")
		}
		whole := bytes.Count(x.data[:len(data)], []byte{'\n'}) - 1 // without the header
		if len(y.lines) < whole && len(y.data) != x.lines[whole-1].start {
			t.Fatalf("%d of %d lines were read", len(y.lines), whole)
		}
	})
}

func FuzzCutFact(f *testing.F) {
	f.Add([]byte(`{"key":"a","value":{"b":[1,"\"]"]}},{"key":"c","value":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for rest := data; len(rest) > 0; {
			key, value, more, ok := cutFact(rest)
			if !ok {
				return
			}
			if len(key) == 0 || len(value) == 0 || len(more) >= len(rest) {
				t.Fatalf("%q, %q, %q of %q", key, value, more, rest)
			}
			rest = more
		}
	})
}
