package world

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"
)

// The index is what a look at every dataset gives, after each change, whether it is
// asked before the change, after it, or when the transaction is over.
func TestTheIndexIsThatOfAllDatasets(t *testing.T) {
	draw := rand.New(rand.NewPCG(5, 6))
	s := &State{Datasets: map[string]*Dataset{}}
	names := []string{"p", "p/a", "p/a/b", "p/a-b", "p/a0", "p/a@s", "p/a@t", "p/a/b@s", "q", "q/c", "12:p/a", "p/ab"}
	dirs := []string{"", "", "/", "/a", "/a/b", "/a-b", "/a0", "/c", "/a/b/c"}
	for range 3000 {
		tx := NewTx(s, time.Time{}, nil)
		if draw.IntN(3) == 0 {
			s.datasets.settle(s)
		}
		for range draw.IntN(4) {
			name := names[draw.IntN(len(names))]
			tx.TouchDataset(name)
			if draw.IntN(2) == 0 {
				tx.Datasets()
			}
			d := s.Datasets[name]
			switch draw.IntN(5) {
			case 4:
				if d != nil {
					d.Local = map[string]string{"mountpoint": []string{"/m", "legacy"}[draw.IntN(2)]}
				}
			case 0:
				delete(s.Datasets, name)
			case 1:
				s.Datasets[name] = &Dataset{Name: name, Created: draw.Uint64N(9), GUID: draw.Uint64()}
			case 2:
				to := names[draw.IntN(len(names))]
				if d != nil && s.Datasets[to] == nil {
					delete(s.Datasets, name)
					tx.TouchDataset(to)
					d.Name, s.Datasets[to] = to, d
				}
			case 3:
				if dir := dirs[draw.IntN(len(dirs))]; d != nil && (dir == "" || tx.MountedAt(dir) == nil) {
					d.Mounted = dir
				}
			}
		}
		same(t, tx)
	}
}

// Who goes through the datasets and makes some meanwhile, sees those that there were.
func TestWhatIsListedStaysAsItIs(t *testing.T) {
	s := &State{Datasets: map[string]*Dataset{}}
	tx := NewTx(s, time.Time{}, nil)
	add := func(name string) {
		tx.TouchDataset(name)
		s.Datasets[name] = &Dataset{Name: name}
	}
	for i := range 9 {
		add(fmt.Sprintf("p/m%d", i))
		listed := tx.Datasets()
		was := slices.Clone(listed)
		add(fmt.Sprintf("p/a%d", i))
		tx.Datasets()
		if !slices.Equal(listed, was) {
			t.Fatalf("after %d, what was listed has changed", i)
		}
	}
}

func same(t *testing.T, tx *Tx) {
	t.Helper()
	all := slices.SortedFunc(func(yield func(*Dataset) bool) {
		for _, d := range tx.State.Datasets {
			if !yield(d) {
				return
			}
		}
	}, CompareNames)
	which := func(take func(*Dataset) bool) (names []string) {
		for _, d := range all {
			if take(d) {
				names = append(names, d.Name)
			}
		}
		return names
	}
	expect := func(what string, got []*Dataset, want []string) {
		t.Helper()
		var names []string
		for _, d := range got {
			names = append(names, d.Name)
		}
		if !slices.Equal(names, want) {
			t.Fatalf("%s: %q, want %q", what, names, want)
		}
	}
	expect("all", tx.Datasets(), which(func(*Dataset) bool { return true }))
	expect("with a mountpoint", tx.WithMountpoint(), which(func(d *Dataset) bool { return d.Local["mountpoint"] == "/m" }))
	for _, d := range all {
		if tx.WithGUID(d.GUID) != d || tx.WithGUID(d.GUID+1) != nil {
			t.Fatalf("with the GUID of %s is %v", d.Name, tx.WithGUID(d.GUID))
		}
	}
	for _, name := range []string{"p", "p/a", "q", "12:p", "none"} {
		own, below := tx.DatasetsOf(name)
		expect(name, own, which(func(d *Dataset) bool { return d.Name == name || strings.HasPrefix(d.Name, name+"@") }))
		expect("below "+name, below, which(func(d *Dataset) bool { return strings.HasPrefix(d.Name, name+"/") }))
	}
	for _, dir := range []string{"/", "/a", "/a/b", "/b"} {
		mounted := all
		slices.SortStableFunc(mounted, func(a, b *Dataset) int { return cmp.Compare(a.Mounted, b.Mounted) })
		expect(fmt.Sprint("mounted below ", dir), tx.MountsBelow(dir), which(func(d *Dataset) bool {
			return d.Mounted != dir && strings.HasPrefix(d.Mounted, path.Join(dir, "x")[:len(path.Join(dir, "x"))-1])
		}))
		for _, d := range all {
			if d.Mounted == dir && tx.MountedAt(dir) != d {
				t.Fatalf("on %s is %v, want %v", dir, tx.MountedAt(dir), d)
			}
		}
	}
}
