package ledger

import (
	"bytes"
	"errors"
	"io/fs"
	"syscall"
	"testing"

	"github.com/sledctl/sledctl/engine/ledger/format"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/hosttest"
)

// trouble makes the second disk's copy unusable in some way.
var trouble = []struct {
	name string
	make func(t *testing.T, s *sled, d *disk)
	why  error
}{
	{"unmounted", func(t *testing.T, s *sled, d *disk) { d.mounted = false }, ErrNotMounted},
	{"unmounted, with a file below", func(t *testing.T, s *sled, d *disk) {
		data := s.content(t, d)
		d.mounted = false
		try(t, host.MkdirAll(s, d.at.Directory, 0o755))
		s.put(t, d.at.File(), data)
	}, ErrNotMounted},
	{"blank", func(t *testing.T, s *sled, d *disk) { d.format() }, errNoFile},
	{"empty", func(t *testing.T, s *sled, d *disk) { s.put(t, d.at.File(), nil) }, ErrBroken},
	{"broken", func(t *testing.T, s *sled, d *disk) {
		data := s.content(t, d)
		data[len(data)/2] ^= 1
		s.put(t, d.at.File(), data)
	}, ErrBroken},
	{"unreadable", func(t *testing.T, s *sled, d *disk) {
		d.files.Fail(func(op, name string) error {
			if op == "open" {
				return syscall.EIO
			}
			return nil
		})
	}, syscall.EIO},
	{"not to be flushed", func(t *testing.T, s *sled, d *disk) { d.failing(0, syscall.EIO, false) }, syscall.EIO},
	{"a directory", func(t *testing.T, s *sled, d *disk) {
		try(t, s.Remove(d.at.File()))
		try(t, s.Mkdir(d.at.File(), 0o755))
	}, syscall.EISDIR},
}

func TestAMissingMemberStopsWritersAndWarnsReaders(t *testing.T) {
	for _, test := range trouble {
		t.Run(test.name, func(t *testing.T) {
			s := created(t, 2, false)
			set(t, s.open(t), fact("a", "1"))
			d := s.disks[1]
			test.make(t, s, d)
			before := s.content(t, s.disks[0])
			l := s.open(t)
			v := must(t)(l.Read(t.Context()))
			if all(v)["a"] != "1" || !warned(v, "pool1", "missing") {
				t.Errorf("read %v, warned %v", all(v), v.Warnings())
			}
			if m := v.Members(); len(m) != 2 || m[0].Err != nil || m[0].File == "" || !errors.Is(m[1].Err, test.why) {
				t.Errorf("members %v", m)
			}
			_, err := l.Update(t.Context(), always(fact("a", "2")))
			explains(t, err, ErrMissing, "pool1", s.disks[0].at.File(), "seq 2")
			if !errors.Is(err, test.why) {
				t.Errorf("%v does not say %v", err, test.why)
			}
			if !bytes.Equal(before, s.content(t, s.disks[0])) {
				t.Error("something was written")
			}
		})
	}
}

// Nothing that cannot be read is ever taken for empty, and nothing is repaired
// by looking at it.
func TestWithoutACopyThereIsNothing(t *testing.T) {
	for _, test := range trouble {
		t.Run(test.name, func(t *testing.T) {
			s := created(t, 1, false)
			d := s.disks[0]
			test.make(t, s, d)
			_, _, err := Open(t.Context(), s, s.places())
			explains(t, err, ErrAbsent, d.at.File())
			if !errors.Is(err, test.why) {
				t.Errorf("%v does not say %v", err, test.why)
			}
		})
	}
	_, _, err := Open(t.Context(), newSled(t, 0, false), Places{Lock: "/run/lock"})
	if !errors.Is(err, ErrAbsent) {
		t.Errorf("without places: %v", err)
	}
}

func TestAReturnedMemberIsBroughtUp(t *testing.T) {
	tests := []struct {
		name  string
		lines int // that the second copy lacks
		torn  int // bytes of the next line that it has
	}{
		{"one line", 1, 0}, {"three lines", 3, 0}, {"a torn line", 1, 20}, {"more and a torn line", 2, 20}, {"only a torn end", 0, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := created(t, 2, false)
			l := s.open(t)
			for _, n := range []string{"1", "2", "3", "4"} {
				set(t, l, fact("a", n))
			}
			d := s.disks[1]
			data := s.content(t, d)
			x, err := format.Verify(bytes.Clone(data), nil)
			try(t, err)
			end := len(firstLines(x, x.Len()-test.lines))
			data = append(append(bytes.Clone(data), data[:1]...)[:max(end+test.torn, end)], []byte(nil)...)
			s.put(t, d.at.File(), data)
			v := must(t)(s.open(t).Read(t.Context()))
			doubt := []string{"", "is not on", "2 lines behind", "3 lines behind"}[test.lines]
			if v.Seq() != 5 || warned(v, "unconfirmed", doubt) != (test.lines > 0) {
				t.Errorf("a reader sees %d, not what the best copy holds; %v", v.Seq(), v.Warnings())
			}
			if !bytes.Equal(data, s.content(t, d)) {
				t.Error("a reader changed the file")
			}
			v, err = s.open(t).Update(t.Context(), func(v View) ([]Fact, error) {
				if all(v)["a"] != "4" {
					t.Errorf("a writer sees %v", all(v))
				}
				return []Fact{fact("b", "1")}, nil
			})
			try(t, err)
			if _, a, _ := cutOff(s.content(t, s.disks[0])); !bytes.HasSuffix(s.content(t, d), a) || v.Seq() != 6 {
				t.Errorf("the copies differ, at %d", v.Seq())
			}
		})
	}
}

func TestATornEndOfTheOnlyCopyIsCut(t *testing.T) {
	s := created(t, 1, false)
	set(t, s.open(t), fact("a", "1"))
	d := s.disks[0]
	try(t, s.Append(d.at.File(), []byte(`{"hash":"123`)))
	l := s.open(t)
	if v := set(t, l, fact("b", "1")); v.Seq() != 3 || all(v)["a"] != "1" {
		t.Errorf("seq %d, %v", v.Seq(), all(v))
	}
	if _, err := format.Verify(s.content(t, d), nil); err != nil {
		t.Error(err)
	}
}

func TestWhatAReaderShowsIsOnDisk(t *testing.T) {
	for name, next := range map[string]func(l *Ledger) error{
		"one line, appended": func(l *Ledger) error {
			_, err := l.Update(t.Context(), always(fact("a", "2")))
			return err
		},
		"a rewrite": func(l *Ledger) error {
			l.limit = 0
			for range 6 {
				if _, err := l.Update(t.Context(), always(fact("a", "3"))); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			for kill := range 60 {
				s := created(t, 1, false)
				d := s.disks[0]
				set(t, s.open(t), fact("a", "1"))
				l := s.open(t)
				d.failing(kill, errKilled, true)
				err := next(l)
				s.revive()
				shown := must(t)(s.open(t).Read(t.Context()))
				s.powerCut(func(int) int { return 0 })
				after := must(t)(s.open(t).Read(t.Context()))
				if after.Head() != shown.Head() {
					t.Fatalf("killed after %d changes: shown %v, then %v", kill, shown.Head(), after.Head())
				}
				if err == nil {
					return
				}
			}
			t.Error("never done")
		})
	}
}

func TestForkedCopiesAreRefusedByAll(t *testing.T) {
	s := created(t, 2, false)
	set(t, s.open(t), fact("a", "1"))
	first, second := s.disks[0], s.disks[1]
	x, err := format.Verify(s.content(t, second), nil)
	try(t, err)
	s.put(t, first.at.File(), append(s.content(t, first), format.EncodeLine(x.Head(), 1, noon, []Fact{fact("a", "2")})...))
	s.put(t, second.at.File(), append(s.content(t, second), format.EncodeLine(x.Head(), 1, noon, []Fact{fact("a", "3")})...))
	before := s.content(t, first)
	_, _, err = Open(t.Context(), s, s.places())
	explains(t, err, ErrForked, first.at.File(), second.at.File(), "seq 3")
	f, ok := errors.AsType[*ForkedError](err)
	if !ok || f.BestHead.Seq != 3 || f.OtherHead.Seq != 3 || f.BestHead == f.OtherHead || f.BestEpoch.N != 1 {
		t.Errorf("%+v", f)
	}
	if err := Create(t.Context(), s, s.places(), Creation{Who: "test"}); !errors.Is(err, ErrExists) {
		t.Errorf("create: %v", err)
	}
	if !bytes.Equal(before, s.content(t, first)) {
		t.Error("something was written")
	}
}

func TestOneCopyTwiceIsRefused(t *testing.T) {
	s := created(t, 2, false)
	set(t, s.open(t), fact("a", "1"))
	s.put(t, s.disks[1].at.File(), s.content(t, s.disks[0]))
	_, _, err := Open(t.Context(), s, s.places())
	explains(t, err, ErrTwins, s.disks[0].at.File(), s.disks[1].at.File())
}

func TestAFileOfAnotherSledIsRefused(t *testing.T) {
	s := created(t, 2, false)
	s.put(t, s.disks[1].at.File(), made(t).Data())
	_, _, err := Open(t.Context(), s, s.places())
	explains(t, err, ErrForked, s.disks[1].at.File(), "two ledgers")
}

func TestABrokenFileInNobodysPlaceIsAWarning(t *testing.T) {
	s := created(t, 1, false)
	s.disks = append(s.disks, newDisk(OnPool("more"), "/pool/int/more/config", 9))
	try(t, host.MkdirAll(s.ram, "/pool/int/more", 0o755))
	try(t, s.Mkdir(s.disks[1].at.Directory, 0o755))
	s.put(t, s.disks[1].at.File(), []byte("rubbish"))
	v := set(t, s.open(t), fact("a", "1"))
	if !warned(v, s.disks[1].at.File(), "broken") {
		t.Errorf("warned %v", v.Warnings())
	}
}

func TestAPlainDirectoryNeedNotBeMounted(t *testing.T) {
	f := hosttest.Memory()
	p := Places{Lock: "/run/l", Locations: []Location{{Directory: "/var/lib/sledctl"}}}
	try(t, Create(t.Context(), f, p, Creation{Who: "test"}))
	l, _, err := Open(t.Context(), f, p)
	try(t, err)
	set(t, l, fact("a", "1"))
	p.Locations[0].Pool = "pool"
	_, _, err = Open(t.Context(), f, p)
	explains(t, err, ErrAbsent, "/var/lib/sledctl", "not mounted")
	if _, err := f.Stat("/var/lib/sledctl/ledger.jsonl"); errors.Is(err, fs.ErrNotExist) {
		t.Error("it was removed")
	}
}
