package ledger

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/go-cmp/cmp"
)

// laws is what must be true whatever happens to processes, power and disks.
// Each append writes, next to its own facts, the list of all appends that it was
// made on, so that any view shows which ones it holds. Of these lists:
//
//   - what was acknowledged or shown stays, at its place;
//   - what was refused, overtaken or given up never appears;
//   - the other facts are what these appends amount to.
type laws struct {
	facts func(n int) []Fact // of append n
	stray bool               // some disk is not what it was

	// The lists are never changed in place.
	refused []int // appends that must never appear
	shown   []int // the longest list that was shown or acknowledged
	maybe   []int // written by someone who could not tell, since shown grew
	head    Head  // of the last view that was shown whole
}

const opsKey = "ops"

// opName is the name of an append in the list. All names are of one length.
func opName(n int) string { return fmt.Sprintf("op%06d", n) }

// listed is the appends that a view holds.
func listed(v View) ([]int, error) {
	value, ok := v.Get(opsKey)
	if !ok {
		return nil, nil
	}
	var names []string
	if err := json.Unmarshal(value, &names); err != nil {
		return nil, err
	}
	ops := make([]int, len(names))
	for i, name := range names {
		if _, err := fmt.Sscanf(name, "op%d", &ops[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return ops, nil
}

// list is the fact that says which appends were made.
func list(ops []int) Fact {
	names := make([]string, len(ops))
	for i, n := range ops {
		names[i] = opName(n)
	}
	value, err := json.Marshal(names)
	if err != nil {
		panic(err) // strings only
	}
	return Fact{Key: opsKey, Value: value}
}

// see checks a view that anyone sees. A reader may see more than was acknowledged;
// it never sees less than was shown. What is unconfirmed does not count as shown,
// and may be less where a member is missing, since that one may know more, or
// behind a change of the members of which the witness has not heard. With strict
// members that are missing are only away for a while, and nobody has changed them.
// No disk has lost anything that was flushed, so nothing may look as if.
func (w *laws) see(v View, strict bool) error {
	ops, err := listed(v)
	if err != nil {
		return err
	}
	if err := w.amounts(v, ops); err != nil {
		return err
	}
	missing := slices.ContainsFunc(v.Members(), func(s Member) bool { return s.Err != nil })
	if missing != warned(v, "is missing") {
		return fmt.Errorf("members %v, warned %v", v.Members(), v.Warnings())
	}
	doubted := warned(v, "is not confirmed")
	if strict && doubted {
		return fmt.Errorf("healthy disks are doubted: %v", v.Warnings())
	}
	for _, word := range []string{"rewound", "are no line", "ask the witness"} {
		if warned(v, word) && !w.stray {
			return fmt.Errorf("healthy disks are doubted: %v", v.Warnings())
		}
	}
	if !strict && (missing || doubted) {
		return nil
	}
	if len(ops) < len(w.shown) || !slices.Equal(ops[:len(w.shown)], w.shown) {
		return fmt.Errorf("appends %v were shown, now %v", w.shown, ops)
	}
	for _, n := range ops[len(w.shown):] {
		if !slices.Contains(w.maybe, n) {
			return fmt.Errorf("append %d appears, which was overtaken: %v, shown were %v, possible are %v", n, ops, w.shown, w.maybe)
		}
	}
	if len(v.Unconfirmed()) > 0 {
		return nil
	}
	if now := v.Head(); now.Seq < w.head.Seq || now.Seq == w.head.Seq && now != w.head {
		return fmt.Errorf("line %v was shown, now the last is %v: a number was given twice", w.head, now)
	}
	w.shown, w.head = ops, v.Head()
	return nil
}

// amounts checks what a view holds next to the list.
func (w *laws) amounts(v View, ops []int) error {
	var made [][]Fact
	for _, n := range ops {
		if slices.Contains(w.refused, n) {
			return fmt.Errorf("append %d appears, which was refused: %v", n, ops)
		}
		made = append(made, w.facts(n))
	}
	got := all(v)
	delete(got, opsKey)
	if diff := cmp.Diff(replayed(made), got); diff != "" {
		return fmt.Errorf("appends %v: %s", ops, diff)
	}
	return nil
}

// decide is what append n writes on what it sees. From then on, what its view
// does not hold has been overtaken.
func (w *laws) decide(n int, v View) ([]Fact, error) {
	ops, err := listed(v)
	w.maybe = slices.Concat(ops, []int{n})
	return append(slices.Clone(w.facts(n)), list(w.maybe)), err
}

// acknowledged checks that append n is the last that was shown.
func (w *laws) acknowledged(n int) error {
	if len(w.shown) == 0 || w.shown[len(w.shown)-1] != n {
		return fmt.Errorf("append %d was acknowledged, shown is %v", n, w.shown)
	}
	return nil
}

// keep makes what a view holds the only truth: the rest was given up.
func (w *laws) keep(v View) error {
	ops, err := listed(v)
	for _, n := range slices.Concat(w.shown, w.maybe) {
		if !slices.Contains(ops, n) {
			w.refused = slices.Concat(w.refused, []int{n})
		}
	}
	w.shown, w.maybe, w.head = ops, nil, v.Head()
	return err
}

// waver is a keep that may have been done: what it was to give up is there or
// not.
func (w *laws) waver(kept []int) {
	n := 0
	for n < min(len(kept), len(w.shown)) && kept[n] == w.shown[n] {
		n++
	}
	w.maybe = slices.Concat(w.maybe, w.shown[n:], kept[n:])
	w.shown, w.head = w.shown[:n:n], Head{}
}
