package world

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// A state in a file consists of entries, each with a key of its own: one per zone,
// link, disk, pool, dataset, IP stack, SMF, process, event and fault; "napi" and
// "nexus"; and "head", which holds what is left. An entry of a list has a number in
// its key, KIND/NUMBER: numbers rise along the list and are not used again. One of
// a map has its name there, KIND/NAME.

// entries are the entries of a state as they are stored.
type entries struct {
	head   *State // a copy of what "head" holds
	groups map[string]group
	shapes shapes
}

// group is the entries of one kind.
type group interface {
	// note writes down what differs from what is stored, as far as it was touched;
	// everything if touched is nil.
	note(s *State, touched *Touched, out *writer) error
	// take brings a state up to date with what was read, by what follows the kind in
	// the key.
	take(s *State, read []entry, all shapes) error
}

func newEntries() *entries {
	return &entries{shapes: shapes{}, groups: map[string]group{
		"zone":    zoneList(),
		"link":    newList("link", func(s *State) *[]*Link { return &s.Links }, func(t *Touched) map[*Link]bool { return t.links }),
		"process": newList("process", func(s *State) *[]*Process { return &s.Processes }, func(t *Touched) map[*Process]bool { return t.processes }),
		"disk":    newList("disk", func(s *State) *[]*Disk { return &s.Disks }, nil),
		"pool":    newList("pool", func(s *State) *[]*Pool { return &s.Pools }, nil),
		"fault":   newList("fault", func(s *State) *[]*Fault { return &s.Faults }, nil),
		"due":     &agenda{newList("due", func(s *State) *[]*Event { return &s.Due }, func(*Touched) map[*Event]bool { return nil })},
		"dataset": &table[Dataset]{"dataset", func(s *State) map[string]*Dataset { return s.Datasets }, func(t *Touched) map[string]bool { return t.datasets }},
		"stack":   &table[Stack]{"stack", func(s *State) map[string]*Stack { return s.Stacks }, func(t *Touched) map[string]bool { return t.stacks }},
		"smf":     &smfTable{table[Repository]{"smf", func(s *State) map[string]*Repository { return s.Services }, func(t *Touched) map[string]bool { return t.services }}},
		"napi":    &single[NAPI]{"napi", func(s *State) **NAPI { return &s.NAPI }},
		"nexus":   &single[Nexus]{"nexus", func(s *State) **Nexus { return &s.Nexus }},
	}}
}

// note writes down what of a state differs from what is stored.
func (e *entries) note(s *State, touched *Touched, out *writer) error {
	if now := s.headOnly(); e.head == nil || touched == nil || !reflect.DeepEqual(now, e.head) {
		if e.head = now.clone(); out.put("head", now) != nil {
			return out.err
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(e.groups)) {
		if err := e.groups[kind].note(s, touched, out); err != nil {
			return err
		}
	}
	return nil
}

// take brings a state up to date with entries that were read.
func (e *entries) take(s *State, read []entry) error {
	by := map[string][]entry{}
	for _, one := range read {
		kind, name, _ := strings.Cut(one.key, "/")
		if kind == "head" {
			if err := e.takeHead(s, one.text); err != nil {
				return err
			}
			continue
		}
		if e.groups[kind] == nil {
			return fmt.Errorf("it has %q, which this program does not know", one.key)
		}
		one.key = name
		by[kind] = append(by[kind], one)
	}
	return e.takeGroups(s, by, len(read))
}

// few is how many entries one goroutine reads before others could have begun.
const few = 500

// takeGroups reads the kinds side by side if there is much to read: each has a part of
// the state of its own.
func (e *entries) takeGroups(s *State, by map[string][]entry, count int) error {
	var errs []error
	if count < few {
		for kind, read := range by {
			errs = append(errs, e.groups[kind].take(s, read, e.shapes))
		}
		return errors.Join(errs...)
	}
	errs = make([]error, len(by))
	var all sync.WaitGroup
	for i, kind := range slices.Sorted(maps.Keys(by)) {
		all.Go(func() { errs[i] = e.groups[kind].take(s, by[kind], shapes{}) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func (e *entries) takeHead(s *State, text string) error {
	h := &State{}
	if err := e.shapes.decode(text, h); err != nil {
		return err
	}
	if h.Counters == nil {
		h.Counters = map[string]uint64{}
	}
	e.head = h.clone()
	h.parts(s)
	*s = *h
	return nil
}

// headOnly is what of a state has no entry of its own.
func (s *State) headOnly() *State {
	h := *s
	h.parts(&State{})
	return &h
}

// parts gives a state what another one has entries for.
func (s *State) parts(of *State) {
	s.Version, s.undecoded, s.datasets = of.Version, of.undecoded, of.datasets
	s.Zones, s.Links, s.Disks, s.Pools, s.Processes, s.Due, s.Faults = of.Zones, of.Links, of.Disks, of.Pools, of.Processes, of.Due, of.Faults
	s.Datasets, s.Stacks, s.Services, s.NAPI, s.Nexus = of.Datasets, of.Stacks, of.Services, of.NAPI, of.Nexus
}
