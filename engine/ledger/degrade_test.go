package ledger

import (
	"fmt"
	"testing"
)

// degrade opens a ledger that may continue alone.
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
	for range 2 { // this boot has seen more; after a reboot, the witness has
		l := s.unread(t)
		l.Degrade("test", "test")
		_, err := l.Update(t.Context(), always(fact("a", "3")))
		explains(t, err, ErrSuperseded, second.at.File(), "epoch 2")
		_, _, err = Open(t.Context(), s, s.places())
		explains(t, err, ErrSuperseded, second.at.File(), "epoch 2")
		s.forgotten()
	}
}

func TestAMemberThatIsNoneByItsOwnWordCannotGoOn(t *testing.T) {
	s := created(t, 2, true)
	plain := s.disks[0]
	try(t, s.open(t).Leave(t.Context(), plain.at.Directory, "test", "moved"))
	for _, d := range s.disks[1:] {
		d.mounted = false
	}
	_, _, err := Open(t.Context(), s, s.places())
	explains(t, err, ErrMissing, "pool0", "pool1", "present: none")
}

func TestWithoutAWitnessGoingOnAloneSaysSo(t *testing.T) {
	s := created(t, 2, false)
	set(t, s.open(t), fact("a", "1"))
	p := s.places()
	p.Witness = nil
	s.disks[1].mounted = false
	l, _, err := Open(t.Context(), s, p)
	try(t, err)
	l.Degrade("test", "test")
	if v := set(t, l, fact("a", "2")); !warned(v, "no witness could rule out") {
		t.Errorf("warned %v", v.Warnings())
	}
	s.witness.mark = nil
	s.disks[1].mounted = true
	s.disks[0].mounted = false
	if v := set(t, s.forgotten().degrade(t), fact("a", "3")); !warned(v, "no witness could rule out") {
		t.Errorf("warned %v", v.Warnings())
	}
	s.disks[0].mounted = true
	_, _, err = Open(t.Context(), s.forgotten(), s.places())
	explains(t, err, ErrForked, s.disks[0].at.File(), s.disks[1].at.File())
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
