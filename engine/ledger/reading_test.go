package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/host"
)

// counter is the shortest story that goes wrong without one of the rules of
// reading: test/mutants leaves each out, and says what is shown then. Other than
// those of TestEachRuleIsNeeded it has a fault in it, of a disk or of who handles it,
// or marks that the model of a sled there has not.
type counter struct {
	name  string
	disks int
	// story begins behind a=1 (seq 2) and a=2 (seq 3), in another boot.
	story func(t *testing.T, s *sled)
	act   func(t *testing.T, s *sled) string // nil: shown
	right string
}

// again is a ledger nobody has looked at yet.
func (s *sled) reopened(t testing.TB) *Ledger {
	t.Helper()
	l, err := unopened(s, s.places())
	try(t, err)
	return l
}

// shown is what a reader makes of the disks.
func shown(t *testing.T, s *sled) string {
	t.Helper()
	return told(s.reopened(t).Read(t.Context()))
}

func told(v View, err error) string {
	for word, kind := range map[string]error{"rewound": ErrRewound, "damaged": ErrDamaged, "another sled's": ErrForeign, "forked": ErrForked, "twice": ErrTwins, "contradicted": ErrContradicted, "gone on": ErrSuperseded} {
		if errors.Is(err, kind) && (word != "gone on" || !errors.Is(err, ErrForeign)) {
			return "refused: " + word
		}
	}
	switch {
	case err != nil:
		return "refused: " + err.Error()
	case len(v.Unconfirmed()) > 0:
		return "unconfirmed: " + all(v)["a"]
	}
	return "sure: " + all(v)["a"]
}

// rewind takes the last lines of a file back.
func (s *sled) rewind(t testing.TB, d *disk, lines int) {
	t.Helper()
	x := s.open1(t, d)
	s.put(t, d.at.File(), firstLines(x, x.Len()-lines))
}

// spoil changes the end of a file.
func (s *sled) spoil(t testing.TB, d *disk, change func([]byte) []byte) {
	t.Helper()
	s.put(t, d.at.File(), change(bytes.Clone(s.content(t, d))))
}

func cut(n int) func([]byte) []byte { return func(data []byte) []byte { return data[:len(data)-n] } }

func flip(data []byte) []byte {
	data[len(data)-5] ^= 1
	return data
}

func garbage(data []byte) []byte { return append(data, "\x00\xffgarbage\n"...) }

func each(s *sled, do func(*disk)) {
	for _, d := range s.disks {
		do(d)
	}
}

func TestEachRuleOfReadingIsNeeded(t *testing.T) {
	for _, c := range counters() {
		t.Run(c.name, func(t *testing.T) {
			if c.act == nil {
				c.act = shown
			}
			s := created(t, c.disks, false)
			set(t, s.open(t), fact("a", "1"))
			set(t, s.open(t), fact("a", "2"))
			c.story(t, s.forgotten())
			if got := c.act(t, s); got != c.right {
				t.Errorf("%q, not %q", got, c.right)
			}
		})
	}
}

func counters() []counter {
	return slices.Concat(countersOfEnds(), countersOfMarks(), countersOfStamps())
}

func countersOfEnds() []counter {
	return []counter{
		{"a line without its newline counts", 1, func(t *testing.T, s *sled) {
			s.spoil(t, s.disks[0], cut(1))
		}, nil, "sure: 2"},
		{"garbage is not a line that was begun", 2, func(t *testing.T, s *sled) {
			s.spoil(t, s.disks[0], garbage)
		}, nil, "unconfirmed: 2"},
		{"what one copy holds is shown", 2, func(t *testing.T, s *sled) {
			s.rewind(t, s.disks[0], 1)
		}, nil, "unconfirmed: 2"},
		{"and may not be acknowledged", 2, func(t *testing.T, s *sled) {
			l := s.open(t)
			s.forgotten().disks[1].failing(0, errKilled, false)
			if _, err := l.Update(t.Context(), always(fact("a", "3"))); !errors.Is(err, ErrWriteFailed) {
				t.Fatal(err)
			}
			s.revive()
		}, nil, "unconfirmed: 3"},
		{"all ends torn", 2, func(t *testing.T, s *sled) {
			each(s, func(d *disk) { s.spoil(t, d, cut(20)) })
		}, nil, "unconfirmed: 1"},
		{"all ends damaged, read", 2, func(t *testing.T, s *sled) {
			each(s, func(d *disk) { s.spoil(t, d, flip) })
		}, nil, "refused: damaged"},
		{"all ends damaged, written", 2, func(t *testing.T, s *sled) {
			each(s, func(d *disk) { s.spoil(t, d, flip) })
		}, func(t *testing.T, s *sled) string {
			return told(s.reopened(t).Update(t.Context(), always(fact("b", "1"))))
		}, "refused: damaged"},
		{"what is cut stays readable", 2, func(t *testing.T, s *sled) {
			s.spoil(t, s.disks[1], garbage)
		}, func(t *testing.T, s *sled) string {
			spoiled := s.content(t, s.disks[1])
			set(t, s.reopened(t), fact("b", "1"))
			for _, name := range s.names(t, s.disks[1]) {
				data, err := host.ReadFile(s, s.disks[1].on(name))
				try(t, err)
				if strings.HasPrefix(name, "superseded-") && bytes.Equal(data, spoiled) {
					return "readable"
				}
			}
			return "gone"
		}, "readable"},
		{"a history that goes on beyond the end", 1, func(t *testing.T, s *sled) {
			outlive(t, s)
		}, nil, "refused: rewound"},
	}
}

func countersOfMarks() []counter {
	return []counter{
		{"the copy slept", 2, func(t *testing.T, s *sled) {
			s.disks[0].mounted = false
			set(t, s.degrade(t), fact("a", "3"))
			s.disks[0].mounted, s.disks[1].mounted = true, false
			s.forgotten()
		}, nil, "refused: gone on"},
		{"both disks of another sled", 2, func(_ *testing.T, s *sled) {
			s.witness.mark = &EpochTag{Ledger: "other", N: 1, Epoch: "other"}
		}, nil, "refused: another sled's"},
		{"a U.2 that comes back knows more", 2, func(t *testing.T, s *sled) {
			var before [2][]byte
			for i, d := range s.disks {
				before[i] = s.content(t, d)
			}
			s.disks[1].mounted = false
			set(t, s.degrade(t), fact("a", "3"))
			s.disks[1].mounted = true
			for i, d := range s.disks {
				s.put(t, d.at.File(), before[i])
			}
			s.forgotten().witness.forgets = true
			if got := shown(t, s); got != "sure: 2" {
				t.Errorf("without a U.2: %s", got)
			}
			s.witness.forgets = false
			try(t, host.MkdirAll(s.ram, "/pool/ext/101964cb", 0o755))
		}, nil, "refused: gone on"},
		{"a U.2 that comes back knows more than an open ledger", 2, func(*testing.T, *sled) {}, func(t *testing.T, s *sled) string {
			l := s.open(t)
			if got := told(l.Read(t.Context())); got != "sure: 2" {
				t.Errorf("without the U.2: %s", got)
			}
			s.witness.mark.N, s.witness.mark.Epoch = s.witness.mark.N+1, "later"
			try(t, host.MkdirAll(s.ram, "/pool/ext/101964cb", 0o755))
			return told(l.Read(t.Context()))
		}, "refused: gone on"},
	}
}

func countersOfStamps() []counter {
	return []counter{
		{"rewound while the sled is up", 2, func(t *testing.T, s *sled) {
			if got := shown(t, s); got != "sure: 2" {
				t.Error(got)
			}
			each(s, func(d *disk) { s.rewind(t, d, 1) })
		}, nil, "refused: rewound"},
		{"rewound in the boot of a stamp that was not finished", 2, func(t *testing.T, s *sled) {
			if got := shown(t, s); got != "sure: 2" {
				t.Error(got)
			}
			try(t, s.Append("/run/"+stampName, []byte(`{"ledger":"`)))
			if got := shown(t, s); got != "sure: 2" {
				t.Error(got)
			}
			set(t, s.reopened(t), fact("a", "3"))
			each(s, func(d *disk) { s.rewind(t, d, 1) })
		}, nil, "refused: rewound"},
		{"torn behind what this boot acknowledged", 2, func(t *testing.T, s *sled) {
			if got := shown(t, s); got != "sure: 2" {
				t.Error(got)
			}
			each(s, func(d *disk) { try(t, s.Append(d.at.File(), []byte(`{"hash":"1`))) })
		}, nil, "sure: 2"},
		{"killed as the members change, and rewound", 2, func(t *testing.T, s *sled) {
			if got := shown(t, s); got != "sure: 2" {
				t.Error(got)
			}
			try(t, s.Remove(s.disks[0].at.File()))
			var killed []byte
			s.witness.note = func() {
				if killed == nil {
					killed, _ = host.ReadFile(s, "/run/"+stampName)
				}
			}
			l := s.reopened(t)
			l.Degrade("test", "test")
			set(t, l, fact("a", "3"))
			s.rewind(t, s.disks[1], 2)
			s.put(t, "/run/"+stampName, killed)
		}, nil, "refused: gone on"},
	}
}

// outlive sets the first disk back to before a history file was written.
func outlive(t *testing.T, s *sled) {
	t.Helper()
	before := s.content(t, s.disks[0])
	l := s.open(t)
	l.limit = 0
	for n := range 20 {
		set(t, l, fact("a", fmt.Sprint(n)))
	}
	s.put(t, s.disks[0].at.File(), before)
	s.forgotten()
}

// Found by TestHistoriesOfChangingMembers: in the place of a member lies a copy that has left
// the ledger, as under a disk that is not mounted.
func TestWhatWasSureIsNotSureOnceACopyHasChanged(t *testing.T) {
	s := created(t, 2, false)
	d := s.disks[0]
	left := s.content(t, d)
	try(t, s.open(t).Leave(t.Context(), d.at.Directory, "test", "test"))
	try(t, s.open(t).Join(t.Context(), []Location{d.at}, "test", "test"))
	l := s.open(t)
	if v := set(t, l, fact("a", "1")); len(v.Warnings()) > 0 {
		t.Fatalf("warned %v", v.Warnings())
	}
	s.put(t, d.at.File(), left)
	for look := range 3 {
		v, err := l.Read(t.Context())
		if try(t, err); !warned(v, "is missing") {
			t.Errorf("look %d: members %v, warned %v", look, v.Members(), v.Warnings())
		}
	}
}
