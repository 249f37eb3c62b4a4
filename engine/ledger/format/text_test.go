package format

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
)

// sample is a file with three appends.
func sample(t testing.TB) *Text {
	return made(t,
		[]Fact{fact("instance/1", `{"name":"web1","nics":["a","b"]}`), fact("address/fd00::1", `"instance/1"`)},
		[]Fact{fact("instance/2", `{"name":"web2"}`)},
		[]Fact{gone("address/fd00::1")},
	)
}

func TestVerifyReadsWhatWasWritten(t *testing.T) {
	x := sample(t)
	y, err := Verify(bytes.Clone(x.data), nil)
	if err != nil {
		t.Fatal(err)
	}
	if y.Head() != x.Head() || y.Head().Seq != 4 || len(y.lines) != 4 || y.End != EndComplete || y.Header != x.Header {
		t.Errorf("head %v, %d lines, end %d", y.Head(), len(y.lines), y.End)
	}
	if e := y.Epoch(); e.N != 1 || e.Seq != 1 || len(e.Copies) != 2 || e.Who != "test" || !e.Time.Equal(noon) {
		t.Errorf("epoch %+v", e)
	}
	z, err := Verify(x.As("other"), y)
	if err != nil || z.Head() != x.Head() || z.Copy != "other" {
		t.Errorf("next to a known text: %v", err)
	}
}

func TestATornLastLineIsIgnored(t *testing.T) {
	x := sample(t)
	last := x.lines[3]
	for cut := last.start + 1; cut < last.end; cut++ {
		y, err := Verify(bytes.Clone(x.data[:cut]), nil)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if y.Head().Seq != 3 || y.End != EndTorn || y.Rest != int64(cut-last.start) || len(y.data) != last.start {
			t.Fatalf("cut at %d: %v, end %d, %d bytes behind it", cut, y.Head(), y.End, y.Rest)
		}
	}
}

// A line counts although its newline is lost: its hash proves it.
func TestALineWithoutItsNewlineCounts(t *testing.T) {
	for name, x := range map[string]*Text{"a line": sample(t), "an epoch line": made(t)} {
		bare := x.data[:len(x.data)-1]
		for _, data := range [][]byte{bare, append(bytes.Clone(bare), 0), append(bytes.Clone(bare), 'x'), append(bytes.Clone(bare), '\r')} {
			y, err := Verify(bytes.Clone(data), nil)
			try(t, err)
			if y.Head() != x.Head() || y.End != EndBare || !bytes.Equal(y.data, x.data) {
				t.Errorf("%s, %q behind it: at %v, end %d", name, data[len(bare):], y.Head(), y.End)
			}
		}
	}
}

// Nothing but the beginning of the next line passes for one that was begun.
func TestWhatNoWriterLeavesIsDamage(t *testing.T) {
	x := sample(t)
	next := EncodeLine(x.Head(), 1, noon, []Fact{fact("a", `{"b":[1,{"c":"]}"}]}`), fact("b", "2")})
	epoch := x.Epoch().Next(x.Epoch().Copies, nil, "test", "test")
	member := EncodeLine(x.Head(), 2, noon, []Fact{epoch.Fact()})
	ends := func(rest []byte) Ending {
		y, err := Verify(append(bytes.Clone(x.data), rest...), nil)
		try(t, err)
		if y.Head() != x.Head() || y.Rest != int64(len(rest)) {
			t.Fatalf("%q: at %v, %d bytes behind it", rest, y.Head(), y.Rest)
		}
		return y.End
	}
	for _, line := range [][]byte{next, member} {
		for cut := 1; cut < len(line)-1; cut++ {
			if got := ends(line[:cut]); got != EndTorn {
				t.Errorf("%q is %d, not torn", line[:cut], got)
			}
		}
	}
	flipped := bytes.Clone(next)
	flipped[len(flipped)-5] ^= 1
	damage := map[string][]byte{
		"a whole line with a changed byte":        flipped,
		"the same, and its newline lost":          flipped[:len(flipped)-1],
		"a newline":                               {'\n'},
		"a zero":                                  {0},
		"garbage":                                 []byte("garbage\nof two lines\n"),
		"a line that was begun, and a newline":    append(bytes.Clone(next[:90]), '\n'),
		"a line that was begun, and zeros":        append(bytes.Clone(next[:90]), 0, 0),
		"a line that was begun, of another seq":   EncodeLine(Head{7, x.Head().Hash}, 1, noon, nil)[:70],
		"a line that was begun, of another epoch": EncodeLine(x.Head(), 2, noon, []Fact{fact("instance/2", "1")}),
		"of an earlier epoch":                     EncodeLine(x.Head(), 0, noon, []Fact{fact("a", "1")})[:100],
		"with a hash that is none":                bytes.Replace(next[:60], next[20:21], []byte("x"), 1),
		"zeros where it was not flushed":          append(bytes.Clone(next[:40]), make([]byte, 60)...),
	}
	damage["a line that was begun, of another epoch"] = damage["a line that was begun, of another epoch"][:130]
	for name, rest := range damage {
		if got := ends(rest); got != EndDamaged {
			t.Errorf("%s: %d, not damaged", name, got)
		}
	}
	if testing.Short() {
		return
	}
	for at := range len(next) - 1 { // a changed byte of it is never torn
		for _, to := range []byte{0, '\n', '"', '1', next[at] ^ 1} {
			rest := bytes.Clone(next)
			if rest[at] == to {
				continue
			}
			rest[at] = to
			if got := ends(rest); got != EndDamaged {
				t.Errorf("byte %d made %q: %d", at, to, got)
			}
		}
	}
}

// What is left of lines behind a break proves how far the file went.
func TestABrokenFileIsReadOn(t *testing.T) {
	x := grown(t, sample(t), fact("b", "1"))
	data := bytes.Clone(x.data)
	data[x.lines[1].start+80] ^= 1
	_, err := Verify(data, nil)
	if f, ok := errors.AsType[*Damage](err); !ok || f.Line != 3 || f.Last != 5 {
		t.Errorf("%+v", f)
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
			for _, known := range []*Text{nil, x} {
				if y, err := Verify(bytes.Clone(data), known); err == nil {
					t.Fatalf("byte %d made %q: read up to %v", at, to, y.Head())
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
		for _, known := range []*Text{nil, x} {
			if y, err := Verify(data, known); err == nil {
				t.Fatalf("byte %d: read up to %v", at, y.Head())
			}
		}
	}
	if y, err := Verify(bytes.Clone(x.data), x); err != nil || y.Head() != x.Head() {
		t.Errorf("unchanged: %v", err)
	}
}

func TestTwoBadLinesAreNoTornEnd(t *testing.T) {
	x := sample(t)
	data := bytes.Clone(x.data)
	data[x.lines[2].start+20] ^= 1
	data[x.lines[3].start] = 'x'
	if y, err := Verify(data, nil); err == nil {
		t.Errorf("read up to %v", y.Head())
	}
}

func TestBrokenFilesAreNamedByLineAndReason(t *testing.T) {
	x := sample(t)
	other := made(t, []Fact{fact("a", "1")})
	lines := bytes.SplitAfter(bytes.Clone(x.data), []byte{'\n'})
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	newer := x.Header
	newer.Format = 2
	tests := []struct {
		name string
		data []byte
		line int
		says string
	}{
		{"empty", nil, 1, "empty"},
		{"no ledger", []byte("hello\n"), 1, "no header"},
		{"a newer format", join(newer.encode(), x.data[x.lines[0].start:]), 1, "format 2"},
		{"header only", lines[0], 2, "no line says which copies count"},
		{"no epoch line", join(lines[0], lines[2]), 2, "no line says"},
		{"a line lost", join(lines[0], lines[1], lines[3], lines[4]), 3, "not the last"},
		{"two lines exchanged", join(lines[0], lines[1], lines[3], lines[2], lines[4]), 3, "not the last"},
		{"a line twice", join(lines[0], lines[1], lines[2], lines[2], lines[3]), 4, "not the last"},
		{"another ledger's lines", join(lines[0], other.data[other.lines[0].start:]), 2, "not the last"},
	}
	for _, test := range tests {
		_, err := Verify(test.data, nil)
		f, ok := errors.AsType[*Damage](err)
		if !ok || f.Line != test.line || !strings.Contains(f.Reason, test.says) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestEpochsFollowOneAnother(t *testing.T) {
	x := sample(t)
	line := func(epoch uint64, facts ...Fact) error {
		_, err := sample(t).extendAs(x, EncodeLine(x.Head(), epoch, noon, facts))
		return err
	}
	e := x.Epoch()
	tests := map[string]struct {
		err  error
		good bool
	}{
		"the next":           {line(2, e.Next(e.Copies, nil, "", "").Fact()), true},
		"a fact of this one": {line(1, fact("a", "1")), true},
		"a fact of the next": {line(2, fact("a", "1")), false},
		"the same number":    {line(1, e.Fact()), false},
		"a later one":        {line(3, e.Next(e.Copies, nil, "", "").Next(e.Copies, nil, "", "").Fact()), true},
		"without members":    {line(2, e.Next(nil, nil, "", "").Fact()), false},
		"with another fact":  {line(2, e.Next(e.Copies, nil, "", "").Fact(), fact("a", "1")), false},
	}
	for name, test := range tests {
		if (test.err == nil) != test.good {
			t.Errorf("%s: %v", name, test.err)
		}
	}
}

// extendAs extends another text, so that each case has one of its own.
func (t *Text) extendAs(other *Text, line []byte) (*Text, error) {
	*t = Text{Header: other.Header, body: &body{data: bytes.Clone(other.data), lines: slices.Clip(other.lines), Epochs: slices.Clip(other.Epochs)}}
	return t.Extend(line)
}

func TestTwoExtensionsOfOneTextDoNotMeet(t *testing.T) {
	x := sample(t)
	a, b := grown(t, x, fact("a", "1")), grown(t, x, fact("b", "2"))
	if !bytes.Contains(a.Line(4), []byte(`"key":"a"`)) || !bytes.Contains(b.Line(4), []byte(`"key":"b"`)) {
		t.Errorf("a: %s\nb: %s", a.Line(4), b.Line(4))
	}
}

func TestCopiesThatAreAlikeAreKeptOnce(t *testing.T) {
	x := sample(t)
	y, err := Verify(x.As("b0b0b0b0-0000-4000-8000-000000000002"[:len(x.Copy)]), x)
	if err != nil {
		t.Fatal(err)
	}
	line := EncodeLine(x.Head(), x.Epoch().N, noon, []Fact{fact("a", "1")})
	longer, err := x.Extend(line)
	try(t, err)
	other, err := y.Extend(bytes.Clone(line))
	try(t, err)
	behind, err := Verify(bytes.Clone(y.data), longer)
	try(t, err)
	if y.Copy == x.Copy || other.Copy != y.Copy || y.body != x.body || other.body != longer.body || behind.body == longer.body {
		t.Errorf("alike: %v; after the same line: %v; one that is behind: %v", y.body == x.body, other.body == longer.body, behind.body == longer.body)
	}
}

func TestLinesAreFoundByNumberAcrossAGap(t *testing.T) {
	x := rewritten(t, sample(t))
	x = grown(t, x, fact("b", "1"))
	for seq, known := range map[uint64]bool{0: false, 1: true, 2: true, 3: true, 4: true, 5: true, 6: false} {
		if _, ok := x.HashAt(seq); ok != known {
			t.Errorf("line %d: %v", seq, ok)
		}
	}
}

// rewritten is a text without its dead lines.
func rewritten(t testing.TB, x *Text) *Text {
	t.Helper()
	kept, left, err := x.Split()
	if err != nil {
		t.Fatal(err)
	}
	y, err := Verify(x.Without(kept, left), nil)
	if err != nil {
		t.Fatal(err)
	}
	return y
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
			h, _, err := CutHeader(data)
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
		y, err := Verify(bytes.Clone(data), x)
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
