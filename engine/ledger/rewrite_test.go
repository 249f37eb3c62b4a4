package ledger

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/sledctl/sledctl/engine/ledger/format"
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
		checked, _ := format.CheckFacts(appends[e.Seq-2])
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
		a, err := format.Verify(s.content(t, s.disks[0]), nil)
		try(t, err)
		b, err := format.Verify(s.content(t, s.disks[1]), nil)
		try(t, err)
		if a.Base.Seq == 0 || a.Base.Seq != b.Base.Seq && b.Base.Seq != b.Head().Seq || len(v.Warnings()) > 0 {
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
	b, err := format.Verify(s.content(t, s.disks[1]), nil)
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
