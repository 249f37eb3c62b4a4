package ledger

import (
	"context"
	"errors"
	"testing"
)

// Between the epoch line and the witness a sled may die, and the other side
// may go on: then nothing may follow the line.
func TestNothingFollowsAnEpochLineThatIsOverruled(t *testing.T) {
	s := created(t, 2, false)
	first, second := s.disks[0], s.disks[1]
	set(t, s.open(t), fact("a", "0"))
	second.mounted = false
	s.witness.err = errors.New("pool gone")
	l := s.degrade(t)
	if _, err := l.Update(t.Context(), always(fact("a", "1"))); err == nil || errors.Is(err, ErrWriteFailed) {
		t.Fatalf("with an unreadable witness: %v", err)
	}
	s.witness.err = nil
	dead := &deaf{memoryWitness: s.witness}
	p := s.places()
	p.Witness = dead
	l, _, err := Open(t.Context(), s, p)
	try(t, err)
	l.Degrade("test", "test")
	if _, err := l.Update(t.Context(), always(fact("a", "1"))); err == nil {
		t.Fatal("continued without the witness")
	}
	first.mounted, second.mounted = false, true
	set(t, s.degrade(t), fact("a", "2"))
	first.mounted, second.mounted = true, false
	_, err = s.forgotten().unread(t).Update(t.Context(), always(fact("a", "3")))
	explains(t, err, ErrSuperseded, first.at.File())
	third := newDisk(OnPool("third"), "/pool/int/third/config", 9)
	s.disks = append(s.disks, third)
	try(t, s.ram.Mkdir("/pool/int/third", 0o755))
	err = s.unread(t).Join(t.Context(), []Location{third.at}, "test", "test")
	explains(t, err, ErrSuperseded, first.at.File())
	if _, err := s.Stat(third.at.File()); err == nil {
		t.Error("a copy was made")
	}
	_, _, err = Open(t.Context(), s, s.places())
	explains(t, err, ErrSuperseded, first.at.File())
	second.mounted = true
	_, _, err = Open(t.Context(), s, s.places())
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
		t.Fatal("continued without the witness")
	}
	for _, test := range []struct {
		witness      *EpochTag
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

// deaf is a witness that takes nothing.
type deaf struct{ *memoryWitness }

func (deaf) Write(context.Context, EpochTag, ...EpochTag) error { return errors.New("deaf") }

func TestNobodyLeavesBehindAnOverruledLine(t *testing.T) {
	s := created(t, 2, true)
	s.witness.mark = &EpochTag{Ledger: "other", N: 1, Epoch: "other"}
	err := s.unread(t).Leave(t.Context(), s.disks[0].at.Directory, "test", "test")
	explains(t, err, ErrSuperseded, s.disks[0].at.File(), s.disks[1].at.File())
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

// A sled may get its first witness after the ledger was made and written to.
func TestANewWitnessIsToldOfWhatIsInForce(t *testing.T) {
	s := created(t, 2, false)
	set(t, s.open(t), fact("a", "1"))
	s.witness.mark = nil
	set(t, s.open(t), fact("a", "2"))
	if s.witness.mark != nil {
		t.Fatal("told without need")
	}
	try(t, s.open(t).RefreshWitness(t.Context()))
	v := must(t)(s.open(t).Read(t.Context()))
	if s.witness.mark == nil || s.witness.mark.Epoch != v.Epoch().ID {
		t.Errorf("witnessed %v", s.witness.mark)
	}
	s.disks[1].mounted = false
	explains(t, s.degrade(t).RefreshWitness(t.Context()), ErrMissing, "pool1")
	s.disks[1].mounted = true
	s.witness.mark = &EpochTag{Ledger: "other", N: 4, Epoch: "other"}
	explains(t, s.open(t).RefreshWitness(t.Context()), ErrSuperseded, "other")
}
