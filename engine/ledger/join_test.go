package ledger

import (
	"errors"
	"strings"
	"testing"
)

// A copy that leaves must not be the only one that knows: it may be gone for good.
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
	if len(names) != 2 || !strings.HasPrefix(names[1], "superseded-") {
		t.Fatalf("files %v", names)
	}
	s.put(t, d.on("copy"), nil)
	try(t, s.Rename(d.on(names[1]), d.at.File()))
	if got := string(s.content(t, d)); got != "precious" {
		t.Errorf("set aside: %q", got)
	}
}

func TestTheLedgerMovesFromADirectoryToDisks(t *testing.T) {
	s := newSled(t, 2, true)
	p := s.places()
	p.Locations = p.Locations[:1]
	try(t, Create(t.Context(), s, p, Creation{Who: "test"}))
	l, _, err := Open(t.Context(), s, p)
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
