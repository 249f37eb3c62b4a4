package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// degrade opens a ledger that may go on alone.
func (s *sled) degrade(t testing.TB) *Ledger {
	t.Helper()
	l := s.open(t)
	l.Degrade("an operator", "disk pulled")
	return l
}

func TestGoingOnAloneNeedsNoFlagLater(t *testing.T) {
	s := created(t, 2, false)
	set(t, s.open(t), fact("a", "1"))
	s.disks[1].mounted = false
	v := set(t, s.degrade(t), fact("a", "2"))
	if e := v.Epoch(); e.N != 2 || len(e.Copies) != 1 || len(e.Lost) != 1 || e.Lost[0].Pool != "pool1" || e.Who != "an operator" {
		t.Errorf("epoch %+v", e)
	}
	v = set(t, s.open(t), fact("a", "3"))
	if !warned(v, "without copy", "pool1", "an operator", "disk pulled") || v.Seq() != 5 {
		t.Errorf("seq %d, warned %v", v.Seq(), v.Warnings())
	}
	if s.witness.mark.N != 2 || s.witness.mark.Epoch != v.Epoch().ID {
		t.Errorf("witnessed %v", s.witness.mark)
	}
	s.disks[1].mounted = true
	v = set(t, s.open(t), fact("a", "4"))
	if m := v.Members(); len(m) != 1 || !warned(v, "without copy") {
		t.Errorf("the returned copy is a member: %v, %v", m, v.Warnings())
	}
}

func TestDegradeChangesNothingByItself(t *testing.T) {
	s := created(t, 2, false)
	set(t, s.open(t), fact("a", "1"))
	if v := set(t, s.degrade(t), fact("a", "2")); v.Epoch().N != 1 {
		t.Errorf("with all members present: %+v", v.Epoch())
	}
	s.disks[1].mounted = false
	l := s.degrade(t)
	if v := must(t)(l.Update(t.Context(), always())); v.Epoch().N != 1 {
		t.Errorf("with nothing to write: %+v", v.Epoch())
	}
	if _, err := l.Update(t.Context(), always(fact("bad", "{"))); err == nil || must(t)(l.Read(t.Context())).Epoch().N != 1 {
		t.Errorf("with bad facts: %v", err)
	}
}

// The line that its writer did not live to acknowledge may be on the side that
// is gone: when that side returns, it is known for what it is.
func TestADeadTailIsNotUsed(t *testing.T) {
	s := created(t, 2, false)
	set(t, s.open(t), fact("a", "1"))
	l := s.open(t)
	s.disks[1].failing(0, errKilled, false)
	if _, err := l.Update(t.Context(), always(fact("a", "2"))); err == nil {
		t.Fatal("acknowledged")
	}
	s.revive()
	s.disks[0].mounted = false
	set(t, s.degrade(t), fact("b", "1"))
	s.disks[0].mounted = true
	v := set(t, s.open(t), fact("b", "2"))
	if all(v)["a"] != "1" || !warned(v, s.disks[0].at.File(), "never acknowledged") {
		t.Errorf("%v, warned %v", all(v), v.Warnings())
	}
	try(t, s.open(t).Join(t.Context(), []Location{s.disks[0].at}, "test", "again"))
	v = must(t)(s.open(t).Read(t.Context()))
	if len(v.Warnings()) > 0 || len(v.Members()) != 2 {
		t.Errorf("after join: %v, %v", v.Members(), v.Warnings())
	}
}

func TestACopyThatSleptCannotGoOnAlone(t *testing.T) {
	s := created(t, 2, false)
	set(t, s.open(t), fact("a", "1"))
	first, second := s.disks[0], s.disks[1]
	second.mounted = false
	set(t, s.degrade(t), fact("a", "2"))
	first.mounted, second.mounted = false, true
	_, err := s.degrade(t).Update(t.Context(), always(fact("a", "3")))
	explains(t, err, ErrOverruled, second.at.File(), "epoch 2")
	v := must(t)(s.open(t).Read(t.Context()))
	if all(v)["a"] != "1" || !warned(v, "pool0", "missing") {
		t.Errorf("read %v, warned %v", all(v), v.Warnings())
	}
}

func TestAMemberThatIsNoneByItsOwnWordCannotGoOn(t *testing.T) {
	s := created(t, 2, true)
	plain := s.disks[0]
	try(t, s.open(t).Leave(t.Context(), plain.at.Directory, "test", "moved"))
	for _, d := range s.disks[1:] {
		d.mounted = false
	}
	_, err := Open(t.Context(), s, s.places())
	explains(t, err, ErrMissing, "pool0", "pool1", "present: none")
}

// Between the epoch line and the witness a sled may die, and the other side
// may go on: then nothing may follow the line.
func TestNothingFollowsAnEpochLineThatIsOverruled(t *testing.T) {
	s := created(t, 2, false)
	first, second := s.disks[0], s.disks[1]
	set(t, s.open(t), fact("a", "0"))
	second.mounted = false
	s.witness.err = errors.New("pool gone")
	l := s.degrade(t)
	if _, err := l.Update(t.Context(), always(fact("a", "1"))); err == nil || errors.Is(err, ErrDead) {
		t.Fatalf("with an unreadable witness: %v", err)
	}
	s.witness.err = nil
	dead := &deaf{memoryWitness: s.witness}
	p := s.places()
	p.Witness = dead
	l, err := Open(t.Context(), s, p)
	try(t, err)
	l.Degrade("test", "test")
	if _, err := l.Update(t.Context(), always(fact("a", "1"))); err == nil {
		t.Fatal("went on without the witness")
	}
	first.mounted, second.mounted = false, true
	set(t, s.degrade(t), fact("a", "2"))
	first.mounted, second.mounted = true, false
	_, err = s.unread(t).Update(t.Context(), always(fact("a", "3")))
	explains(t, err, ErrOverruled, first.at.File())
	third := newDisk(OnPool("third"), "/pool/int/third/config", 9)
	s.disks = append(s.disks, third)
	try(t, s.ram.Mkdir("/pool/int/third", 0o755))
	err = s.unread(t).Join(t.Context(), []Location{third.at}, "test", "test")
	explains(t, err, ErrOverruled, first.at.File())
	if _, err := s.Stat(third.at.File()); err == nil {
		t.Error("a copy was made")
	}
	_, err = Open(t.Context(), s, s.places())
	explains(t, err, ErrOverruled, first.at.File())
	second.mounted = true
	_, err = Open(t.Context(), s, s.places())
	explains(t, err, ErrForked, first.at.File(), second.at.File(), "both sides")
}

// unread is the ledger as one opens it who changes its members.
func (s *sled) unread(t *testing.T) *Ledger {
	t.Helper()
	l, err := unopened(s, s.places())
	try(t, err)
	return l
}

// A reader behind an epoch line that the witness has not heard of is told that
// others may overrule it, as long as one may: a member of the epoch before is
// away or has not got what is shown. Without a witness that is all that can be
// known.
func TestAReaderIsToldOfAnEpochThatMayBeOverruled(t *testing.T) {
	s := created(t, 2, false)
	set(t, s.open(t), fact("a", "1"))
	mark := *s.witness.mark
	s.disks[1].mounted = false
	l := s.degrade(t)
	l.places.Witness = deaf{s.witness}
	if _, err := l.Update(t.Context(), always(fact("a", "2"))); err == nil {
		t.Fatal("went on without the witness")
	}
	for _, test := range []struct {
		witness      *Mark
		away, doubts bool
	}{{&mark, true, true}, {&mark, false, true}, {nil, true, true}, {nil, false, true}} {
		s.witness.mark, s.disks[1].mounted = test.witness, !test.away
		if v := must(t)(s.open(t).Read(t.Context())); warned(v, "is not confirmed") != test.doubts || all(v)["a"] != "1" {
			t.Errorf("%+v: %v, warned %v", test, all(v), v.Warnings())
		}
	}
	s.witness.mark, s.disks[1].mounted = nil, true
	try(t, s.open(t).Join(t.Context(), []Location{s.disks[1].at}, "test", "again"))
	s.witness.mark = nil
	if v := must(t)(s.open(t).Read(t.Context())); len(v.Warnings()) > 0 {
		t.Errorf("all know of it, and are there: %v", v.Warnings())
	}
}

// deaf is a witness that cannot be told anything.
type deaf struct{ *memoryWitness }

func (deaf) Write(_ context.Context, _ Mark) error { return errors.New("deaf") }

func TestWithoutAWitnessGoingOnAloneSaysSo(t *testing.T) {
	s := created(t, 2, false)
	set(t, s.open(t), fact("a", "1"))
	p := s.places()
	p.Witness = nil
	s.disks[1].mounted = false
	l, err := Open(t.Context(), s, p)
	try(t, err)
	l.Degrade("test", "test")
	if v := set(t, l, fact("a", "2")); !warned(v, "nobody could say") {
		t.Errorf("warned %v", v.Warnings())
	}
	s.witness.mark = nil
	s.disks[1].mounted = true
	s.disks[0].mounted = false
	if v := set(t, s.degrade(t), fact("a", "3")); !warned(v, "nobody could say") {
		t.Errorf("warned %v", v.Warnings())
	}
	s.disks[0].mounted = true
	_, err = Open(t.Context(), s, s.places())
	explains(t, err, ErrForked, s.disks[0].at.File(), s.disks[1].at.File())
}

func TestNobodyLeavesBehindAnOverruledLine(t *testing.T) {
	s := created(t, 2, true)
	s.witness.mark = &Mark{Ledger: "other", N: 1, Epoch: "other"}
	err := s.unread(t).Leave(t.Context(), s.disks[0].at.Directory, "test", "test")
	explains(t, err, ErrOverruled, s.disks[0].at.File(), s.disks[1].at.File())
}

func TestAnEpochLineIsWitnessedBeforeAnythingFollowsIt(t *testing.T) {
	s := created(t, 1, false)
	s.witness.mark = nil
	v := set(t, s.open(t), fact("a", "1"))
	if s.witness.mark == nil || s.witness.mark.Epoch != v.Epoch().ID {
		t.Errorf("witnessed %v", s.witness.mark)
	}
	s.witness.mark = nil
	set(t, s.open(t), fact("a", "2"))
	if s.witness.mark != nil {
		t.Error("witnessed though a line was behind it already")
	}
}

func TestAChangeOfMembersIsWitnessed(t *testing.T) {
	s := created(t, 2, true)
	set(t, s.open(t), fact("a", "1"))
	blank := newDisk(OnPool("third"), "/pool/int/third/config", 9)
	s.disks = append(s.disks, blank)
	try(t, s.ram.Mkdir("/pool/int/third", 0o755))
	for i, change := range []func(l *Ledger) error{
		func(l *Ledger) error { return l.Join(t.Context(), []Location{blank.at}, "test", "test") },
		func(l *Ledger) error { return l.Leave(t.Context(), s.disks[0].at.Directory, "test", "test") },
	} {
		try(t, change(s.open(t)))
		if n := uint64(2 + i); s.witness.mark.N != n {
			t.Errorf("witnessed %v, not epoch %d", s.witness.mark, n)
		}
	}
}

// Whoever leaves must not be the only one who knows: it may be gone for good.
func TestALeaverMayVanishHalfWay(t *testing.T) {
	for kill := range 2 {
		s := created(t, 2, true)
		set(t, s.open(t), fact("a", "1"))
		l := s.open(t)
		s.disks[0].failing(kill, errKilled, false)
		if err := l.Leave(t.Context(), s.disks[0].at.Directory, "test", "test"); err == nil {
			t.Fatal("not killed")
		}
		s.revive()
		s.disks[0].mounted = false
		s.disks[0].format()
		if v := set(t, s.open(t), fact("a", "2")); len(v.Members()) != 2 {
			t.Errorf("change %d: members %v", kill, v.Members())
		}
	}
}

func TestADiskIsReplaced(t *testing.T) {
	s := created(t, 2, false)
	set(t, s.open(t), fact("a", "1"))
	s.disks[1].format()
	err := s.open(t).Join(t.Context(), []Location{s.disks[1].at}, "test", "new disk")
	explains(t, err, ErrMissing, "pool1")
	try(t, s.degrade(t).Join(t.Context(), []Location{s.disks[1].at}, "test", "new disk"))
	v := set(t, s.open(t), fact("a", "2"))
	if e := v.Epoch(); e.N != 3 || len(e.Copies) != 2 || len(e.Lost) != 0 || e.Why != "new disk" || len(v.Warnings()) > 0 {
		t.Errorf("epoch %+v, warned %v", e, v.Warnings())
	}
	s.disks[0].mounted = false
	if v := must(t)(s.open(t).Read(t.Context())); all(v)["a"] != "2" {
		t.Errorf("the new disk holds %v", all(v))
	}
}

func TestJoinNeedsItsPlaces(t *testing.T) {
	s := created(t, 2, false)
	l := s.open(t)
	away := Location{Directory: "/pool/int/away/config/sledctl", Pool: "away"}
	err := l.Join(t.Context(), []Location{away}, "test", "test")
	if !errors.Is(err, ErrNotMounted) || !strings.Contains(err.Error(), away.File()) {
		t.Errorf("got %v", err)
	}
	if v := set(t, l, fact("a", "1")); v.Epoch().N != 1 {
		t.Errorf("epoch %+v", v.Epoch())
	}
}

func TestJoinNeverDeletesAFile(t *testing.T) {
	s := created(t, 1, false)
	d := newDisk(OnPool("more"), "/pool/int/more/config", 9)
	s.disks = append(s.disks, d)
	try(t, s.ram.Mkdir("/pool/int/more", 0o755))
	try(t, s.Mkdir(d.at.Directory, 0o755))
	s.put(t, d.at.File(), []byte("precious"))
	l := s.open(t)
	for range 2 {
		try(t, l.Join(t.Context(), []Location{d.at}, "test", "test"))
	}
	names := s.names(t, d)
	if len(names) != 2 || !strings.HasPrefix(names[0], "aside-") {
		t.Fatalf("files %v", names)
	}
	s.put(t, d.on("copy"), nil)
	try(t, s.Rename(d.on(names[0]), d.at.File()))
	if got := string(s.content(t, d)); got != "precious" {
		t.Errorf("set aside: %q", got)
	}
}

func TestTheLedgerMovesFromADirectoryToDisks(t *testing.T) {
	s := newSled(t, 2, true)
	p := s.places()
	p.Locations = p.Locations[:1]
	try(t, Create(t.Context(), s, p, "test"))
	l, err := Open(t.Context(), s, p)
	try(t, err)
	set(t, l, fact("a", "1"))
	try(t, l.Join(t.Context(), []Location{s.disks[1].at, s.disks[2].at}, "test", "M.2s found"))
	set(t, l, fact("a", "2"))
	try(t, l.Leave(t.Context(), s.disks[0].at.Directory, "test", "M.2s found"))
	v := set(t, l, fact("a", "3"))
	if len(v.Members()) != 2 || len(v.Warnings()) > 0 || v.Epoch().N != 3 {
		t.Errorf("%v, %v", v.Members(), v.Warnings())
	}
	for _, mounted := range []bool{true, false} {
		s.disks[0].mounted = mounted
		v = set(t, s.open(t), fact("a", "4"))
		if len(v.Warnings()) > 0 || all(v)["a"] != "4" {
			t.Errorf("%v, warned %v", all(v), v.Warnings())
		}
	}
	try(t, s.open(t).Leave(t.Context(), s.disks[1].at.Directory, "test", "test"))
	if err := s.open(t).Leave(t.Context(), s.disks[2].at.Directory, "test", "test"); err == nil {
		t.Error("the last copy left")
	}
	try(t, s.open(t).Leave(t.Context(), "/nowhere", "test", "test"))
}

// Whatever is killed in a change of the members, and whatever the power cut
// leaves of it: doing it again ends well, and nothing is lost.
func TestAKilledChangeOfMembersIsDoneAgain(t *testing.T) {
	third := newDisk(OnPool("third"), "/pool/int/third/config", 9)
	changes := map[string]func(*sled, *Ledger) error{
		"alone": func(s *sled, l *Ledger) error {
			s.disks[1].mounted = false
			l.Degrade("test", "test")
			_, err := l.Update(t.Context(), always(fact("b", "1")))
			return err
		},
		"join":  func(_ *sled, l *Ledger) error { return l.Join(t.Context(), []Location{third.at}, "test", "test") },
		"leave": func(s *sled, l *Ledger) error { return l.Leave(t.Context(), s.disks[0].at.Directory, "test", "test") },
	}
	for name, change := range changes {
		for cut := range 4 {
			kills := 0
			for disk := range 3 {
				for kill := 0; ; kill++ {
					s := created(t, 2, false)
					third.format()
					third.working()
					s.disks = append(s.disks, third)
					try(t, s.ram.Mkdir("/pool/int/third", 0o755))
					set(t, s.open(t), fact("a", "1"))
					old, l := s.open(t), s.open(t)
					s.disks[disk].failing(kill, errKilled, kill%2 == 1)
					err := change(s, l)
					s.revive()
					if cut > 0 {
						s.powerCut(func(n int) int { return (cut - 1) * (n - 1) / 2 })
					}
					if again := change(s, s.open(t)); again != nil {
						t.Fatalf("%s, disk %d, change %d, cut %d: %v, then %v", name, disk, kill, cut, err, again)
					}
					v := set(t, s.open(t), fact("c", "1"))
					if got := all(v); got["a"] != "1" || got["c"] != "1" || name == "alone" && got["b"] != "1" {
						t.Fatalf("%s, disk %d, change %d: %v", name, disk, kill, got)
					}
					if cut == 0 {
						if v, err := old.Read(t.Context()); err != nil || all(v)["c"] != "1" {
							t.Fatalf("%s: an old handle reads %v, %v", name, all(v), err)
						}
					}
					if err == nil {
						break
					}
					kills++
				}
			}
			if kills < 3 {
				t.Errorf("%s: killed %d times", name, kills)
			}
		}
	}
}

func TestThreeCopiesLoseOneAfterTheOther(t *testing.T) {
	s := created(t, 3, false)
	for i, d := range s.disks[1:] {
		d.mounted = false
		v := set(t, s.degrade(t), fact("a", fmt.Sprint(i)))
		if len(v.Epoch().Lost) != i+1 || len(v.Warnings()) != i+1 {
			t.Errorf("lost %v, warned %v", v.Epoch().Lost, v.Warnings())
		}
	}
	s.disks[2].mounted = true
	try(t, s.open(t).Join(t.Context(), []Location{s.disks[2].at}, "test", "back"))
	v := must(t)(s.open(t).Read(t.Context()))
	if lost := v.Epoch().Lost; len(lost) != 1 || lost[0].Pool != "pool1" || !warned(v, "pool1", "an operator") {
		t.Errorf("lost %v, warned %v", lost, v.Warnings())
	}
}

// A sled may get its first witness after the ledger was made and written to.
func TestANewWitnessIsToldOfWhatIsInForce(t *testing.T) {
	s := created(t, 2, false)
	set(t, s.open(t), fact("a", "1"))
	s.witness.mark = nil
	set(t, s.open(t), fact("a", "2"))
	if s.witness.mark != nil {
		t.Fatal("told without need")
	}
	try(t, s.open(t).Attest(t.Context()))
	v := must(t)(s.open(t).Read(t.Context()))
	if s.witness.mark == nil || s.witness.mark.Epoch != v.Epoch().ID {
		t.Errorf("witnessed %v", s.witness.mark)
	}
	s.disks[1].mounted = false
	explains(t, s.degrade(t).Attest(t.Context()), ErrMissing, "pool1")
	s.disks[1].mounted = true
	s.witness.mark = &Mark{"other", 4, "other"}
	explains(t, s.open(t).Attest(t.Context()), ErrOverruled, "other")
}
