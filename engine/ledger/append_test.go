package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
)

func TestFactsAreKeptOnEveryCopy(t *testing.T) {
	s := created(t, 2, false)
	l := s.open(t)
	set(t, l, fact("b", "2"), fact("a", "1"))
	v := set(t, l, fact("a/1", `{"x": 1}`), gone("b"), gone("never"))
	want := map[string]string{"a": "1", "a/1": `{"x":1}`}
	for i, view := range []View{v, must(t)(l.Read(t.Context())), must(t)(s.open(t).Read(t.Context()))} {
		if diff := cmp.Diff(want, all(view)); diff != "" {
			t.Errorf("view %d: %s", i, diff)
		}
		if view.Seq() != 3 || len(view.Warnings()) != 0 || len(view.Members()) != 2 {
			t.Errorf("view %d: %d, %v, %v", i, view.Seq(), view.Warnings(), view.Members())
		}
	}
	a, b := s.content(t, s.disks[0]), s.content(t, s.disks[1])
	_, a, _ = cutOff(a)
	_, b, _ = cutOff(b)
	if diff := cmp.Diff(string(a), string(b)); diff != "" {
		t.Errorf("behind the headers, the copies differ: %s", diff)
	}
}

// cutOff parts the header from the lines.
func cutOff(data []byte) (head, lines []byte, ok bool) {
	i := strings.IndexByte(string(data), '\n')
	return data[:i], data[i:], i > 0
}

func TestNothingIsWrittenWithoutFacts(t *testing.T) {
	s := created(t, 2, false)
	l := s.open(t)
	set(t, l, fact("a", "1"))
	before := s.content(t, s.disks[0])
	no := errors.New("no")
	for name, decide := range map[string]func(View) ([]Fact, error){
		"no facts":  always(),
		"refused":   func(View) ([]Fact, error) { return []Fact{fact("a", "2")}, no },
		"bad facts": always(fact("a", "2"), fact("b", "{")),
	} {
		v, err := l.Update(t.Context(), decide)
		if (err == nil) != (name == "no facts") || name == "refused" && !errors.Is(err, no) {
			t.Errorf("%s: %v", name, err)
		}
		if v.Seq() != 2 || string(s.content(t, s.disks[0])) != string(before) {
			t.Errorf("%s: something was written", name)
		}
	}
	set(t, l, fact("a", "3"))
}

func TestWritersTakeTurns(t *testing.T) {
	s := created(t, 2, false)
	const writers, rounds = 8, 20
	shared := s.open(t)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			l := shared
			if w%2 == 0 {
				l = s.open(t)
			}
			for range rounds {
				if _, err := l.Update(t.Context(), increment); err != nil {
					t.Error(err)
				}
				if _, err := l.Read(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got, _ := must(t)(s.open(t).Read(t.Context())).Get("n"); string(got) != fmt.Sprint(writers*rounds) {
		t.Errorf("n is %s", got)
	}
}

// increment adds one to n.
func increment(v View) ([]Fact, error) {
	var n int
	if value, ok := v.Get("n"); ok {
		if err := json.Unmarshal(value, &n); err != nil {
			return nil, err
		}
	}
	return []Fact{fact("n", fmt.Sprint(n+1))}, nil
}

func TestTheTimeIsThatOfTheAppend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := created(t, 1, false)
		l := s.open(t)
		time.Sleep(time.Hour)
		set(t, l, fact("a", "1"))
		var times []time.Time
		for e, err := range History(t.Context(), s, s.places()) {
			try(t, err)
			times = append(times, e.Time)
		}
		if len(times) != 2 || times[1].Sub(times[0]) != time.Hour {
			t.Errorf("times %v", times)
		}
	})
}

func TestAFailedWriteEndsTheHandle(t *testing.T) {
	for _, op := range []int{0, 1} { // the append, its flush
		s := created(t, 2, false)
		l := s.open(t)
		set(t, l, fact("a", "1"))
		s.disks[1].failing(op, errors.New("bad disk"), false)
		_, err := l.Update(t.Context(), always(fact("a", "2")))
		w, ok := errors.AsType[*WriteError](err)
		if !ok || !w.Unknown || !errors.Is(err, ErrWriteFailed) || !strings.Contains(err.Error(), "bad disk") {
			t.Errorf("change %d: %v", op, err)
		}
		s.revive()
		if _, err := l.Read(t.Context()); !errors.Is(err, ErrWriteFailed) {
			t.Errorf("read: %v", err)
		}
		if _, err := l.Update(t.Context(), always(fact("a", "3"))); !errors.Is(err, ErrWriteFailed) {
			t.Errorf("update: %v", err)
		}
		v := set(t, s.open(t), fact("b", "1"))
		if a := all(v)["a"]; a != "2" {
			t.Errorf("change %d: a is %s: one copy holds 2, which is rolled forward", op, a)
		}
	}
}

// What a writer that was killed left on one copy may not have been acknowledged,
// and is shown so. A process that decides something by it settles it: it will count.
func TestWhatIsSettledStaysSo(t *testing.T) {
	s := created(t, 2, false)
	l := s.open(t)
	set(t, l, fact("a", "1"))
	s.disks[1].failing(0, errors.New("killed"), false)
	if _, err := l.Update(t.Context(), always(fact("a", "2"))); err == nil {
		t.Fatal("the write succeeded")
	}
	s.revive()
	value := func(v View, err error) string { return all(must(t)(v, err))["a"] }
	if v := must(t)(s.open(t).Read(t.Context())); all(v)["a"] != "2" || !warned(v, "unconfirmed: seq 3 is not on ", "pool1") {
		t.Errorf("read: %v, warned %v", all(v), v.Warnings())
	}
	if a := value(s.open(t).Settled(t.Context())); a != "2" {
		t.Errorf("settled: a is %s", a)
	}
	if a := value(s.open(t).Read(t.Context())); a != "2" {
		t.Errorf("read again: a is %s", a)
	}
	before := s.content(t, s.disks[0])
	if a := value(s.open(t).Settled(t.Context())); a != "2" || string(before) != string(s.content(t, s.disks[0])) {
		t.Errorf("settled again: a is %s, or something was written", a)
	}
}

// meeting is a file system whose flushes wait for each other.
type meeting struct {
	host.Files
	mu      sync.Mutex
	flushes int
	met     chan struct{}
}

func (m *meeting) Sync(name string) error {
	m.mu.Lock()
	m.flushes++
	if m.flushes == 2 {
		close(m.met)
	}
	m.mu.Unlock()
	<-m.met
	return m.Files.Sync(name)
}

// An append costs one write and one flush per copy, and the flushes are under
// way at the same time: one after the other, the first would wait forever.
func TestAnAppendCostsTwoFlushesSideBySide(t *testing.T) {
	s := created(t, 2, false)
	m := &meeting{Files: s, met: make(chan struct{}), flushes: 2} // nobody waits yet
	close(m.met)
	l, _, err := Open(t.Context(), m, s.places())
	try(t, err)
	set(t, l, fact("a", "1"))
	m.flushes, m.met = 0, make(chan struct{})
	changes := map[string]int{}
	for _, d := range s.disks {
		d.note = func(op string) { m.mu.Lock(); changes[op]++; m.mu.Unlock() }
	}
	set(t, l, fact("a", "2"))
	if diff := cmp.Diff(map[string]int{"append": 2, "sync": 2}, changes); diff != "" {
		t.Error(diff)
	}
}
