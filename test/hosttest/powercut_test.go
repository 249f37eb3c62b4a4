package hosttest_test

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/hosttest"
	"github.com/sledctl/sledctl/test/hosttest/expect"
)

// cuts looks at the file system after many different power cuts.
func cuts(t *testing.T, p *hosttest.PowerCutFiles, look func(after *hosttest.PowerCutFiles)) {
	t.Helper()
	look(p.Cut(func(int) int { return 0 }))
	look(p.Cut(func(n int) int { return n - 1 }))
	for seed := range uint64(200) {
		look(p.Cut(rand.New(rand.NewPCG(seed, 0)).IntN))
	}
}

// outcomes are the contents that a file may have after a cut; "-" is absence.
func outcomes(t *testing.T, p *hosttest.PowerCutFiles, name string) map[string]bool {
	t.Helper()
	seen := map[string]bool{}
	cuts(t, p, func(after *hosttest.PowerCutFiles) {
		data, err := host.ReadFile(after, name)
		if errors.Is(err, fs.ErrNotExist) {
			data = []byte("-")
		} else {
			expect.OK(t, err)
		}
		seen[string(data)] = true
	})
	return seen
}

func TestPowerCutKeepsWhatWasFlushed(t *testing.T) {
	p := hosttest.PowerCuts()
	expect.Put(t, p, "/a", "one")
	expect.OK(t, p.Sync("/a"))
	if seen := outcomes(t, p, "/a"); !seen["-"] || !seen["one"] || len(seen) != 2 {
		t.Errorf("name not flushed: %v", seen)
	}
	expect.OK(t, p.SyncDir("/"))
	if seen := outcomes(t, p, "/a"); !seen["one"] || len(seen) != 1 {
		t.Errorf("all flushed: %v", seen)
	}
}

func TestPowerCutTearsAppends(t *testing.T) {
	p := hosttest.PowerCuts()
	expect.Put(t, p, "/a", "first.")
	p.Settle()
	expect.OK(t, p.Append("/a", []byte("second.")))
	seen := outcomes(t, p, "/a")
	for _, want := range []string{"first.", "first.second.", "first.sec"} {
		if !seen[want] {
			t.Errorf("never %q", want)
		}
	}
	for text := range seen {
		if !strings.HasPrefix(text, "first.") || !strings.HasPrefix("first.second.", text) {
			t.Errorf("%q lost what was flushed, or was never written", text)
		}
	}
	expect.OK(t, p.Sync("/a"))
	if seen := outcomes(t, p, "/a"); len(seen) != 1 {
		t.Errorf("flushed: %v", seen)
	}
}

func TestPowerCutReordersAppends(t *testing.T) {
	p := hosttest.PowerCuts()
	expect.Put(t, p, "/a", "")
	p.Settle()
	expect.OK(t, p.Append("/a", []byte("12")))
	expect.OK(t, p.Append("/a", []byte("34")))
	if seen := outcomes(t, p, "/a"); !seen["\x00\x0034"] {
		t.Errorf("the second append is never there without the first: %v", seen)
	}
}

func TestPowerCutForgetsRenames(t *testing.T) {
	p := hosttest.PowerCuts()
	expect.Put(t, p, "/a", "old")
	expect.Put(t, p, "/b", "new")
	p.Settle()
	expect.OK(t, p.Rename("/b", "/a"))
	cuts(t, p, func(after *hosttest.PowerCutFiles) {
		a, err := host.ReadFile(after, "/a")
		expect.OK(t, err)
		_, err = after.Stat("/b")
		if happened := err != nil; happened != (string(a) == "new") {
			t.Errorf("a is %q, and b: %v", a, err)
		}
	})
	if seen := outcomes(t, p, "/a"); len(seen) != 2 {
		t.Errorf("got %v", seen)
	}
}

// Renaming a file that was not flushed is the classic mistake.
func TestPowerCutEmptiesAFileRenamedBeforeItWasFlushed(t *testing.T) {
	p := hosttest.PowerCuts()
	expect.Put(t, p, "/a", "old")
	p.Settle()
	expect.Put(t, p, "/b", "new")
	expect.OK(t, p.Rename("/b", "/a"))
	expect.OK(t, p.SyncDir("/"))
	if seen := outcomes(t, p, "/a"); !seen[""] || !seen["new"] || seen["old"] {
		t.Errorf("got %v", seen)
	}
}

func TestPowerCutLosesDirectoriesThatWereNotFlushed(t *testing.T) {
	p := hosttest.PowerCuts()
	expect.OK(t, p.Mkdir("/dir", 0o755))
	expect.Put(t, p, "/dir/a", "x")
	expect.OK(t, p.Sync("/dir/a"))
	expect.OK(t, p.SyncDir("/dir"))
	if seen := outcomes(t, p, "/dir/a"); !seen["-"] || !seen["x"] || len(seen) != 2 {
		t.Errorf("got %v", seen)
	}
}

func TestPowerCutRemovesADirectoryOnlyWhenEmpty(t *testing.T) {
	p := hosttest.PowerCuts()
	expect.OK(t, p.Mkdir("/dir", 0o755))
	expect.Put(t, p, "/dir/a", "x")
	p.Settle()
	expect.OK(t, p.Rename("/dir/a", "/a"))
	expect.OK(t, p.Remove("/dir"))
	cuts(t, p, func(after *hosttest.PowerCutFiles) {
		_, dir := after.Stat("/dir")
		_, old := after.Stat("/dir/a")
		_, moved := after.Stat("/a")
		if dir != nil && moved != nil || (old == nil) == (moved == nil) {
			t.Errorf("dir: %v, dir/a: %v, a: %v", dir, old, moved)
		}
	})
}

func TestPowerCutMayForgetAMode(t *testing.T) {
	p := hosttest.PowerCuts()
	expect.Put(t, p, "/a", "x")
	p.Settle()
	expect.OK(t, p.Chmod("/a", 0o400))
	modes := map[fs.FileMode]bool{}
	look := func(after *hosttest.PowerCutFiles) {
		info, err := after.Stat("/a")
		expect.OK(t, err)
		modes[info.Mode] = true
	}
	cuts(t, p, look)
	if len(modes) != 2 {
		t.Errorf("got %v", modes)
	}
	expect.OK(t, p.Sync("/a"))
	clear(modes)
	cuts(t, p, look)
	if len(modes) != 1 {
		t.Errorf("flushed: %v", modes)
	}
}

func TestPowerCutDropsLocksAndGoesOn(t *testing.T) {
	p := hosttest.PowerCuts()
	expect.OK(t, p.Mkdir("/dir", 0o755))
	expect.OK(t, p.SetDevice("/dir", 5))
	l, err := p.Lock(t.Context(), "/lock", host.LockExclusive)
	expect.OK(t, err)
	defer l.Unlock()
	p.Settle()
	after := p.Cut(func(int) int { return 0 })
	other, err := after.Lock(t.Context(), "/lock", host.TryExclusive)
	expect.OK(t, err)
	expect.OK(t, other.Unlock())
	info, err := after.Stat("/dir")
	expect.OK(t, err)
	if info.Device != 5 {
		t.Errorf("the mountpoint is on device %d", info.Device)
	}

	expect.OK(t, after.Append("/lock", []byte("x")))
	expect.OK(t, after.Sync("/lock"))
	again := after.Cut(func(int) int { return 0 })
	expect.Holds(t, again, "/lock", "x")
	expect.Holds(t, p, "/lock", "")
}

// WriteFile's promise: after a power cut at any of its steps the file holds
// the old contents or the new, and the new ones once it has returned.
func TestWriteFileSurvivesAPowerCut(t *testing.T) {
	const before, later = "the old contents", "the new contents, which are longer"
	for steps := 0; ; steps++ {
		p := hosttest.PowerCuts()
		expect.Put(t, p, "/a", before)
		p.Settle()
		done := 0
		p.Fail(func(op, name string) error {
			if done++; done > steps {
				return errors.New("power")
			}
			return nil
		})
		err := host.WriteFile(p, "/a", []byte(later), 0o644)
		p.Fail(nil)
		for text := range outcomes(t, p, "/a") {
			if text != later && (text != before || err == nil) {
				t.Errorf("after %d steps (%v): %q", steps, err, text)
			}
		}
		if err == nil {
			if steps < 5 {
				t.Errorf("WriteFile takes %d steps: too few to be durable", steps)
			}
			return
		}
	}
}
