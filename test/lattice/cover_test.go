package lattice

import (
	"reflect"
	"testing"
)

func TestRowsCoverEveryPair(t *testing.T) {
	table := Sleds()
	rows := table.Cover(2)
	found, all := table.Explored(rows, 2)
	if found != all || all == 0 {
		t.Errorf("%d of %d pairs", found, all)
	}
	if again := table.Cover(2); !reflect.DeepEqual(rows, again) {
		t.Error("the second time the rows are others")
	}
	triples, of := table.Explored(rows, 3)
	t.Logf("%d rows: %d pairs, and %d of %d triples", len(rows), all, triples, of)
	if fewer, _ := table.Explored(rows[:len(rows)-1], 2); fewer == all {
		t.Error("the last row brings nothing")
	}
}

func TestRowsCoverEveryTriple(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds; pairs are quick")
	}
	table := Sleds()
	rows := table.Cover(3)
	found, all := table.Explored(rows, 3)
	t.Logf("%d rows: %d triples", len(rows), all)
	if found != all {
		t.Errorf("%d of %d triples", found, all)
	}
}

// No row is what the table says never is.
func TestNoRowIsNever(t *testing.T) {
	table := Sleds()
	for _, r := range table.Cover(2) {
		for _, n := range table.Never {
			all := true
			for d, values := range n.Of {
				all = all && r.Has(d, values...)
			}
			if all {
				t.Errorf("%v: %s", r, n.Why)
			}
		}
	}
}

// What cannot be combined says why: no two or three values exclude each other
// because of rules about others.
func TestWhatIsNeverSaysWhy(t *testing.T) {
	table := Sleds()
	s := &solver{&table, table.rules()}
	for n := 1; n <= 3; n++ {
		for tuple := range table.tuples(n) {
			row := tuple.row(len(table.Dimensions))
			if !s.possible(row) && !s.broken(row) {
				t.Errorf("%v cannot be, and the table does not say why", Row{&table, row}.decided())
			}
		}
	}
}

func (r Row) decided() (words []string) {
	for d, v := range r.values {
		if v != undecided {
			words = append(words, r.table.Dimensions[d].Name+"="+r.table.Dimensions[d].Values[v])
		}
	}
	return words
}
