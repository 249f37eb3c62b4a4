package ledger

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/sledctl/sledctl/engine/ledger/format"
	"github.com/sledctl/sledctl/host"
)

// situation is one thing to find on the disks, behind a=1 (seq 2) and a=2 (seq 3),
// and what a reader, a writer and a check make of it.
type situation struct {
	name  string
	seen  bool // in the boot that has acknowledged both; else in a later one
	disks int
	make  func(t *testing.T, s *sled)
	shown string   // as told says it
	says  []string // words of one warning, or of the refusal; none: nothing is said
	// wrote is the result of b=1: empty, it is written; else the text of the
	// refusal.
	wrote    []string
	verdicts []Verdict
}

// TestWhatAReaderSays is the table of the rules of reading, row by row.
func TestWhatAReaderSays(t *testing.T) {
	all := slices.Concat(situationsOfEnds(), situationsOfLag(), situationsOfAway(), situationsOfOthers())
	if len(all) < 22 {
		t.Errorf("%d situations", len(all))
	}
	for _, x := range all {
		t.Run(x.name, func(t *testing.T) {
			s := created(t, max(x.disks, 1), false)
			set(t, s.open(t), fact("a", "1"))
			set(t, s.open(t), fact("a", "2"))
			if !x.seen {
				s.forgotten()
			}
			x.make(t, s)
			v, err := s.reopened(t).Read(t.Context())
			if got := told(v, err); got != x.shown {
				t.Errorf("shown is %q, not %q", got, x.shown)
			}
			x.saying(t, v, err)
			if got, _ := verdicts(t, s); !slices.Equal(got, x.verdicts) {
				t.Errorf("verdicts %q, not %q", got, x.verdicts)
			}
			x.writing(t, s)
		})
	}
}

func (x situation) saying(t *testing.T, v View, err error) {
	t.Helper()
	switch {
	case err != nil && (!holdsAll(err.Error(), x.says) || hint(err) == ""):
		t.Errorf("refused with %q, not %q, hint %q", err, x.says, hint(err))
	case err == nil && x.says == nil && len(v.Warnings()) > 0:
		t.Errorf("said %q", v.Warnings())
	case err == nil && x.says != nil && !warned(v, x.says...):
		t.Errorf("said %q, not %q", v.Warnings(), x.says)
	}
}

// writing tries to write: what a reader refuses is not written to, and what was
// shown is not lost.
func (x situation) writing(t *testing.T, s *sled) {
	t.Helper()
	v, err := s.reopened(t).Update(t.Context(), always(fact("b", "1")))
	switch {
	case x.wrote != nil:
		if err == nil || !holdsAll(err.Error(), x.wrote) {
			t.Errorf("written: %v, not refused with %q", err, x.wrote)
		}
	case err != nil:
		t.Errorf("written: %v", err)
	case all(v)["b"] != "1" || !strings.HasSuffix(x.shown, ": "+all(v)["a"]):
		t.Errorf("written: %v", all(v))
	default:
		if got := shown(t, s); got != "sure: "+all(v)["a"] {
			t.Errorf("after that: %s", got)
		}
	}
}

func holdsAll(text string, words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}

func both(verdict Verdict) []Verdict { return []Verdict{verdict, verdict} }

func situationsOfEnds() []situation {
	torn := func(data []byte) []byte { return append(data, `{"hash":"1`...) }
	damaged := []string{"the end of the ledger is damaged", "cannot be read in any copy", "behind seq 2"}
	return []situation{
		{"all present, equal, whole", false, 2, func(*testing.T, *sled) {}, "sure: 2", nil, nil, both(IsMember)},
		{"the same, in the boot that wrote it", true, 2, func(*testing.T, *sled) {}, "sure: 2", nil, nil, both(IsMember)},
		{"no U.2", false, 2, func(_ *testing.T, s *sled) { s.witness.forgets = true }, "sure: 2", nil, nil, both(IsMember)},
		{"A torn, B whole at the same head", false, 2, func(t *testing.T, s *sled) {
			s.spoil(t, s.disks[0], torn)
		}, "sure: 2", nil, nil, []Verdict{IsTorn, IsMember}},
		{"a newline is lost", false, 2, func(t *testing.T, s *sled) {
			s.spoil(t, s.disks[0], cut(1))
		}, "sure: 2", nil, nil, both(IsMember)},
		{"every end torn, after a boot", false, 2, func(t *testing.T, s *sled) {
			each(s, func(d *disk) { s.spoil(t, d, torn) })
		}, "unconfirmed: 2", []string{"unconfirmed: a line was begun behind seq 3 and not finished"}, nil, both(IsTorn)},
		{"every end torn, in the boot that wrote", true, 2, func(t *testing.T, s *sled) {
			each(s, func(d *disk) { s.spoil(t, d, torn) })
		}, "sure: 2", nil, nil, both(IsTorn)},
		{"B ends in damage, A whole", false, 2, func(t *testing.T, s *sled) {
			s.spoil(t, s.disks[1], garbage)
		}, "unconfirmed: 2", []string{"unconfirmed: 10 bytes behind seq 3 of copy ", "pool1", "pool0", "is whole"}, nil, []Verdict{IsMember, IsDamaged}},
		{"every end damaged", false, 2, func(t *testing.T, s *sled) {
			each(s, func(d *disk) { s.spoil(t, d, flip) })
		}, "refused: damaged", append(damaged, "begin as seq 3 does"), damaged, both(IsDamaged)},
		{"every end damaged, one copy", false, 1, func(t *testing.T, s *sled) {
			s.spoil(t, s.disks[0], flip)
		}, "refused: damaged", damaged, damaged, []Verdict{IsDamaged}},
		{"every end damaged, in the boot that wrote", true, 2, func(t *testing.T, s *sled) {
			each(s, func(d *disk) { s.spoil(t, d, garbage) })
		}, "unconfirmed: 2", []string{"unconfirmed: 10 bytes behind seq 3", "nothing that was acknowledged since the sled booted is lost"}, nil, both(IsDamaged)},
	}
}

func situationsOfLag() []situation {
	rewound := []string{"lacks what was in it", "this boot acknowledged seq 3; the copies end at seq 2"}
	return []situation{
		{"B one line behind", false, 2, func(t *testing.T, s *sled) {
			s.rewind(t, s.disks[1], 1)
		}, "unconfirmed: 2", []string{"unconfirmed: seq 3 is not on copy ", "pool1", "nothing is lost, and the next change brings it there"}, nil, []Verdict{IsMember, IsBehind}},
		{"B two lines behind", false, 2, func(t *testing.T, s *sled) {
			s.rewind(t, s.disks[1], 2)
		}, "unconfirmed: 2", []string{"unconfirmed: ", "pool1", "is 2 lines behind, more than a crash can leave: it was rewound"}, nil, []Verdict{IsMember, IsRewound}},
		{"stamp's line not held", true, 2, func(t *testing.T, s *sled) {
			each(s, func(d *disk) { s.rewind(t, d, 1) })
		}, "refused: rewound", rewound, rewound, both(IsRewound)},
		{"both copies rewound alike, in another boot", false, 2, func(t *testing.T, s *sled) {
			each(s, func(d *disk) { s.rewind(t, d, 1) })
		}, "sure: 1", nil, nil, both(IsMember)},
		{"own history file beyond the head", false, 1, func(t *testing.T, s *sled) {
			outlive(t, s)
		}, "refused: rewound", []string{"lines up to seq ", "were in ", "history-", "it ends at seq 3"}, []string{"it ends at seq 3"}, []Verdict{IsRewound}},
	}
}

func situationsOfAway() []situation {
	missing := []string{"a copy of the ledger is missing", "pool1"}
	gone := []string{"the sled continued with other copies", "epoch 2"}
	return []situation{
		{"B missing, the witness agrees", false, 2, func(_ *testing.T, s *sled) {
			s.disks[1].mounted = false
		}, "unconfirmed: 2", []string{"unconfirmed: ", "pool1", "is missing", "the U.2s know of no newer epoch"}, missing, []Verdict{IsMember, IsMissing}},
		{"B broken, the witness agrees", false, 2, func(t *testing.T, s *sled) {
			s.spoil(t, s.disks[1], func(data []byte) []byte { data[len(data)/2] ^= 1; return data })
		}, "unconfirmed: 2", []string{"unconfirmed: ", "pool1", "is missing", "the U.2s know of no newer epoch"}, missing, []Verdict{IsMember, IsMissing}},
		{"B missing, no U.2", false, 2, func(_ *testing.T, s *sled) {
			s.disks[1].mounted, s.witness.forgets = false, true
		}, "unconfirmed: 2", []string{"unconfirmed: ", "is missing", "no witness can rule out that it continued without this copy"}, missing, []Verdict{IsMember, IsMissing}},
		{"B missing, the witness cannot be asked", false, 2, func(_ *testing.T, s *sled) {
			s.disks[1].mounted, s.witness.err = false, errors.New("deaf")
		}, "unconfirmed: 2", []string{"unconfirmed: ask the witness of the ledger: deaf"}, missing, []Verdict{IsMember, IsMissing}},
		{"a U.2 knows a later epoch", false, 2, func(t *testing.T, s *sled) {
			s.disks[0].mounted = false
			set(t, s.degrade(t), fact("a", "3"))
			s.disks[0].mounted, s.disks[1].mounted = true, false
			s.forgotten()
		}, "refused: gone on", gone, gone, []Verdict{IsMember, IsMissing}},
		{"kept without A, the others present", false, 2, func(t *testing.T, s *sled) {
			s.disks[0].mounted = false
			set(t, s.degrade(t), fact("c", "1"))
			s.forgotten()
		}, "sure: 2", []string{"the ledger is kept without copy ", "pool0"}, nil, []Verdict{IsNone, IsMember}},
		{"change of members not confirmed", false, 2, func(t *testing.T, s *sled) {
			s.disks[0].mounted = false
			x := s.open1(t, s.disks[1])
			e := x.Epoch().Next([]MemberRef{x.Epoch().Copies[1]}, x.Epoch().Copies[:1], "test", "killed")
			try(t, s.Append(s.disks[1].at.File(), format.EncodeLine(x.Head(), e.N, noon, []Fact{e.Fact()})))
		}, "unconfirmed: 2", []string{"unconfirmed: epoch 2 (a change of the ledger's members) is not confirmed"}, nil, []Verdict{IsNone, IsMember}},
	}
}

func situationsOfOthers() []situation {
	foreign := []string{"another sled's", "this sled's is other"}
	twice := func(t *testing.T, s *sled) { s.put(t, s.disks[1].at.File(), s.content(t, s.disks[0])) }
	return []situation{
		{"all marks of another ledger", false, 2, func(_ *testing.T, s *sled) {
			s.witness.mark = &EpochTag{Ledger: "other", N: 1, Epoch: "x"}
		}, "refused: another sled's", foreign, foreign, both(IsForeign)},
		{"disks swapped in this boot", true, 2, func(t *testing.T, s *sled) {
			s.put(t, "/run/"+stampName, bytes.ReplaceAll(must2(host.ReadFile(s, "/run/"+stampName)), []byte(s.open1(t, s.disks[0]).Ledger), []byte("other")))
		}, "refused: another sled's", foreign, foreign, both(IsForeign)},
		{"some marks of another ledger", false, 2, func(_ *testing.T, s *sled) {
			s.witness.others = []WitnessTag{{"oxp2", EpochTag{Ledger: "other", N: 4, Epoch: "x"}, true}}
		}, "sure: 2", []string{"pools oxp2 are another sled's", "ledger other"}, nil, both(IsMember)},
		{"both copies and every U.2 of another sled", false, 2, func(t *testing.T, s *sled) {
			moved := created(t, 2, false)
			set(t, moved.open(t), fact("a", "2"))
			s.disks, s.witness = moved.disks, moved.witness
		}, "sure: 2", nil, nil, both(IsMember)},
		{"one copy twice", false, 2, twice, "refused: twice", []string{"there twice"}, []string{"there twice"}, both(IsDuplicate)},
		{"copies of two ledgers", false, 2, func(t *testing.T, s *sled) {
			s.put(t, s.disks[1].at.File(), made(t).Data())
		}, "refused: forked", []string{"of two ledgers"}, []string{"of two ledgers"}, both(IsForked)},
	}
}

func must2[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A file that was not opened for lack of descriptors is not a missing one.
func TestTooManyOpenFilesAreNoMissingCopy(t *testing.T) {
	s := created(t, 2, false)
	l, err := unopened(busyFiles{s}, s.places())
	try(t, err)
	if _, err = l.Read(t.Context()); !errors.Is(err, syscall.EMFILE) || errors.Is(err, ErrAbsent) || errors.Is(err, ErrMissing) {
		t.Errorf("read: %v", err)
	}
	if _, err = Check(t.Context(), busyFiles{s}, s.places()); !errors.Is(err, syscall.EMFILE) {
		t.Errorf("check: %v", err)
	}
}

// busyFiles has no descriptor left for the ledger.
type busyFiles struct{ host.Files }

func (b busyFiles) Open(name string, flag int, perm fs.FileMode) (host.File, error) {
	if path.Base(name) == fileName {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EMFILE}
	}
	return b.Files.Open(name, flag, perm)
}
