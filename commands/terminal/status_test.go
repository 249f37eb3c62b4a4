package terminal

import (
	"sync"
	"testing"
)

func TestStatusIsErasedAndRewritten(t *testing.T) {
	s, _, stderr := Buffers(Pretended{Terminal: true, Width: 10, Environ: []string{"TERM=xterm"}})
	status := NewStatus(s.Err)
	status.Set("one")
	status.Set("one")
	status.Set("a\x1bb and much longer\nline two")
	if err := status.Println("said"); err != nil {
		t.Error(err)
	}
	status.Clear()
	status.Clear()
	if err := status.Println("more"); err != nil {
		t.Error(err)
	}
	const two, above = "a?b and …\nline two", "\x1b[1A\x1b[K"
	want := "\r\x1b[Kone" + "\r\x1b[K" + two + "\r\x1b[K" + above + "said\n" + two + "\r\x1b[K" + above + "more\n"
	if got := stderr.String(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestStatusShowsOnlyWhereItCanBeErased(t *testing.T) {
	for name, p := range map[string]Pretended{
		"a pipe": {Environ: []string{"TERM=xterm"}}, "a dumb terminal": {Terminal: true, Environ: []string{"TERM=dumb"}},
	} {
		s, _, stderr := Buffers(p)
		status := NewStatus(s.Err)
		status.Set("one")
		if err := status.Println("said"); err != nil {
			t.Error(err)
		}
		status.Clear()
		if got := stderr.String(); got != "said\n" {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func TestStatusIsSafeForManyActions(t *testing.T) {
	s, _, _ := Buffers(Pretended{Terminal: true, Environ: []string{"TERM=xterm"}})
	status := NewStatus(s.Err)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				status.Set("busy")
				_ = status.Println("line")
				status.Clear()
			}
		})
	}
	all.Wait()
}
