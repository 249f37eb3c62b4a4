package format

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// shows is what a text holds.
func shows(t testing.TB, x *Text) map[string]string {
	t.Helper()
	facts, err := x.Facts()
	try(t, err)
	out := map[string]string{}
	for key, value := range facts.All("") {
		out[key] = string(value)
	}
	return out
}

func TestARewriteKeepsWhatIsLive(t *testing.T) {
	tests := []struct {
		name    string
		appends [][]Fact
		kept    []uint64 // numbers of lines; 1 is the epoch line
	}{
		{"nothing is dead", [][]Fact{{fact("a", "1")}, {fact("b", "1")}}, []uint64{1, 2, 3}},
		{"an old value", [][]Fact{{fact("a", "1")}, {fact("a", "2")}}, []uint64{1, 3}},
		{"a removed key", [][]Fact{{fact("a", "1")}, {gone("a")}, {fact("b", "1")}}, []uint64{1, 4}},
		{"a line that is live by its other fact", [][]Fact{{fact("a", "1"), fact("b", "1")}, {fact("a", "2")}}, []uint64{1, 2, 3}},
		{"a removal of what such a line holds", [][]Fact{{fact("a", "1"), fact("b", "1")}, {gone("a")}}, []uint64{1, 2, 3}},
		{"only the last removal", [][]Fact{{fact("a", "1"), fact("b", "1")}, {gone("a")}, {fact("a", "2")}, {gone("a")}}, []uint64{1, 2, 5}},
		{"a removal that a value followed", [][]Fact{{fact("a", "1"), fact("b", "1")}, {gone("a")}, {fact("a", "2")}}, []uint64{1, 2, 4}},
		{"a removal that keeps another line",
			[][]Fact{{fact("a", "1"), fact("b", "1")}, {gone("a"), fact("c", "1")}, {gone("c")}}, []uint64{1, 2, 3, 4}},
		{"a key twice in one line", [][]Fact{{fact("a", "1"), gone("a")}, {fact("a", "1"), fact("a", "2")}}, []uint64{1, 3}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			x := made(t, test.appends...)
			y := rewritten(t, x)
			var kept []uint64
			for i, at := range y.lines {
				kept = append(kept, at.seq)
				j, _ := x.find(at.seq)
				if string(y.Line(i)) != string(x.Line(j)) {
					t.Errorf("line %d was changed", at.seq)
				}
			}
			if diff := cmp.Diff(test.kept, kept); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(shows(t, x), shows(t, y)); diff != "" || y.Head() != x.Head() {
				t.Errorf("head %v, was %v: %s", y.Head(), x.Head(), diff)
			}
		})
	}
}

func TestRandomRewritesChangeNothing(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		x := made(t)
		var appends [][]Fact
		for n := range 40 {
			var facts []Fact
			for range 1 + r.IntN(3) {
				f := gone(fmt.Sprint("k", r.IntN(8)))
				if r.IntN(3) > 0 {
					f.Value = []byte(fmt.Sprint(n))
				}
				facts = append(facts, f)
			}
			appends = append(appends, facts)
			x = grown(t, x, facts...)
			if r.IntN(6) == 0 {
				head := x.Head()
				if x = rewritten(t, x); x.Head() != head || len(x.Epochs) != 1 {
					t.Fatalf("seed %d: the head moved", seed)
				}
			}
			if diff := cmp.Diff(replayed(appends), shows(t, x)); diff != "" {
				t.Fatalf("seed %d, append %d: %s", seed, n, diff)
			}
		}
	}
}

func TestAnIndexThatGrowsIsTheSameAsANewOne(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	x := made(t)
	for n := range 500 {
		f := gone(fmt.Sprint("k", r.IntN(60)))
		if r.IntN(4) > 0 {
			f.Value = []byte(fmt.Sprint(n))
		}
		x = grown(t, x, f, fact("last", fmt.Sprint(n)))
		grownIndex, err := x.indexed()
		try(t, err)
		y, err := Verify(x.data, nil)
		try(t, err)
		fresh, err := y.indexed()
		try(t, err)
		if grownIndex.dead != fresh.dead || !slices.Equal(grownIndex.live, fresh.live) || !maps.Equal(grownIndex.all(x.data), fresh.all(y.data)) {
			t.Fatalf("append %d: the indexes differ", n)
		}
		if diff := cmp.Diff(fresh.under(y.data, "k"), grownIndex.under(x.data, "k"), cmp.AllowUnexported(ranked{}, place{})); diff != "" {
			t.Fatalf("append %d: what opens with a prefix differs:\n%s", n, diff)
		}
	}
}

// all is every place by its key.
func (x *index) all(data []byte) map[string]place {
	all := map[string]place{}
	for _, layer := range x.layers {
		for _, p := range layer.places {
			key := string(p.name(data))
			if at, ok := x.get(data, key); ok {
				all[key] = at
			}
		}
	}
	return all
}

// replayed is what the appends amount to.
func replayed(appends [][]Fact) map[string]string {
	out := map[string]string{}
	for _, facts := range appends {
		for _, f := range facts {
			if f.Value == nil || string(f.Value) == "null" {
				delete(out, f.Key)
			} else {
				out[f.Key] = string(f.Value)
			}
		}
	}
	return out
}
