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
	s.forgotten()
	if got := searched("nothing"); got != 2+kept {
		t.Errorf("in the next boot %d texts were searched, want %d", got, 2+kept)
	}
}
