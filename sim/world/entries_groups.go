package world

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
)

// list is the entries of a list.
type list[T any] struct {
	kind   string
	of     func(*State) *[]*T
	noted  func(*Touched) map[*T]bool // nil: there are few, and each is compared with its copy
	copies map[*T]*T
	number map[*T]uint64
	by     map[uint64]*T
	stored []*T
	last   uint64
	loose  bool        // the order of numbers is not that of the list
	pack   func(*T) *T // what is stored of one; nil: all
	unpack func(*T)
}

func newList[T any](kind string, of func(*State) *[]*T, noted func(*Touched) map[*T]bool) *list[T] {
	return &list[T]{kind: kind, of: of, noted: noted, copies: map[*T]*T{}, number: map[*T]uint64{}, by: map[uint64]*T{}}
}

// zoneList stores a configuration once that a zone was booted with and still has.
func zoneList() *list[Zone] {
	l := newList("zone", func(s *State) *[]*Zone { return &s.Zones }, func(t *Touched) map[*Zone]bool { return t.zones })
	l.pack = func(z *Zone) *Zone {
		if z.Kernel == nil || !reflect.DeepEqual(z.Config, z.Kernel.Config) {
			return z
		}
		stored, kernel := *z, *z.Kernel
		kernel.Config, stored.Kernel = Config{}, &kernel
		return &stored
	}
	l.unpack = func(z *Zone) {
		if z.Kernel != nil && reflect.ValueOf(z.Kernel.Config).IsZero() {
			z.Kernel.Config = z.Config // neither is changed but as a whole
		}
	}
	return l
}

func (l *list[T]) packed(one *T) *T {
	if l.pack == nil {
		return one
	}
	return l.pack(one)
}

func (l *list[T]) key(n uint64) string { return l.kind + "/" + strconv.FormatUint(n, 10) }

func (l *list[T]) note(s *State, touched *Touched, out *writer) error {
	now := *l.of(s)
	if !slices.Equal(now, l.stored) {
		l.renumber(now, out)
	}
	switch {
	case touched == nil:
		for _, one := range now {
			out.put(l.key(l.number[one]), l.packed(one))
		}
	case l.noted != nil:
		for one := range l.noted(touched) {
			if n, there := l.number[one]; there {
				out.put(l.key(n), l.packed(one))
			}
		}
	default:
		for _, one := range now {
			if !reflect.DeepEqual(one, l.copies[one]) {
				out.put(l.key(l.number[one]), l.packed(one))
				l.copy(one)
			}
		}
	}
	return out.err
}

func (l *list[T]) copy(one *T) {
	if l.noted == nil {
		l.copies[one] = deep(reflect.ValueOf(one)).Interface().(*T)
	}
}

// renumber gives numbers to what is new or stands elsewhere, and drops what is gone.
func (l *list[T]) renumber(now []*T, out *writer) {
	stays := make(map[*T]bool, len(now))
	before := uint64(0)
	for _, one := range now {
		stays[one] = true
		n, known := l.number[one]
		if known && (l.loose || n > before) {
			before = n
			continue
		}
		if known {
			l.drop(one, out)
		}
		l.last++
		before = l.last
		l.enter(one, l.last)
		out.put(l.key(l.last), l.packed(one))
	}
	for _, one := range l.stored {
		if !stays[one] {
			l.drop(one, out)
		}
	}
	l.stored = slices.Clone(now)
}

func (l *list[T]) enter(one *T, n uint64) {
	l.number[one], l.by[n], l.last = n, one, max(l.last, n)
	l.copy(one)
}

func (l *list[T]) drop(one *T, out *writer) {
	out.drop(l.key(l.number[one]))
	l.leave(one)
}

func (l *list[T]) leave(one *T) {
	delete(l.by, l.number[one])
	delete(l.number, one)
	delete(l.copies, one)
}

func (l *list[T]) take(s *State, read []entry, shapes shapes) error {
	all := l.of(s)
	gone := map[*T]bool{}
	before := l.last
	for _, e := range read {
		n, err := strconv.ParseUint(e.key, 10, 64)
		if err != nil {
			return fmt.Errorf("%s/%s: %w", l.kind, e.key, err)
		}
		one := l.by[n]
		if e.gone {
			if one != nil {
				gone[one] = true
				l.leave(one)
			}
			continue
		}
		if one == nil {
			one = new(T)
			*all = append(*all, one)
		} else {
			*one = *new(T)
		}
		if err := shapes.decode(e.text, one); err != nil {
			return fmt.Errorf("%s/%s: %w", l.kind, e.key, err)
		}
		if l.unpack != nil {
			l.unpack(one)
		}
		l.enter(one, n)
	}
	if len(gone) > 0 {
		*all = slices.DeleteFunc(*all, func(one *T) bool { return gone[one] })
	}
	if l.last > before {
		slices.SortFunc(*all, func(a, b *T) int { return cmp.Compare(l.number[a], l.number[b]) })
	}
	l.stored = slices.Clone(*all)
	return nil
}

// agenda is the list of what is due, in the order of time: an event that is new may come
// before others, but not before one of its own moment. No event is ever changed.
type agenda struct{ *list[Event] }

func (a *agenda) note(s *State, touched *Touched, out *writer) error {
	a.loose = true
	return a.list.note(s, touched, out)
}

func (a *agenda) take(s *State, read []entry, shapes shapes) error {
	if err := a.list.take(s, read, shapes); err != nil {
		return err
	}
	slices.SortFunc(s.Due, func(x, y *Event) int {
		return cmp.Or(x.At.Compare(y.At), cmp.Compare(a.number[x], a.number[y]))
	})
	a.stored = slices.Clone(s.Due)
	return nil
}

// table is the entries of a map.
type table[T any] struct {
	kind  string
	of    func(*State) map[string]*T
	noted func(*Touched) map[string]bool
}

func (t *table[T]) note(s *State, touched *Touched, out *writer) error {
	all := t.of(s)
	if touched == nil {
		for name, one := range all {
			out.put(t.kind+"/"+name, one)
		}
		return out.err
	}
	for name := range t.noted(touched) {
		if one := all[name]; one != nil {
			out.put(t.kind+"/"+name, one)
		} else {
			out.drop(t.kind + "/" + name)
		}
	}
	return out.err
}

func (t *table[T]) take(s *State, read []entry, shapes shapes) error {
	all := t.of(s)
	for _, e := range read {
		if t.kind == "dataset" {
			s.datasets.touch(e.key)
		}
		if e.gone {
			delete(all, e.key)
			continue
		}
		one := all[e.key]
		if one == nil {
			one = new(T)
			all[e.key] = one
		} else {
			*one = *new(T)
		}
		if err := shapes.decode(e.text, one); err != nil {
			return fmt.Errorf("%s/%s: %w", t.kind, e.key, err)
		}
	}
	return nil
}

// single is an entry of which there is one or none.
type single[T any] struct {
	kind string
	of   func(*State) **T
}

func (e *single[T]) note(s *State, touched *Touched, out *writer) error {
	switch one := *e.of(s); {
	case touched != nil && !touched.around:
	case one != nil:
		out.put(e.kind, one)
	default:
		out.drop(e.kind)
	}
	return out.err
}

func (e *single[T]) take(s *State, read []entry, shapes shapes) error {
	at := e.of(s)
	for _, one := range read {
		if *at = nil; one.gone {
			continue
		}
		*at = new(T)
		if err := shapes.decode(one.text, *at); err != nil {
			return fmt.Errorf("%s: %w", e.kind, err)
		}
	}
	return nil
}
