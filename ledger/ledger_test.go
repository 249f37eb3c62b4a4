package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
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

func must(t testing.TB) func(View, error) View {
	return func(v View, err error) View {
		t.Helper()
		try(t, err)
		return v
	}
}

// cutOff parts the header from the lines.
func cutOff(data []byte) (head, lines []byte, ok bool) {
	i := strings.IndexByte(string(data), '\n')
	return data[:i], data[i:], i > 0
}

func TestAViewSortsAndSelects(t *testing.T) {
	l := created(t, 1, false).open(t)
	v := set(t, l, fact("b/2", "1"), fact("a", "1"), fact("b/10", "1"), fact("c", "1"), fact("b", "1"))
	var keys []string
	for key := range v.All("b/") {
		keys = append(keys, key)
	}
	if diff := cmp.Diff([]string{"b/10", "b/2"}, keys); diff != "" {
		t.Error(diff)
	}
	for key := range v.All("") {
		if key != "a" {
			t.Errorf("first is %s", key)
		}
		break
	}
	if _, ok := v.Get("b/"); ok {
		t.Error("a prefix is no key")
	}
	if _, ok := v.Get("members"); ok {
		t.Error("the ledger's own key is shown")
	}
	if value, ok := (View{}).Get("a"); ok || value != nil || len(all(View{})) > 0 || (View{}).Seq() != 0 {
		t.Error("the zero view holds something")
	}
}

func TestAViewNeverChanges(t *testing.T) {
	s := created(t, 2, false)
	l := s.open(t)
	var views []View
	var wants []map[string]string
	want := map[string]string{}
	for i := range 40 {
		key := fmt.Sprint("k", i%7)
		f := fact(key, fmt.Sprint(i))
		want[key] = fmt.Sprint(i)
		if i%5 == 4 {
			f = gone(key)
			delete(want, key)
		}
		views, wants = append(views, set(t, l, f)), append(wants, maps.Clone(want))
	}
	for i, v := range views {
		if diff := cmp.Diff(wants[i], all(v)); diff != "" {
			t.Errorf("after append %d: %s", i, diff)
		}
	}
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

func TestOtherHandlesAreFollowed(t *testing.T) {
	s := created(t, 2, false)
	a, b := s.open(t), s.open(t)
	for i := range 10 {
		set(t, a, fact("a", fmt.Sprint(i)))
		if v := set(t, b, fact("b", fmt.Sprint(i))); all(v)["a"] != fmt.Sprint(i) {
			t.Fatalf("round %d: b sees %v", i, all(v))
		}
		if v := must(t)(a.Read(t.Context())); all(v)["b"] != fmt.Sprint(i) {
			t.Fatalf("round %d: a sees %v", i, all(v))
		}
	}
}

func TestAnUnchangedFileIsNotReadAgain(t *testing.T) {
	s := created(t, 2, false)
	l := s.open(t)
	set(t, l, fact("a", "1"))
	opens := 0
	for _, d := range s.disks {
		d.files.Fail(func(op, name string) error {
			if op != "stat" {
				opens++
			}
			return nil
		})
	}
	for range 3 {
		must(t)(l.Read(t.Context()))
	}
	if opens > 0 {
		t.Errorf("%d operations beyond stat", opens)
	}
}

// An inode that was freed is used again, and a file may have the size that
// another had.
func TestAnotherFileUnderTheSameInodeIsRead(t *testing.T) {
	for _, longer := range []bool{false, true} {
		s := created(t, 1, false)
		d := s.disks[0]
		d.inode = 7
		before := s.content(t, d)
		l := s.open(t)
		set(t, l, fact("a", "1"))
		s.put(t, d.at.File(), before)
		set(t, s.open(t), fact("a", "2"))
		if longer {
			set(t, s.open(t), fact("a", "3"))
		}
		v := must(t)(l.Read(t.Context()))
		fresh := must(t)(s.open(t).Read(t.Context()))
		if v.Head() != fresh.Head() {
			t.Errorf("longer %v: an old handle sees %v, a new one %v", longer, v.Head(), fresh.Head())
		}
	}
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

func TestWaitingForTheLockEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := created(t, 1, false)
		l := s.open(t)
		lock, err := s.Lock(t.Context(), s.places().Lock, host.LockExclusive)
		try(t, err)
		defer lock.Unlock()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := l.Read(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("read: %v", err)
		}
		if _, err := l.Update(ctx, always(fact("a", "1"))); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("update: %v", err)
		}
	})
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

func TestTheLockMustNotLieBesideACopy(t *testing.T) {
	s := created(t, 1, false)
	p := s.places()
	p.Lock = s.disks[0].on("ledger.lock")
	if _, err := Open(t.Context(), s, p); err == nil {
		t.Error("opened")
	}
	if err := Create(t.Context(), s, p, "test"); err == nil {
		t.Error("created")
	}
}

func TestTheLockSurvivesAReboot(t *testing.T) {
	s := created(t, 1, false)
	s.powerCut(func(int) int { return 0 })
	p := s.places()
	p.Lock = "/run/sledctl/ledger.lock"
	if _, err := Open(t.Context(), s, p); err != nil {
		t.Error(err)
	}
}

func TestARunThatChangesNothingCanRead(t *testing.T) {
	s := created(t, 2, false)
	set(t, s.open(t), fact("a", "1"))
	s.powerCut(func(int) int { return 0 })
	p := s.places()
	p.Lock = "/run/sledctl/ledger.lock"
	files := host.ReadOnly(filesOnly{files: s}).Files()
	l, err := Open(t.Context(), files, p)
	try(t, err)
	if got := all(must(t)(l.Read(t.Context()))); got["a"] != "1" {
		t.Errorf("got %v", got)
	}
	if _, err := l.Update(t.Context(), always(fact("a", "2"))); !errors.Is(err, host.ErrReadOnly) {
		t.Errorf("update: %v", err)
	}
}

// filesOnly is a host with nothing but files.
type filesOnly struct {
	host.Host
	files host.Files
}

func (h filesOnly) Files() host.Files { return h.files }

func TestAPlaceMayBeNamedTwice(t *testing.T) {
	s := created(t, 1, false)
	p := s.places()
	p.Locations = append([]Location{{Directory: p.Locations[0].Directory + "/"}}, p.Locations...)
	l, err := Open(t.Context(), s, p)
	try(t, err)
	set(t, l, fact("a", "1"))
	s.disks[0].mounted = false
	if _, err := l.Read(t.Context()); !errors.Is(err, ErrNotMounted) {
		t.Errorf("got %v", err)
	}
}

func TestAFailedWriteEndsTheHandle(t *testing.T) {
	for _, op := range []int{0, 1} { // the append, its flush
		s := created(t, 2, false)
		l := s.open(t)
		set(t, l, fact("a", "1"))
		s.disks[1].failing(op, errors.New("bad disk"), false)
		_, err := l.Update(t.Context(), always(fact("a", "2")))
		w, ok := errors.AsType[*WriteError](err)
		if !ok || !w.Unknown || !errors.Is(err, ErrDead) || !strings.Contains(err.Error(), "bad disk") {
			t.Errorf("change %d: %v", op, err)
		}
		s.revive()
		if _, err := l.Read(t.Context()); !errors.Is(err, ErrDead) {
			t.Errorf("read: %v", err)
		}
		if _, err := l.Update(t.Context(), always(fact("a", "3"))); !errors.Is(err, ErrDead) {
			t.Errorf("update: %v", err)
		}
		v := set(t, s.open(t), fact("b", "1"))
		if a := all(v)["a"]; a != "2" {
			t.Errorf("change %d: a is %s: one copy holds 2, which is rolled forward", op, a)
		}
	}
}

// What a writer that was killed left on one copy is not shown, but whoever is
// to decide something by it is told: it will count.
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
	if a := value(s.open(t).Read(t.Context())); a != "1" {
		t.Errorf("read: a is %s, which only one copy holds", a)
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

func TestFindLooksAtNamesOnly(t *testing.T) {
	f := host.Memory()
	if got := Find(f, ""); len(got) != 0 {
		t.Errorf("on an empty sled: %v", got)
	}
	for _, dir := range []string{"/pool/int/bbb/config/sledctl", "/pool/int/aaa", "/pool/ext/ccc/config/sledctl"} {
		try(t, host.MkdirAll(f, dir, 0o755))
	}
	want := []Location{
		{Directory: "/var/lib/sledctl"},
		{Directory: "/pool/int/aaa/config/sledctl", Pool: "aaa"},
		{Directory: "/pool/int/bbb/config/sledctl", Pool: "bbb"},
	}
	if diff := cmp.Diff(want, Find(f, "/var/lib/sledctl/")); diff != "" {
		t.Error(diff)
	}
	if got := want[1].File(); got != "/pool/int/aaa/config/sledctl/ledger.jsonl" {
		t.Error(got)
	}
}

// hint is what an error says would be right.
func hint(err error) string {
	if h, ok := errors.AsType[interface {
		error
		Hint() string
	}](err); ok {
		return h.Hint()
	}
	return ""
}

// explains checks that a refusal is of a kind, names what it must, and hints.
func explains(t *testing.T, err, kind error, names ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("got %v, not %v", err, kind)
	}
	for _, name := range names {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%q does not name %s", err, name)
		}
	}
	if hint(err) == "" {
		t.Errorf("%q says not what would be right", err)
	}
}

func warned(v View, words ...string) bool {
	return slices.ContainsFunc(v.Warnings(), func(w string) bool {
		return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(w, word) })
	})
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
// way at the same time: one after the other, the first would wait for ever.
func TestAnAppendCostsTwoFlushesSideBySide(t *testing.T) {
	s := created(t, 2, false)
	m := &meeting{Files: s, met: make(chan struct{}), flushes: 2} // nobody waits yet
	close(m.met)
	l, err := Open(t.Context(), m, s.places())
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
