package world

import "fmt"

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

func (t *table[T]) take(s *State, read map[string][]byte) error {
	all := t.of(s)
	for name, data := range read {
		if data == nil {
			delete(all, name)
			continue
		}
		one := all[name]
		if one == nil {
			one = new(T)
			all[name] = one
		} else {
			*one = *new(T)
		}
		if err := decodeInto(data, one); err != nil {
			return fmt.Errorf("%s/%s: %w", t.kind, name, err)
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

func (e *single[T]) take(s *State, read map[string][]byte) error {
	at := e.of(s)
	for _, data := range read {
		if *at = nil; data == nil {
			continue
		}
		*at = new(T)
		if err := decodeInto(data, *at); err != nil {
			return fmt.Errorf("%s: %w", e.kind, err)
		}
	}
	return nil
}
