package world

import (
	"context"
	"encoding/json"
	"fmt"
)

// Touched is what a transaction may have changed of those parts of a State of which
// a sled has many. A store looks at these entries, and at those that are new or
// gone, when the transaction ends, and at no others. A nil *Touched notes nothing.
type Touched struct {
	zones     map[*Zone]bool
	links     map[*Link]bool
	processes map[*Process]bool
	datasets  map[string]bool // by full name: also one that was made, renamed or destroyed
	stacks    map[string]bool // by zone; also one that was made or dropped
	services  map[string]bool // by zone; the same
	around    bool            // NAPI or Nexus
}

func newTouched() *Touched {
	return &Touched{
		zones: map[*Zone]bool{}, links: map[*Link]bool{}, processes: map[*Process]bool{},
		datasets: map[string]bool{}, stacks: map[string]bool{}, services: map[string]bool{},
	}
}

// notes says whether a transaction's store wants to know what it touches.
func (tx *Tx) notes() bool { return tx.Write && tx.touched != nil }

// TouchZone notes that a zone is about to be changed. FindZone does so itself, and
// a zone that is new or gone needs no note.
func (tx *Tx) TouchZone(z *Zone) {
	if tx.notes() {
		tx.touched.zones[z] = true
	}
}

// TouchLink notes that a link is about to be changed. One that is new or gone needs no note.
func (tx *Tx) TouchLink(l *Link) {
	if tx.notes() {
		tx.touched.links[l] = true
	}
}

// TouchProcess notes that a process is about to be changed. One that is new or gone
// needs no note.
func (tx *Tx) TouchProcess(p *Process) {
	if tx.notes() {
		tx.touched.processes[p] = true
	}
}

// TouchDataset notes that what State.Datasets has under a name is about to be made,
// changed or removed.
func (tx *Tx) TouchDataset(name string) {
	tx.State.datasets.touch(name)
	if tx.notes() {
		tx.touched.datasets[name] = true
	}
}

// TouchStack notes that the IP stack of a zone is about to be made, changed or removed.
func (tx *Tx) TouchStack(zone string) {
	if tx.notes() {
		tx.touched.stacks[zone] = true
	}
}

// TouchServices notes that the SMF of a zone is about to be made, changed or removed.
func (tx *Tx) TouchServices(zone string) {
	if tx.notes() {
		tx.touched.services[zone] = true
	}
}

// TouchAround notes that NAPI or Nexus is about to be changed.
func (tx *Tx) TouchAround() {
	if tx.notes() {
		tx.touched.around = true
	}
}

// Checked makes every transaction prove that it has noted what it changed, for
// tests: complain is told what it did not. It costs an encoding of the whole sled,
// twice. It is set before the world is used; a clone does not inherit it.
func (w *World) Checked(complain func(what string)) *World {
	w.store = checked{w.store, complain}
	return w
}

type checked struct {
	store
	complain func(what string)
}

func (c checked) update(ctx context.Context, fn func(*State, *Touched) error) error {
	return c.store.update(ctx, func(s *State, touched *Touched) error {
		if touched == nil {
			touched = newTouched()
		}
		before := picture(s)
		defer func() {
			for _, what := range before.unnoted(picture(s), touched) {
				c.complain(what)
			}
		}()
		return fn(s, touched)
	})
}

// pictured is what each entry of a State is encoded as.
type pictured struct {
	zones                      map[*Zone]string
	links                      map[*Link]string
	processes                  map[*Process]string
	datasets, stacks, services map[string]string
	around                     string
}

func picture(s *State) pictured {
	s.DecodeAll()
	return pictured{
		zones: listed(s.Zones), links: listed(s.Links), processes: listed(s.Processes),
		datasets: named(s.Datasets), stacks: named(s.Stacks), services: named(s.Services),
		around: shown([]any{s.NAPI, s.Nexus}),
	}
}

func shown(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // It is stored in this form.
	}
	return string(data)
}

func listed[T any](all []*T) map[*T]string {
	out := map[*T]string{}
	for _, one := range all {
		out[one] = shown(one)
	}
	return out
}

func named[T any](all map[string]*T) map[string]string {
	out := map[string]string{}
	for name, one := range all {
		out[name] = shown(one)
	}
	return out
}

// unnoted is what differs afterwards although nobody has noted it.
func (p pictured) unnoted(after pictured, touched *Touched) []string {
	all := changedEntries("zone", p.zones, after.zones, touched.zones)
	all = append(all, changedEntries("link", p.links, after.links, touched.links)...)
	all = append(all, changedEntries("process", p.processes, after.processes, touched.processes)...)
	all = append(all, changedNames("dataset", p.datasets, after.datasets, touched.datasets)...)
	all = append(all, changedNames("stack", p.stacks, after.stacks, touched.stacks)...)
	all = append(all, changedNames("services", p.services, after.services, touched.services)...)
	if p.around != after.around && !touched.around {
		all = append(all, "NAPI or Nexus")
	}
	return all
}

// changedEntries are those that are there before and after: stores see by the list what is
// new or gone.
func changedEntries[T any](kind string, before, after map[*T]string, noted map[*T]bool) (all []string) {
	for one, was := range before {
		if is, there := after[one]; there && is != was && !noted[one] {
			all = append(all, fmt.Sprintf("%s: %s became %s", kind, was, is))
		}
	}
	return all
}

func changedNames(kind string, before, after map[string]string, noted map[string]bool) (all []string) {
	for name, was := range before {
		if is := after[name]; is != was && !noted[name] {
			all = append(all, fmt.Sprintf("%s %s: %s became %s", kind, name, was, is))
		}
	}
	for name := range after {
		if _, there := before[name]; !there && !noted[name] {
			all = append(all, fmt.Sprintf("%s %s is new", kind, name))
		}
	}
	return all
}
