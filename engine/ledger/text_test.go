package ledger

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/host"
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
	if y.head() != x.head() || y.head().Seq != 4 || len(y.lines) != 4 || y.end != endWhole || y.header != x.header {
		t.Errorf("head %v, %d lines, end %d", y.head(), len(y.lines), y.end)
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
	for cut := last.start + 1; cut < last.end; cut++ {
		y, err := verify(bytes.Clone(x.data[:cut]), nil)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if y.head().Seq != 3 || y.end != endTorn || y.rest != int64(cut-last.start) || len(y.data) != last.start {
			t.Fatalf("cut at %d: %v, end %d, %d bytes behind it", cut, y.head(), y.end, y.rest)
		}
	}
}

// A line counts although its newline is lost: its hash proves it.
func TestALineWithoutItsNewlineCounts(t *testing.T) {
	for name, x := range map[string]*text{"a line": sample(t), "an epoch line": made(t)} {
		bare := x.data[:len(x.data)-1]
		for _, data := range [][]byte{bare, append(bytes.Clone(bare), 0), append(bytes.Clone(bare), 'x'), append(bytes.Clone(bare), '\r')} {
			y, err := verify(bytes.Clone(data), nil)
			try(t, err)
			if y.head() != x.head() || y.end != endBare || !bytes.Equal(y.data, x.data) {
				t.Errorf("%s, %q behind it: at %v, end %d", name, data[len(bare):], y.head(), y.end)
			}
		}
	}
}

// Nothing but the beginning of the next line passes for one that was begun.
func TestWhatNoWriterLeavesIsDamage(t *testing.T) {
	x := sample(t)
	next := encodeLine(x.head(), 1, noon, []Fact{fact("a", `{"b":[1,{"c":"]}"}]}`), fact("b", "2")})
	epoch := x.epoch().next(x.epoch().Copies, nil, reason{"test", "test"})
	member := encodeLine(x.head(), 2, noon, []Fact{epoch.fact()})
	ends := func(rest []byte) ending {
		y, err := verify(append(bytes.Clone(x.data), rest...), nil)
		try(t, err)
		if y.head() != x.head() || y.rest != int64(len(rest)) {
			t.Fatalf("%q: at %v, %d bytes behind it", rest, y.head(), y.rest)
		}
		return y.end
	}
	for _, line := range [][]byte{next, member} {
		for cut := 1; cut < len(line)-1; cut++ {
			if got := ends(line[:cut]); got != endTorn {
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
		"a line that was begun, of another seq":   encodeLine(Head{7, x.head().Hash}, 1, noon, nil)[:70],
		"a line that was begun, of another epoch": encodeLine(x.head(), 2, noon, []Fact{fact("instance/2", "1")}),
		"of an earlier epoch":                     encodeLine(x.head(), 0, noon, []Fact{fact("a", "1")})[:100],
		"with a hash that is none":                bytes.Replace(next[:60], next[20:21], []byte("x"), 1),
		"zeros where it was not flushed":          append(bytes.Clone(next[:40]), make([]byte, 60)...),
	}
	damage["a line that was begun, of another epoch"] = damage["a line that was begun, of another epoch"][:130]
	for name, rest := range damage {
		if got := ends(rest); got != endDamaged {
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
			if got := ends(rest); got != endDamaged {
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
	_, err := verify(data, nil)
	if f, ok := errors.AsType[*damage](err); !ok || f.line != 3 || f.last != 5 {
		t.Errorf("%+v", f)
	}
}

func TestAFileThatIsTooLongIsNotReadWhole(t *testing.T) {
	s := created(t, 1, false)
	l := s.open(t)
	set(t, l, fact("a", "1"))
	long := endless{Files: s, size: 3 << 30}
	again, err := unopened(long, s.places())
	try(t, err)
	p, err := again.look(t.Context())
	try(t, err)
	if x := p.best.text; x.end != endDamaged || x.head().Seq != 2 || x.rest < 3<<30-1000 {
		t.Errorf("end %d, at %v, %d bytes behind it", x.end, x.head(), x.rest)
	}
}

// endless shows the state file with zeros behind it.
type endless struct {
	host.Files
	size int64
}

func (e endless) Open(name string, flag int, perm fs.FileMode) (host.File, error) {
	in, err := e.Files.Open(name, flag, perm)
	if err != nil || path.Base(name) != fileName {
		return in, err
	}
	return endlessFile{in, e.size}, nil
}

type endlessFile struct {
	host.File
	size int64
}

func (e endlessFile) Stat() (host.Info, error) {
	info, err := e.File.Stat()
	info.Size = e.size
	return info, err
}

func (e endlessFile) ReadAt(p []byte, at int64) (int, error) {
	if len(p) > maxFile {
		return 0, errors.New("that much is not to be read")
	}
	clear(p)
	_, err := e.File.ReadAt(p, at)
	if err == io.EOF {
		err = nil
	}
	return len(p), err
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
		f, ok := errors.AsType[*damage](err)
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
	kept, left, err := x.split()
	if err != nil {
		t.Fatal(err)
	}
	y, err := verify(x.without(kept, left), nil)
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
