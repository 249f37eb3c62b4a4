package ledger

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/engine/ledger/format"
)

// crossed is a sled of which both sides continued alone, without a witness that
// could have told them.
func crossed(t *testing.T) *sled {
	t.Helper()
	s := created(t, 2, false)
	set(t, s.open(t), fact("common", "1"))
	for i, side := range []string{"first", "second"} {
		s.forgotten().witness.mark = nil
		s.disks[i].mounted, s.disks[1-i].mounted = true, false
		set(t, s.degrade(t), fact(side, "1"), fact("common", `"`+side+`"`))
	}
	s.disks[0].mounted, s.disks[1].mounted = true, true
	_, _, err := Open(t.Context(), s, s.places())
	explains(t, err, ErrForked, "both sides")
	return s
}

// keys is what a copy would give up.
func keys(g Discarded) []string {
	var out []string
	for _, e := range g.Facts {
		for _, f := range e.Facts {
			out = append(out, f.Key)
		}
		if e.Members != nil {
			out = append(out, format.MembersKey)
		}
	}
	return out
}

func TestKeepGivesUpWhatItSaysAndNothingElse(t *testing.T) {
	for _, name := range []string{"pool0", "/pool/int/pool0/config/sledctl", "/pool/int/pool0/config/sledctl/ledger.jsonl"} {
		s := crossed(t)
		before := s.content(t, s.disks[1])
		loss, err := PreviewKeep(t.Context(), s, s.places(), name)
		try(t, err)
		if len(loss.Others) != 1 || !slices.Equal(keys(loss.Others[0]), []string{format.MembersKey, "second", "common"}) {
			t.Fatalf("%s: gives up %+v", name, loss.Others)
		}
		if _, _, err := Open(t.Context(), s, s.places()); !errors.Is(err, ErrForked) {
			t.Errorf("%s: looking has changed something: %v", name, err)
		}
		try(t, Keep(t.Context(), s, s.places(), loss, "operator", "test"))
		v := set(t, s.open(t), fact("after", "1"))
		if got := all(v); got["common"] != `"first"` || got["second"] != "" || got["after"] != "1" {
			t.Errorf("%s: %v", name, got)
		}
		if e := v.Epoch(); len(e.Copies) != 1 || e.N != 3 || !warned(v, "without copy", "pool1", "operator") {
			t.Errorf("%s: epoch %+v, warned %v", name, e, v.Warnings())
		}
		names := s.names(t, s.disks[1])
		if len(names) != 1 || !strings.HasPrefix(names[0], "superseded-") {
			t.Fatalf("%s: the other disk holds %v", name, names)
		}
		s.put(t, s.disks[1].on("x"), before)
		aside := s.disks[1].on(names[0])
		try(t, s.Rename(aside, s.disks[1].at.File()))
		if string(s.content(t, s.disks[1])) != string(before) {
			t.Errorf("%s: what was set aside is not what was there", name)
		}
	}
}

func TestKeepOverrulesTheWitness(t *testing.T) {
	s := created(t, 2, false)
	set(t, s.open(t), fact("a", "1"))
	s.disks[1].mounted = false
	set(t, s.degrade(t), fact("a", "2"))
	s.disks[0].mounted, s.disks[1].mounted = false, true
	_, err := s.forgotten().unread(t).Update(t.Context(), always(fact("a", "3")))
	explains(t, err, ErrSuperseded, s.disks[1].at.File())
	loss, err := PreviewKeep(t.Context(), s, s.places(), "pool1")
	try(t, err)
	if loss.Unseen == nil || loss.Unseen.N != 2 || len(loss.Others) != 0 {
		t.Fatalf("%+v", loss)
	}
	// Between the epoch line and the witness nothing may get stuck.
	p := s.places()
	p.Witness = &deaf{memoryWitness: s.witness}
	if err := Keep(t.Context(), s, p, loss, "operator", "test"); err == nil {
		t.Error("the witness was not told")
	}
	if v := set(t, s.open(t), fact("a", "4")); s.witness.mark.N != 3 || v.Epoch().Overrides == nil {
		t.Errorf("witnessed %v, epoch %+v", s.witness.mark, v.Epoch())
	}
	s.disks[0].mounted = true
	_, _, err = Open(t.Context(), s, s.places())
	explains(t, err, ErrForked, "both sides") // what was given up comes back: it is not taken in by itself
}

func TestKeepRefusesWhatItWasNotShown(t *testing.T) {
	s := created(t, 2, false)
	loss, err := PreviewKeep(t.Context(), s, s.places(), "pool0")
	try(t, err)
	set(t, s.open(t), fact("a", "1"))
	if err := Keep(t.Context(), s, s.places(), loss, "x", "x"); !errors.Is(err, ErrChanged) {
		t.Errorf("got %v", err)
	}
	if _, err := PreviewKeep(t.Context(), s, s.places(), "nobody"); !errors.Is(err, ErrNoCopy) {
		t.Errorf("got %v", err)
	}
	if _, err := PreviewKeep(t.Context(), s, s.places(), ""); !errors.Is(err, ErrNoCopy) {
		t.Errorf("no name: %v", err)
	}
	s.put(t, s.disks[1].at.File(), s.content(t, s.disks[0]))
	id := s.open1(t, s.disks[0]).Copy
	if _, err := PreviewKeep(t.Context(), s, s.places(), id); !errors.Is(err, ErrNoCopy) || !strings.Contains(err.Error(), "name the file") {
		t.Errorf("a name of two: %v", err)
	}
	loss, err = PreviewKeep(t.Context(), s, s.places(), s.disks[0].at.File())
	try(t, err)
	try(t, Keep(t.Context(), s, s.places(), loss, "x", "x"))
	set(t, s.open(t), fact("a", "2"))
}

// open1 reads one file.
func (s *sled) open1(t testing.TB, d *disk) *format.Text {
	t.Helper()
	x, err := format.Verify(s.content(t, d), nil)
	try(t, err)
	return x
}

func TestAnEarlierStateGivesNothingUp(t *testing.T) {
	s := created(t, 2, false)
	l := s.open(t)
	for _, n := range []string{"1", "2", "3"} {
		set(t, l, fact("a", n))
	}
	x := s.open1(t, s.disks[1])
	s.put(t, s.disks[1].at.File(), firstLines(x, 2))
	loss, err := PreviewKeep(t.Context(), s, s.places(), "pool0")
	try(t, err)
	if len(loss.Others[0].Facts) != 0 {
		t.Errorf("gives up %v", loss.Others[0].Facts)
	}
	loss, err = PreviewKeep(t.Context(), s, s.places(), "pool1")
	try(t, err)
	if len(loss.Others[0].Facts) != 2 {
		t.Errorf("the other way round gives up %v", loss.Others[0].Facts)
	}
}

func TestSettleBringsCopiesHome(t *testing.T) {
	s := newSled(t, 2, true)
	directory := s.places().Locations[:1]
	p := s.places()
	p.Locations = directory
	try(t, Create(t.Context(), s, p, Creation{Who: "test"}))
	l, _, err := Open(t.Context(), s, p)
	try(t, err)
	set(t, l, fact("a", "1"))
	if m, err := l.Relocation(t.Context(), WantedLocations(directory)); err != nil || !m.None() {
		t.Errorf("without disks: %+v, %v", m, err)
	}
	for kill := 0; ; kill++ { // killed at each change of the first M.2
		s.disks[1].failing(kill, errKilled, kill%2 == 0)
		l, _, err := Open(t.Context(), s, s.places())
		if err == nil {
			_, err = l.Relocate(t.Context(), WantedLocations(s.places().Locations), "test", "test")
		}
		s.revive()
		if err == nil {
			break
		}
		if v := must(t)(s.open(t).Read(t.Context())); all(v)["a"] != "1" {
			t.Fatalf("change %d: %v", kill, all(v))
		}
	}
	v := set(t, s.open(t), fact("b", "1"))
	if m := v.Members(); len(m) != 2 || m[0].Pool == "" || m[1].Pool == "" || all(v)["a"] != "1" {
		t.Errorf("members %v, %v", m, all(v))
	}
	m, err := s.open(t).Relocation(t.Context(), WantedLocations(s.places().Locations))
	if err != nil || !m.None() || len(m.Missing) > 0 {
		t.Errorf("again: %+v, %v", m, err)
	}
}

func TestSettleLeavesOutWhatIsAway(t *testing.T) {
	s := created(t, 3, false)
	s.disks[2].mounted = false
	_, err := s.open(t).Relocation(t.Context(), s.places().Locations)
	explains(t, err, ErrMissing, "pool2")
	set(t, s.degrade(t), fact("a", "1"))
	m, err := s.open(t).Relocate(t.Context(), s.places().Locations, "test", "test")
	if err != nil || !m.None() || len(m.Missing) != 1 || !errors.Is(m.Missing[0].Err, ErrNotMounted) {
		t.Errorf("%+v, %v", m, err)
	}
	s.disks[2].mounted = true
	m, err = s.open(t).Relocate(t.Context(), s.places().Locations, "test", "test")
	if err != nil || len(m.Join) != 1 || len(m.Missing) != 0 {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestALedgerMadeAnewIsNotOverruledByTheOldOne(t *testing.T) {
	s := created(t, 2, false)
	set(t, s.degrade(t), fact("a", "1"))
	old := *s.witness.mark
	for _, d := range s.disks {
		d.format()
	}
	_, _, err := Open(t.Context(), s, s.places())
	explains(t, err, ErrAbsent, old.Ledger)
	if !strings.Contains(hint(err), "bootstrap --new-ledger") || !strings.Contains(hint(err), "instance adopt --all") {
		t.Errorf("hint %q", hint(err))
	}
	err = Create(t.Context(), s, s.places(), Creation{Who: "test"})
	explains(t, err, ErrSuperseded, old.Ledger)
	p := s.places()
	p.Witness = &deaf{memoryWitness: s.witness} // it dies before the witness is told
	if err := Create(t.Context(), s, p, Creation{Who: "test", New: true}); err == nil {
		t.Fatal("the witness was not told")
	}
	v := set(t, s.open(t), fact("a", "2"))
	if now := *s.witness.mark; now.Ledger == old.Ledger || now.N != old.N+1 || v.Epoch().N != now.N {
		t.Errorf("witnessed %v, was %v", now, old)
	}
	if err := Create(context.Background(), s, s.places(), Creation{New: true}); !errors.Is(err, ErrExists) {
		t.Errorf("again: %v", err)
	}
}

func TestAMarkIsWrittenAsItIsRead(t *testing.T) {
	m := EpochTag{Ledger: "0123456789abcdef", N: 7, Epoch: "fedcba9876543210"}
	if got, err := ParseEpochTag(m.String()); got != m || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"", "a", "a:1", "a:0:b", "a:01:b", "a:+1:b", "a: 1:b", ":1:b", "a:1:", "a:18446744073709551616:b"} {
		if m, err := ParseEpochTag(text); err == nil {
			t.Errorf("%q is read as %+v", text, m)
		}
	}
	if got, err := latest([]WitnessTag{{"a", m, true}, {"b", EpochTag{Ledger: "x", N: 3, Epoch: "y"}, true}, {"c", m, true}, {Pool: "d"}}); err != nil || *got != m {
		t.Errorf("%v, %v", got, err)
	}
	_, err := latest([]WitnessTag{{"pool a", m, true}, {"pool b", EpochTag{Ledger: m.Ledger, N: m.N, Epoch: "other"}, true}})
	explains(t, err, ErrContradicted, "pool a", "pool b", m.String())
	if got, err := latest([]WitnessTag{{Pool: "d"}}); got != nil || err != nil {
		t.Errorf("of none: %v, %v", got, err)
	}
}

// A copy that was away when it was given up does not know it. Before it changes
// the members it asks; and next to the kept copy it is refused.
func TestACopyThatWasGivenUpWhileAwayChangesNoMembers(t *testing.T) {
	s := created(t, 3, false)
	kept, away, blank := s.disks[0], s.disks[1], s.disks[2]
	try(t, s.open(t).Leave(t.Context(), blank.at.Directory, "test", "two are enough"))
	set(t, s.open(t), fact("a", "1"))
	kept.mounted = false
	set(t, s.degrade(t), fact("a", "2"))
	kept.mounted, away.mounted = true, false
	blank.format()
	s.forgotten()
	loss, err := PreviewKeep(t.Context(), s, s.places(), kept.at.File())
	try(t, err)
	try(t, Keep(t.Context(), s, s.places(), loss, "operator", "the other is gone"))
	kept.mounted, away.mounted = false, true
	err = s.forgotten().unread(t).Join(t.Context(), []Location{blank.at}, "test", "test")
	explains(t, err, ErrSuperseded, away.at.File(), "epoch 4")
	if names, err := s.ReadDir(blank.at.Directory); err == nil {
		t.Errorf("%v was made", names)
	}
	kept.mounted = true
	_, _, err = Open(t.Context(), s.forgotten(), s.places())
	explains(t, err, ErrForked, kept.at.File(), away.at.File())
}
