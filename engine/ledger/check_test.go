package ledger

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/sledctl/sledctl/engine/ledger/format"
)

// verdicts is what a check says about the disks.
func verdicts(t *testing.T, s *sled) ([]Verdict, error) {
	t.Helper()
	x, err := Check(t.Context(), s, s.places())
	try(t, err)
	return verdictsOf(x), x.Err()
}

func verdictsOf(x Examination) (all []Verdict) {
	for _, p := range x.Places {
		all = append(all, p.Verdict)
	}
	return all
}

func TestCheckGivesEachPlaceItsVerdict(t *testing.T) {
	tests := map[string]struct {
		make func(s *sled)
		want []Verdict
		kind error // nil: sound
	}{
		"sound":      {func(*sled) {}, []Verdict{IsMember, IsMember}, nil},
		"unmounted":  {func(s *sled) { s.disks[1].mounted = false }, []Verdict{IsMember, IsMissing}, ErrMissing},
		"blank":      {func(s *sled) { s.disks[1].format() }, []Verdict{IsMember, IsMissing}, ErrMissing},
		"both blank": {func(s *sled) { s.disks[0].format(); s.disks[1].format() }, []Verdict{IsNone, IsNone}, ErrAbsent},
		"torn":       {func(s *sled) { try(t, s.Append(s.disks[1].at.File(), []byte(`{"hash":"1`))) }, []Verdict{IsMember, IsTorn}, nil},
		"behind": {func(s *sled) {
			x := s.open1(t, s.disks[1])
			s.put(t, s.disks[1].at.File(), firstLines(x, x.Len()-1))
		}, []Verdict{IsMember, IsBehind}, nil},
		"broken": {func(s *sled) { s.put(t, s.disks[1].at.File(), []byte("x\n")) }, []Verdict{IsMember, IsMissing}, ErrMissing},
		"twins":  {func(s *sled) { s.put(t, s.disks[1].at.File(), s.content(t, s.disks[0])) }, []Verdict{IsDuplicate, IsDuplicate}, ErrTwins},
		"continued alone": {func(s *sled) {
			s.disks[1].mounted = false
			set(t, s.degrade(t), fact("x", "1"))
			s.disks[1].mounted = true
		}, []Verdict{IsMember, IsStale}, ErrMissing},
		"overruled":        {func(s *sled) { s.witness.mark = &EpochTag{Ledger: "other", N: 9, Epoch: "other"} }, []Verdict{IsForeign, IsForeign}, ErrForeign},
		"another ledger's": {func(s *sled) { s.put(t, s.disks[1].at.File(), made(t).Data()) }, []Verdict{IsForked, IsForked}, ErrForked},
		"history": {func(s *sled) {
			l := s.open(t)
			l.limit = 0
			for n := range 20 {
				set(t, l, fact("a", fmt.Sprint(n)))
			}
			for _, name := range s.names(t, s.disks[1]) {
				if _, ok := historySeq(name); ok {
					s.put(t, s.disks[1].on(name), []byte("x\n"))
				}
			}
		}, []Verdict{IsMember, IsMember}, ErrBroken},
	}
	for name, test := range tests {
		s := created(t, 2, false)
		for n := range 3 {
			set(t, s.open(t), fact("a", fmt.Sprint(n)))
		}
		test.make(s)
		got, err := verdicts(t, s)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		copies, failed := CheckCopies(t.Context(), s, s.places())
		try(t, failed)
		if diff := cmp.Diff(got, verdictsOf(copies)); diff != "" || fmt.Sprint(copies.Err()) != fmt.Sprint(err) {
			t.Errorf("%s, without the values: %s, %v", name, diff, copies.Err())
		}
		if test.kind == nil && err != nil || test.kind != nil && (!errors.Is(err, test.kind) || !errors.Is(err, ErrCheckFailed)) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && (hint(err) == "" || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %q, hint %q", name, err, hint(err))
		}
	}
}

// A value is not looked at before it is asked for: the check does.
func TestCheckReadsEveryValue(t *testing.T) {
	s := created(t, 1, false)
	x := s.open1(t, s.disks[0])
	bad := format.EncodeLine(x.Head(), 1, noon, []Fact{{Key: "a", Value: []byte(`{"b":}`)}})
	try(t, s.Append(s.disks[0].at.File(), bad))
	must(t)(s.open(t).Read(t.Context()))
	got, err := verdicts(t, s)
	if got[0] != IsBroken || !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), "line 3") {
		t.Errorf("%v, %v", got, err)
	}
}

func TestCheckOfCopiesThatNobodyCanConfirm(t *testing.T) {
	s := created(t, 2, true)
	try(t, s.open(t).Leave(t.Context(), s.disks[0].at.Directory, "test", "test"))
	for _, d := range s.disks[1:] {
		d.mounted = false
	}
	got, err := verdicts(t, s)
	if diff := cmp.Diff([]Verdict{IsUnconfirmed, IsMissing, IsMissing}, got); diff != "" || !errors.Is(err, ErrMissing) {
		t.Errorf("%v: %s", err, diff)
	}
}
