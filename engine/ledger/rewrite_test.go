package ledger

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// replayed is what the appends amount to.
func replayed(appends [][]Fact) map[string]string {
	out := map[string]string{}
	for _, facts := range appends {
		for _, f := range facts {
			if f.Value == nil || string(f.Value) == "null" {
				delete(out, f.Key)
			} else {
				out[f.Key] = string(f.Value)
			}
		}
	}
	return out
}

// shows is what a text holds.
func shows(t testing.TB, x *text) map[string]string {
	t.Helper()
	facts, err := x.facts()
	try(t, err)
	return all(View{index: facts, data: x.data})
}

func TestARewriteKeepsWhatIsLive(t *testing.T) {
	tests := []struct {
		name    string
		appends [][]Fact
		kept    []uint64 // numbers of lines; 1 is the epoch line
	}{
		{"nothing is dead", [][]Fact{{fact("a", "1")}, {fact("b", "1")}}, []uint64{1, 2, 3}},
		{"an old value", [][]Fact{{fact("a", "1")}, {fact("a", "2")}}, []uint64{1, 3}},
		{"a removed key", [][]Fact{{fact("a", "1")}, {gone("a")}, {fact("b", "1")}}, []uint64{1, 4}},
		{"a line that is live by its other fact", [][]Fact{{fact("a", "1"), fact("b", "1")}, {fact("a", "2")}}, []uint64{1, 2, 3}},
		{"a removal of what such a line holds", [][]Fact{{fact("a", "1"), fact("b", "1")}, {gone("a")}}, []uint64{1, 2, 3}},
		{"only the last removal", [][]Fact{{fact("a", "1"), fact("b", "1")}, {gone("a")}, {fact("a", "2")}, {gone("a")}}, []uint64{1, 2, 5}},
		{"a removal that a value followed", [][]Fact{{fact("a", "1"), fact("b", "1")}, {gone("a")}, {fact("a", "2")}}, []uint64{1, 2, 4}},
		{"a removal that keeps another's line",
			[][]Fact{{fact("a", "1"), fact("b", "1")}, {gone("a"), fact("c", "1")}, {gone("c")}}, []uint64{1, 2, 3, 4}},
		{"a key twice in one line", [][]Fact{{fact("a", "1"), gone("a")}, {fact("a", "1"), fact("a", "2")}}, []uint64{1, 3}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			x := made(t, test.appends...)
			y := rewritten(t, x)
			var kept []uint64
			for i, at := range y.lines {
				kept = append(kept, at.seq)
				j, _ := x.find(at.seq)
				if string(y.line(i)) != string(x.line(j)) {
					t.Errorf("line %d was changed", at.seq)
				}
			}
			if diff := cmp.Diff(test.kept, kept); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(shows(t, x), shows(t, y)); diff != "" || y.head() != x.head() {
				t.Errorf("head %v, was %v: %s", y.head(), x.head(), diff)
			}
		})
	}
}

func TestRandomRewritesChangeNothing(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		x := made(t)
		var appends [][]Fact
		for n := range 40 {
			var facts []Fact
			for range 1 + r.IntN(3) {
				f := gone(fmt.Sprint("k", r.IntN(8)))
				if r.IntN(3) > 0 {
					f.Value = []byte(fmt.Sprint(n))
				}
				facts = append(facts, f)
			}
			appends = append(appends, facts)
			x = grown(t, x, facts...)
			if r.IntN(6) == 0 {
				head := x.head()
				if x = rewritten(t, x); x.head() != head || len(x.epochs) != 1 {
					t.Fatalf("seed %d: the head moved", seed)
				}
			}
			if diff := cmp.Diff(replayed(appends), shows(t, x)); diff != "" {
				t.Fatalf("seed %d, append %d: %s", seed, n, diff)
			}
		}
	}
}

func TestDeadLinesGoToHistory(t *testing.T) {
	s := created(t, 2, false)
	l := s.open(t)
	l.limit = 2000
	var appends [][]Fact
	for n := range 400 {
		facts := []Fact{fact(fmt.Sprint("k", n%5), fmt.Sprintf(`{"n":%d,"fill":"%0100d"}`, n, n))}
		appends = append(appends, facts)
		set(t, l, facts...)
		if size := len(s.content(t, s.disks[0])); size > 8000 {
			t.Fatalf("after append %d the file has %d bytes", n, size)
		}
	}
	v := must(t)(s.open(t).Read(t.Context()))
	if diff := cmp.Diff(replayed(appends), all(v)); diff != "" || len(v.Warnings()) > 0 {
		t.Errorf("%s; %v", diff, v.Warnings())
	}
	for _, d := range s.disks {
		names := s.names(t, d)
		if len(names) != 1+keptHistories {
			t.Errorf("%s holds %v", d.at.Directory, names)
		}
	}
	last := uint64(401)
	for e, err := range History(t.Context(), s, s.places()) {
		try(t, err)
		if e.Seq == 1 {
			if e.Members == nil || len(e.Facts) > 0 || e.Epoch != 1 {
				t.Errorf("%+v", e)
			}
			continue
		}
		if last != 401 && e.Seq != last+1 || e.Members != nil {
			t.Fatalf("line %d follows line %d", e.Seq, last)
		}
		last = e.Seq
		checked, _ := checkFacts(appends[e.Seq-2])
		if diff := cmp.Diff(checked, e.Facts); diff != "" {
			t.Fatalf("line %d: %s", e.Seq, diff)
		}
	}
	if last != 401 {
		t.Errorf("the history ends at %d", last)
	}
}

func TestARewriteThatFailsIsAWarning(t *testing.T) {
	for kill := range 8 {
		s := created(t, 2, false)
		l := s.open(t)
		for range 4 {
			set(t, l, fact("a", fmt.Sprintf(`"%0200d"`, kill)))
		}
		l.limit = 100
		s.disks[1].failing(2+kill, errKilled, kill%2 == 0) // after the append and its flush
		v := set(t, l, fact("a", "1"))
		if len(v.Warnings()) != 1 || !warned(v, s.disks[1].at.File(), "was not shortened") {
			t.Fatalf("change %d: warned %v", kill, v.Warnings())
		}
		s.revive()
		v = set(t, l, fact("b", "1"))
		a, err := verify(s.content(t, s.disks[0]), nil)
		try(t, err)
		b, err := verify(s.content(t, s.disks[1]), nil)
		try(t, err)
		if a.Base.Seq == 0 || a.Base.Seq != b.Base.Seq && b.Base.Seq != b.head().Seq || len(v.Warnings()) > 0 {
			t.Errorf("change %d: bases %+v and %+v, warned %v", kill, a.Base, b.Base, v.Warnings())
		}
		if diff := cmp.Diff(map[string]string{"a": "1", "b": "1"}, all(must(t)(s.open(t).Read(t.Context())))); diff != "" {
			t.Errorf("change %d: %s", kill, diff)
		}
	}
}

func TestOneCopyIsRewrittenAfterTheOther(t *testing.T) {
	s := created(t, 2, false)
	l := s.open(t)
	for range 4 {
		set(t, l, fact("a", fmt.Sprintf(`"%0200d"`, 0)))
	}
	l.limit = 100
	s.disks[0].failing(2, errKilled, false) // after the append and its flush
	if v := set(t, l, fact("a", "1")); !warned(v, s.disks[0].at.File(), "was not shortened") {
		t.Fatalf("warned %v", v.Warnings())
	}
	b, err := verify(s.content(t, s.disks[1]), nil)
	try(t, err)
	if b.Base.Seq != 0 {
		t.Errorf("the other copy was rewritten as well, at seq %d, though the first could not be", b.Base.Seq)
	}
}

func TestHistoryIsOfAllMembersAndSaysWhatItCannotRead(t *testing.T) {
	s := created(t, 2, false)
	l := s.open(t)
	l.limit = 100
	for n := range 20 {
		set(t, l, fact("a", fmt.Sprint(n)))
	}
	whole := seqs(t, s, nil)
	if len(whole) != 21 {
		t.Fatalf("lines %v", whole)
	}
	var name string
	for _, name = range s.names(t, s.disks[1]) {
		if _, ok := historySeq(name); ok {
			break
		}
	}
	s.put(t, s.disks[1].on(name), []byte("rubbish"))
	if got := seqs(t, s, ErrBroken); !slices.Equal(got, whole) {
		t.Errorf("with one file broken, of two: %v", got)
	}
	try(t, s.Remove(s.disks[1].on(name)))
	try(t, s.Remove(s.disks[0].on(name)))
	if got := seqs(t, s, nil); len(got) >= len(whole) || got[len(got)-1] != 21 {
		t.Errorf("without them: %v", got)
	}
	s.disks[0].mounted, s.disks[1].mounted = false, false
	if got := seqs(t, s, ErrAbsent); len(got) > 0 {
		t.Errorf("without any copy: %v", got)
	}
}

// seqs is the numbers in the history, which ends with that kind of error.
func seqs(t *testing.T, s *sled, kind error) []uint64 {
	t.Helper()
	var out []uint64
	var last error
	for e, err := range History(t.Context(), s, s.places()) {
		if last = err; err == nil {
			out = append(out, e.Seq)
		}
	}
	if kind == nil {
		try(t, last)
	} else {
		explains(t, last, kind)
	}
	return out
}

func TestAnIndexThatGrowsIsTheSameAsANewOne(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	x := made(t)
	for n := range 500 {
		f := gone(fmt.Sprint("k", r.IntN(60)))
		if r.IntN(4) > 0 {
			f.Value = []byte(fmt.Sprint(n))
		}
		x = grown(t, x, f, fact("last", fmt.Sprint(n)))
		grownIndex, err := x.facts()
		try(t, err)
		y, err := verify(x.data, nil)
		try(t, err)
		fresh, err := y.facts()
		try(t, err)
		if grownIndex.dead != fresh.dead || !slices.Equal(grownIndex.live, fresh.live) || !maps.Equal(grownIndex.all(), fresh.all()) {
			t.Fatalf("append %d: the indexes differ", n)
		}
		if diff := cmp.Diff(fresh.under("k"), grownIndex.under("k"), cmp.AllowUnexported(keyed{}, place{})); diff != "" {
			t.Fatalf("append %d: what opens with a prefix differs:\n%s", n, diff)
		}
	}
}

// all is every place by its key.
func (x *index) all() map[string]place {
	all := map[string]place{}
	for _, layer := range x.layers {
		for key := range layer {
			if at, ok := x.get(key); ok {
				all[key] = at
			}
		}
	}
	return all
}
