package ledger

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/sledctl/sledctl/engine/ledger/format"
)

func TestCreateMakesEveryCopyAMember(t *testing.T) {
	s := created(t, 2, true)
	v := must(t)(s.open(t).Read(t.Context()))
	if m := v.Members(); len(m) != 3 || m[0].Pool != "" || m[1].Pool != "pool0" || m[2].Pool != "pool1" {
		t.Errorf("members %v", m)
	}
	if e := v.Epoch(); e.N != 1 || e.Who != "test" || v.Seq() != 1 || len(all(v)) > 0 {
		t.Errorf("epoch %+v, seq %d, %v", e, v.Seq(), all(v))
	}
	if s.witness.mark == nil || s.witness.mark.Epoch != v.Epoch().ID {
		t.Errorf("witnessed: %v", s.witness.mark)
	}
	for _, d := range s.disks {
		if names := s.names(t, d); len(names) != 1 || names[0] != "ledger.jsonl" {
			t.Errorf("%s holds %v", d.at.Directory, names)
		}
	}
}

func TestCreateRefusesWhereSomethingIs(t *testing.T) {
	for _, content := range []string{"", "rubbish", "a ledger"} {
		s := newSled(t, 2, false)
		d := s.disks[1]
		if content == "a ledger" {
			content = string(made(t, []Fact{fact("a", "1")}).Data())
		}
		try(t, s.Mkdir(d.at.Directory, 0o755))
		s.put(t, d.at.File(), []byte(content))
		err := Create(t.Context(), s, s.places(), Creation{Who: "test"})
		if !errors.Is(err, ErrExists) {
			t.Fatalf("%.10q: %v", content, err)
		}
		if string(s.content(t, d)) != content {
			t.Errorf("%.10q was replaced", content)
		}
		if _, err := s.Stat(s.disks[0].at.File()); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%.10q: a copy was made next to it", content)
		}
	}
	s := created(t, 2, false)
	if err := Create(t.Context(), s, s.places(), Creation{Who: "test"}); !errors.Is(err, ErrExists) {
		t.Errorf("twice: %v", err)
	}
}

func TestCreateNeedsEveryPlace(t *testing.T) {
	s := newSled(t, 2, false)
	s.disks[1].mounted = false
	err := Create(t.Context(), s, s.places(), Creation{Who: "test"})
	if !errors.Is(err, ErrNotMounted) {
		t.Errorf("got %v", err)
	}
	if _, err := s.Stat(s.disks[0].at.File()); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a copy was made")
	}
	if err := Create(t.Context(), s, Places{Lock: "/run/l"}, Creation{Who: "test"}); err == nil {
		t.Error("created nowhere")
	}
}

func TestCreateRefusesWhatIsWitnessed(t *testing.T) {
	s := newSled(t, 1, false)
	s.witness.mark = &EpochTag{Ledger: "old", N: 3, Epoch: "x"}
	err := Create(t.Context(), s, s.places(), Creation{Who: "test"})
	explains(t, err, ErrSuperseded, "old", "epoch 3")
}

// A creation that was killed, or lost its power, at any of its changes is
// finished by the next, with the ids that it began with.
func TestAKilledCreationIsFinished(t *testing.T) {
	for _, power := range []bool{false, true} {
		for cut := range 3 {
			unfinished := 0
			for disk := range 2 {
				for kill := 0; ; kill++ {
					s := newSled(t, 2, false)
					s.disks[disk].failing(kill, errKilled, kill%2 == 0)
					err := Create(t.Context(), s, s.places(), Creation{Who: "first"})
					s.revive()
					if power {
						s.powerCut(func(n int) int { return cut * (n - 1) / 2 })
					}
					_, _, openErr := Open(t.Context(), s, s.places())
					if err != nil && openErr == nil {
						if _, uerr := s.open(t).Update(t.Context(), always(fact("a", "1"))); errors.Is(uerr, ErrMissing) {
							unfinished++
							explains(t, uerr, ErrMissing, "never finished")
							if hint(uerr) != "to complete the ledger, run: sledctl bootstrap" {
								t.Errorf("hint %q", hint(uerr))
							}
						}
					}
					again := Create(t.Context(), s, s.places(), Creation{Who: "second"})
					if again != nil && !errors.Is(again, ErrExists) {
						t.Fatalf("disk %d, change %d: %v", disk, kill, again)
					}
					set(t, s.open(t), fact("b", "1"))
					if err == nil {
						break
					}
				}
			}
			if unfinished == 0 {
				t.Errorf("power %v, cut %d: no creation was interrupted halfway", power, cut)
			}
		}
	}
}

// With any doubt a half-made ledger is left alone.
func TestWhatIsNotSurelyAnInterruptedCreationIsNotFinished(t *testing.T) {
	half := func() *sled {
		for kill := 0; ; kill++ {
			s := newSled(t, 2, false)
			s.disks[1].failing(kill, errKilled, false)
			if err := Create(t.Context(), s, s.places(), Creation{Who: "test"}); err == nil {
				t.Fatal("never half-made")
			}
			s.revive()
			if _, err := s.Stat(s.disks[0].at.File()); err == nil {
				return s
			}
		}
	}
	for name, doubt := range map[string]func(s *sled){
		"the prepared file is gone": func(s *sled) { try(t, s.Remove(s.disks[1].at.File()+firstSuffix)) },
		"it is another ledger's":    func(s *sled) { s.put(t, s.disks[1].at.File()+firstSuffix, made(t).Data()) },
		"it is broken":              func(s *sled) { s.put(t, s.disks[1].at.File()+firstSuffix, []byte("x")) },
		"facts were written": func(s *sled) {
			x, err := format.Verify(s.content(t, s.disks[0]), nil)
			try(t, err)
			s.put(t, s.disks[0].at.File(), grown(t, x, fact("a", "1")).Data())
		},
		"one more place": func(s *sled) {
			s.disks = append(s.disks, newDisk(Location{Directory: "/var/sledctl"}, "/var", 9))
			try(t, s.Mkdir("/var/sledctl", 0o755))
			s.put(t, "/var/sledctl/ledger.jsonl"+firstSuffix, s.content(t, s.disks[0]))
		},
	} {
		s := half()
		doubt(s)
		before := s.content(t, s.disks[0])
		if err := Create(t.Context(), s, s.places(), Creation{Who: "test"}); !errors.Is(err, ErrExists) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := s.Stat(s.disks[1].at.File()); err == nil || string(before) != string(s.content(t, s.disks[0])) {
			t.Errorf("%s: something was made", name)
		}
	}
}
