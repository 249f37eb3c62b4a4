package reservoir

import (
	"errors"
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/test/hosttest"
)

// Output as do_query of usr/src/cmd/rsrvrctl/rsrvrctl.c prints it.
const printed = "Free MiB:\t1024\nAllocated MiB:\t3072\nTransient Allocated MiB:\t16\nSize limit MiB:\t838860\n"

func TestParse(t *testing.T) {
	got, err := Parse([]byte(printed))
	if want := (State{1 << 30, 3 << 30, 16 << 20, 838860 << 20}); err != nil || got != want || got.Size() != 4<<30 {
		t.Errorf("%+v, %v", got, err)
	}
	for name, text := range map[string]string{
		"nothing":          "",
		"an older release": "Free KiB:\t1024\nAllocated KiB:\t0\nTransient Allocated KiB:\t0\nSize limit KiB:\t9\n",
		"a line short":     "Free MiB:\t1024\nAllocated MiB:\t0\n",
		"no number":        "Free MiB:\tmuch\nAllocated MiB:\t0\nTransient Allocated MiB:\t0\nSize limit MiB:\t9\n",
		"too much":         "Free MiB:\t99999999999999999\nAllocated MiB:\t0\nTransient Allocated MiB:\t0\nSize limit MiB:\t9\n",
		"twice":            printed + "Free MiB:\t1024\n",
	} {
		if got, err := Parse([]byte(text)); !errors.Is(err, ErrSyntax) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestMemoryIsWhatPrtconfTells(t *testing.T) {
	for said, want := range map[string]uint64{"1048064\n": 1048064 << 20, "0\n": 0, "": 0, "much\n": 0, "-1\n": 0, "99999999999999999\n": 0} {
		got, err := parseMemory([]byte(said))
		if got != want || (err == nil) != (want > 0) || err != nil && !errors.Is(err, ErrMemory) {
			t.Errorf("%q: %d, %v", said, got, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(printed)
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := Parse([]byte(text)); err == nil && s.Free%(1<<20) != 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestCommandLines(t *testing.T) {
	if got, want := queryCommand().Shell(), "rsrvrctl -q"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := setCommand(64<<30+5).Shell(), "rsrvrctl -s 65536"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestSetAndUndoOnASled(t *testing.T) {
	sled := sim.New(sim.Options{}, hosttest.Files)
	t.Cleanup(sled.Close)
	size := func() uint64 {
		t.Helper()
		s, err := Query(t.Context(), sled.Host())
		if err != nil {
			t.Fatal(err)
		}
		return s.Size()
	}
	step := Set{Size: 64 << 30, Old: size()}
	if err := step.Do(t.Context(), sled.Host()); err != nil || size() != 64<<30 {
		t.Errorf("size %d, %v", size(), err)
	}
	if err := step.Undo().(Set).Do(t.Context(), sled.Host()); err != nil || size() != 0 {
		t.Errorf("undone: size %d, %v", size(), err)
	}
	err := Set{Size: 1 << 50}.Do(t.Context(), sled.Host())
	if !errors.Is(err, ErrLimit) || !errors.Is(err, host.ErrRefused) {
		t.Errorf("more than there is: %v", err)
	}
}
