package hosttest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
)

// shake does something to a file system.
func shake(p *PowerCutFiles, r *rand.Rand) {
	name := func() string { return fmt.Sprintf("/d%d/f%d", r.IntN(2), r.IntN(2)) }
	switch r.IntN(8) {
	case 0:
		_ = p.Mkdir(fmt.Sprintf("/d%d", r.IntN(2)), 0o755)
	case 1:
		if f, err := p.Open(name(), os.O_CREATE|os.O_WRONLY, 0o644); err == nil {
			f.Write([]byte(fmt.Sprint(r.IntN(1000))))
			f.Close()
		}
	case 2:
		_ = p.Append(name(), []byte(fmt.Sprint(r.IntN(1000))))
	case 3:
		_ = p.Rename(name(), name())
	case 4:
		_ = p.Remove(name())
	case 5:
		_ = p.Sync(name())
	case 6:
		_ = p.SyncDir(fmt.Sprintf("/d%d", r.IntN(2)))
	case 7:
		_ = p.SyncDir("/")
	}
}

// Whatever was done, the clone is described as the original is, survives a
// power cut as it does, and goes its own way.
func TestACloneOfAFileSystemIsAnotherOne(t *testing.T) {
	differ := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := PowerCuts()
		for range r.IntN(40) {
			shake(p, r)
		}
		before := p.Describe()
		c := p.Clone()
		if !bytes.Equal(before, c.Describe()) {
			t.Fatalf("seed %d:\n%s\nclone:\n%s", seed, before, c.Describe())
		}
		choose := func() func(int) int { return rand.New(rand.NewPCG(seed, 2)).IntN }
		if a, b := p.Cut(choose()).Describe(), c.Cut(choose()).Describe(); !bytes.Equal(a, b) {
			t.Fatalf("seed %d, after a power cut:\n%s\nclone:\n%s", seed, a, b)
		}
		for range 20 {
			shake(c, r)
		}
		if !bytes.Equal(before, p.Describe()) {
			t.Fatalf("seed %d: the original changed with its clone", seed)
		}
		if !bytes.Equal(before, c.Describe()) {
			differ++
		}
	}
	if differ < 200 {
		t.Errorf("only %d clones were changed", differ)
	}
}

func TestADescriptionTellsWhatIsCertain(t *testing.T) {
	p := PowerCuts()
	f, err := p.Open("/a", os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	seen := map[string]bool{}
	for _, step := range []func() error{
		func() error { return nil },
		func() error { return p.SyncDir("/") },
		func() error { return p.Append("/a", []byte("x")) },
		func() error { return p.Sync("/a") },
		func() error { return p.Rename("/a", "/b") },
		func() error { return p.SyncDir("/") },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
		seen[string(p.Describe())] = true
	}
	if len(seen) != 6 {
		t.Errorf("%d descriptions of 6 states", len(seen))
	}
}
