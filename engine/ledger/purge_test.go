package ledger

import (
	"bytes"
	"fmt"
	"testing"
)

// Histories are never written again: one process in a boot reads them.
func TestWhatWasSearchedIsNotSearchedAgainInABoot(t *testing.T) {
	s := created(t, 2, false)
	l := s.open(t)
	l.limit = 0
	for n := range 40 {
		set(t, l, fact("a", fmt.Sprint(n)))
	}
	kept := 0
	each(s, func(d *disk) {
		all, err := histories(s, d.at.Directory)
		try(t, err)
		kept += len(all)
	})
	if kept == 0 {
		t.Fatal("no history was written")
	}
	searched := func(unwanted string) (texts int) {
		l := s.reopened(t)
		try(t, l.Purge(t.Context(), func(data []byte) bool {
			texts++
			return bytes.Contains(data, []byte(unwanted))
		}, func(View) ([]Fact, error) { return nil, nil }))
		set(t, l, fact("b", "1"))
		return texts
	}
	for _, want := range []int{2 + kept, 2, 2} {
		if got := searched("nothing"); got != want {
			t.Errorf("%d texts were searched, want %d", got, want)
		}
	}
	size := 0
	l = s.reopened(t)
	try(t, l.Purge(t.Context(), func(data []byte) bool { size += len(data); return false }, func(View) ([]Fact, error) { return nil, nil }))
	for _, c := range l.seen {
		if all := len(c.text.Data()); size == 0 || size > all/2 {
			t.Errorf("%d bytes were searched, of copies of %d: want the last line of each", size, all)
		}
	}
	s.forgotten()
	if got := searched("nothing"); got != 2+kept {
		t.Errorf("in the next boot %d texts were searched, want %d", got, 2+kept)
	}
}

// What is written after a search is searched by the next process.
func TestWhatIsBehindTheSearchedLinesIsSearched(t *testing.T) {
	s := created(t, 2, false)
	set(t, s.open(t), fact("a", "1"))
	purged := func() (wanted bool) {
		l := s.reopened(t)
		unwanted := func(data []byte) bool { return bytes.Contains(data, []byte("secret")) }
		try(t, l.Purge(t.Context(), unwanted, func(View) ([]Fact, error) { wanted = true; return []Fact{fact("b", "2")}, nil }))
		set(t, l, fact("c", "3"))
		return wanted
	}
	if purged() {
		t.Error("something was found where nothing is")
	}
	set(t, s.reopened(t), fact("b", `"secret"`))
	if !purged() {
		t.Error("what was written since was not found")
	}
	if purged() {
		t.Error("it was found again")
	}
}
