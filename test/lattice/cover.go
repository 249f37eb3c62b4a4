package lattice

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
)

// Row is one sled with its machines: a value for each dimension.
type Row struct {
	table  *Table
	values []int // by dimension
}

// Is is the value that a row has in a dimension.
func (r Row) Is(dimension string) string {
	d := slices.IndexFunc(r.table.Dimensions, func(d Dimension) bool { return d.Name == dimension })
	if d < 0 {
		panic("there is no dimension " + dimension)
	}
	return r.table.Dimensions[d].Values[r.values[d]]
}

// Has says whether the row's value is one of these.
func (r Row) Has(dimension string, values ...string) bool {
	return slices.Contains(values, r.Is(dimension))
}

// With is the row with other values. It panics where the table has none of them, or
// says that there never is such a sled.
func (r Row) With(values map[string]string) Row {
	row := slices.Clone(r.values)
	for name, value := range values {
		d := slices.IndexFunc(r.table.Dimensions, func(d Dimension) bool { return d.Name == name })
		if d < 0 || !slices.Contains(r.table.Dimensions[d].Values, value) {
			panic("there is no " + name + "=" + value)
		}
		row[d] = slices.Index(r.table.Dimensions[d].Values, value)
	}
	with := Row{r.table, row}
	if (&solver{r.table, r.table.rules()}).broken(row) {
		panic("never: " + with.String())
	}
	return with
}

// Plain is the row of first values.
func (t *Table) Plain() Row { return Row{t, make([]int, len(t.Dimensions))} }

// String is what is not the first of its dimension.
func (r Row) String() string {
	var words []string
	for d, v := range r.values {
		if v != 0 {
			words = append(words, r.table.Dimensions[d].Name+"="+r.table.Dimensions[d].Values[v])
		}
	}
	return strings.Join(words, ", ")
}

// Tuple are values of some dimensions.
type tuple struct {
	dimensions, values [3]int8 // of which the first n count
	n                  int8
}

// row is a sled of which only what the tuple says is decided.
func (t tuple) row(dimensions int) []int {
	row := slices.Repeat([]int{undecided}, dimensions)
	for i := range t.n {
		row[t.dimensions[i]] = int(t.values[i])
	}
	return row
}

const undecided = -1

// Tuples are all combinations of the values of n dimensions, up to three.
func (t *Table) tuples(n int) iter.Seq[tuple] {
	return func(yield func(tuple) bool) {
		var grow func(so tuple, from int) bool
		grow = func(so tuple, from int) bool {
			if int(so.n) == n {
				return yield(so)
			}
			for d := from; d < len(t.Dimensions); d++ {
				for v := range t.Dimensions[d].Values {
					next := so
					next.dimensions[so.n], next.values[so.n], next.n = int8(d), int8(v), so.n+1
					if !grow(next, d+1) {
						return false
					}
				}
			}
			return true
		}
		grow(tuple{}, 0)
	}
}

// rules are the nevers by numbers: for each dimension, which values.
func (t *Table) rules() [][][]bool {
	var all [][][]bool
	for _, n := range t.Never {
		rule := make([][]bool, len(t.Dimensions))
		for name, values := range n.Of {
			d := slices.IndexFunc(t.Dimensions, func(d Dimension) bool { return d.Name == name })
			if d < 0 {
				panic("never: there is no dimension " + name)
			}
			rule[d] = make([]bool, len(t.Dimensions[d].Values))
			for _, v := range values {
				i := slices.Index(t.Dimensions[d].Values, v)
				if i < 0 {
					panic(fmt.Sprintf("never: %s is never %s", name, v))
				}
				rule[d][i] = true
			}
		}
		all = append(all, rule)
	}
	return all
}

// solver finds sleds that there may be.
type solver struct {
	*Table
	never [][][]bool
}

// broken says whether what is decided is one of the nevers.
func (s *solver) broken(row []int) bool {
	return slices.ContainsFunc(s.never, func(rule [][]bool) bool {
		for d, values := range rule {
			if values != nil && (row[d] == undecided || !values[row[d]]) {
				return false
			}
		}
		return true
	})
}

// possible says whether a sled may be as it is decided so far.
func (s *solver) possible(row []int) bool {
	if s.broken(row) {
		return false
	}
	d := s.open(row)
	if d < 0 {
		return true
	}
	defer func() { row[d] = undecided }()
	for row[d] = range s.Dimensions[d].Values {
		if s.possible(row) {
			return true
		}
	}
	return false
}

// open is a dimension that is undecided.
func (s *solver) open(row []int) int {
	return slices.IndexFunc(row, func(v int) bool { return v == undecided })
}

// Cover is rows in which every combination of n values occurs that there may be.
// It is always the same.
func (t *Table) Cover(n int) []Row {
	s := &solver{t, t.rules()}
	missing := map[tuple]bool{}
	var order []tuple
	for tuple := range t.tuples(n) {
		if s.possible(tuple.row(len(t.Dimensions))) {
			missing[tuple] = true
			order = append(order, tuple)
		}
	}
	r := rand.New(rand.NewPCG(uint64(n), 13))
	var rows []Row
	for _, next := range order {
		if !missing[next] {
			continue
		}
		var best []int
		most := -1
		for range candidates {
			row := s.complete(next.row(len(t.Dimensions)), n, missing, r)
			if new := count(row, n, missing); new > most {
				best, most = row, new
			}
		}
		each(best, n, func(found tuple) { delete(missing, found) })
		rows = append(rows, Row{t, best})
	}
	return rows
}

// candidates is how many sleds each row is the best of.
const candidates = 12

// complete decides the rest of a sled, dimension by dimension in some order, for
// the value that brings most of what is missing.
func (s *solver) complete(row []int, n int, missing map[tuple]bool, r *rand.Rand) []int {
	for _, d := range r.Perm(len(row)) {
		if row[d] != undecided {
			continue
		}
		best, most := undecided, -1
		for _, v := range r.Perm(len(s.Dimensions[d].Values)) {
			row[d] = v
			if new := count(row, n, missing); new > most && s.possible(row) {
				best, most = v, new
			}
		}
		row[d] = best
	}
	return row
}

func count(row []int, n int, missing map[tuple]bool) (found int) {
	each(row, n, func(t tuple) {
		if missing[t] {
			found++
		}
	})
	return found
}

// each visits the tuples of what is decided of a row.
func each(row []int, n int, visit func(tuple)) {
	var grow func(so tuple, from int)
	grow = func(so tuple, from int) {
		if int(so.n) == n {
			visit(so)
			return
		}
		for d := from; d < len(row); d++ {
			if row[d] == undecided {
				continue
			}
			next := so
			next.dimensions[so.n], next.values[so.n], next.n = int8(d), int8(row[d]), so.n+1
			grow(next, d+1)
		}
	}
	grow(tuple{}, 0)
}

// Explored counts which combinations of n values occur in rows, and how many
// there may be.
func (t *Table) Explored(rows []Row, n int) (found, all int) {
	s := &solver{t, t.rules()}
	seen := map[tuple]bool{}
	for _, r := range rows {
		each(r.values, n, func(t tuple) { seen[t] = true })
	}
	for tuple := range t.tuples(n) {
		if s.possible(tuple.row(len(t.Dimensions))) {
			all++
			if seen[tuple] {
				found++
			}
		}
	}
	return found, all
}
