package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/hosttest"
)

func must(t testing.TB) func(View, error) View {
	return func(v View, err error) View {
		t.Helper()
		try(t, err)
		return v
	}
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

func TestUnchangedIsOnlySaidOfWhatWasRead(t *testing.T) {
	s := created(t, 2, false)
	l := s.open(t)
	if l.Unchanged(0) {
		t.Error("unchanged, and nothing was read")
	}
	seq := set(t, l, fact("a", "1")).Seq()
	if !l.Unchanged(seq) {
		t.Error("changed, and nothing was written")
	}
	if set(t, l, fact("a", "2")); l.Unchanged(seq) {
		t.Error("unchanged after a line of the same handle")
	}
	seq = must(t)(l.Read(t.Context())).Seq()
	if set(t, s.open(t), fact("a", "3")); l.Unchanged(seq) {
		t.Error("unchanged after a line of another handle")
	}
	seq = must(t)(l.Read(t.Context())).Seq()
	if err := s.Remove(s.disks[1].at.File()); err != nil {
		t.Fatal(err)
	}
	if l.Unchanged(seq) {
		t.Error("unchanged, and a copy is missing")
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
		set(t, s.forgotten().open(t), fact("a", "2"))
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

func TestTheLockMustNotLieBesideACopy(t *testing.T) {
	s := created(t, 1, false)
	p := s.places()
	p.Lock = s.disks[0].on("ledger.lock")
	if _, _, err := Open(t.Context(), s, p); err == nil {
		t.Error("opened")
	}
	if err := Create(t.Context(), s, p, Creation{Who: "test"}); err == nil {
		t.Error("created")
	}
}

func TestTheLockSurvivesAReboot(t *testing.T) {
	s := created(t, 1, false)
	s.powerCut(func(int) int { return 0 })
	p := s.places()
	p.Lock = "/run/sledctl/ledger.lock"
	if _, _, err := Open(t.Context(), s, p); err != nil {
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
	l, _, err := Open(t.Context(), files, p)
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
	l, _, err := Open(t.Context(), s, p)
	try(t, err)
	set(t, l, fact("a", "1"))
	s.disks[0].mounted = false
	if _, err := l.Read(t.Context()); !errors.Is(err, ErrNotMounted) {
		t.Errorf("got %v", err)
	}
}

func TestFindLooksAtNamesOnly(t *testing.T) {
	f := hosttest.Memory()
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

// A process that follows the ledger gets the lines that it has not read, and hears where the
// copy no longer holds all of them.
func TestReadSinceGivesWhatIsNew(t *testing.T) {
	s := created(t, 2, false)
	l, other := s.open(t), s.open(t)
	seq := set(t, l, fact("a", "1")).Seq()
	set(t, other, fact("b", "2"))
	set(t, other, fact("c", "3"))
	view, fresh, all, err := l.ReadSince(t.Context(), seq)
	if err != nil || !all || view.Seq() != seq+2 || len(fresh) != 2 || fresh[0].Seq != seq+1 || fresh[1].Facts[0].Key != "c" {
		t.Fatalf("%+v, all %t, %v", fresh, all, err)
	}
	if _, fresh, all, err = l.ReadSince(t.Context(), view.Seq()); len(fresh) > 0 || !all || err != nil {
		t.Errorf("nothing is new: %+v, all %t, %v", fresh, all, err)
	}
	other.limit = 0 // lines go into the history
	for n := range 40 {
		set(t, other, fact("d", fmt.Sprint(n)))
	}
	if _, _, all, err = l.ReadSince(t.Context(), 0); all || err != nil {
		t.Errorf("lines of the history are given as those of the copy: %v", err)
	}
}
