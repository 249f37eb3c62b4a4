// Package steptest is what every step of a host resource promises (plan.Step), as one
// suite of tests. The packages of host resources run it over their steps, each on a
// sled where it succeeds.
package steptest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
)

// Step is plan.Step, which the packages of host resources do not import.
type Step interface {
	Verb() string
	Explain() []host.Line
	Do(ctx context.Context, h host.Host) error
	Undo() any
}

// Case is a step, with what is to be expected of it.
type Case struct {
	// Name tells it from another of the same verb; may be empty.
	Name string
	Step Step
	// Sled is a new one on which the step succeeds.
	Sled func(t *testing.T) Sled
	// Again is the kind of the error of a second time, or ErrUnnamed. Nil: what is done is
	// no error, as for a step that sets something.
	Again error
	// NoFailure: nothing that it changes can make it fail, or it changes nothing.
	NoFailure bool
	// Kinds are those that the step's package gives to errors, besides host's.
	Kinds []error
	// Bubble: each test has a clock of its own (testing/synctest), for a step that waits.
	Bubble bool
}

// Sled is what a step is done on.
type Sled struct {
	Host host.Host
	// State is all that the step may change, so that two states can be compared.
	State func() any
}

// ErrUnnamed is any error: one whose kind nobody decides on.
var ErrUnnamed = errors.New("an error")

// Conform holds steps to what they promise: they do what they explain, in that order; undone, all is as it was;
// a second time is an error of a kind, and changes nothing; and if a change that they make, be it a command, a request
// or a file, fails with a text that nobody knows, their error has that text and no kind.
func Conform(t *testing.T, cases ...Case) {
	t.Helper()
	for _, c := range cases {
		t.Run(strings.TrimSpace(c.Step.Verb()+" "+c.Name), func(t *testing.T) {
			c.run(t, "does what it explains", c.explained)
			if c.Step.Undo() != nil {
				c.run(t, "undone, all is as it was", c.undone)
			}
			c.run(t, "a second time", c.repeated)
			if !c.NoFailure {
				c.run(t, "an unknown text has no kind", c.unknown)
			}
		})
	}
}

// run is t.Run, in a bubble where the case wants one.
func (c Case) run(t *testing.T, name string, test func(*testing.T)) {
	t.Run(name, func(t *testing.T) {
		if c.Bubble {
			synctest.Test(t, test)
			return
		}
		test(t)
	})
}

// Does does steps one after the other, which must succeed and change exactly what they explain.
func Does(t testing.TB, h host.Host, steps ...Step) {
	t.Helper()
	for _, s := range steps {
		var changes []host.Line
		traced := host.Trace(h, func(e host.Event) {
			if e.Line.Mutates() {
				changes = append(changes, e.Line)
			}
		})
		if err := s.Do(t.Context(), traced); err != nil {
			t.Fatalf("%s: %v", s.Verb(), err)
		}
		var explained []host.Line
		for _, l := range s.Explain() {
			if l.Mutates() {
				explained = append(explained, l.Short())
			}
		}
		if diff := cmp.Diff(explained, changes); diff != "" {
			t.Errorf("%s does not do what it explains (-explained +done):\n%s", s.Verb(), diff)
		}
	}
}

func (c Case) explained(t *testing.T) { Does(t, c.Sled(t).Host, c.Step) }

func (c Case) undone(t *testing.T) {
	sled := c.Sled(t)
	before := sled.State()
	undo, ok := c.Step.Undo().(Step)
	if !ok {
		t.Fatalf("%T is no step", c.Step.Undo())
	}
	if err := c.Step.Do(t.Context(), sled.Host); err != nil {
		t.Fatal(err)
	}
	if cmp.Equal(before, sled.State()) {
		t.Fatal("the state does not show what the step does")
	}
	Does(t, sled.Host, undo)
	if diff := cmp.Diff(before, sled.State()); diff != "" {
		t.Errorf("after %s (-before +after):\n%s", undo.Verb(), diff)
	}
}

func (c Case) repeated(t *testing.T) {
	sled := c.Sled(t)
	if err := c.Step.Do(t.Context(), sled.Host); err != nil {
		t.Fatal(err)
	}
	before := sled.State()
	err := c.Step.Do(t.Context(), sled.Host)
	if (err == nil) != (c.Again == nil) || c.Again != nil && c.Again != ErrUnnamed && !errors.Is(err, c.Again) {
		t.Errorf("%v, want %v", err, c.Again)
	}
	if diff := cmp.Diff(before, sled.State()); diff != "" {
		t.Errorf("it changes something (-before +after):\n%s", diff)
	}
}

// unknown has the first change of each sort fail that the step explains.
func (c Case) unknown(t *testing.T) {
	var sorts []host.LineKind
	for _, l := range c.Step.Explain() {
		if l.Mutates() && !slices.Contains(sorts, l.Kind) {
			sorts = append(sorts, l.Kind)
		}
	}
	if sorts == nil {
		t.Fatal("it changes nothing")
	}
	for _, sort := range sorts {
		h := &failing{Host: c.Sled(t).Host, sort: sort}
		err := c.Step.Do(t.Context(), h)
		_, command := errors.AsType[*host.CommandError](err)
		switch {
		case !h.failed.Load():
			t.Errorf("it makes no %s", sort)
		case err == nil || !strings.Contains(err.Error(), nobodysWords):
			t.Errorf("a %s failed, and %v does not say why", sort, err)
		case sort == host.LineRun && !command:
			t.Errorf("%v is no *host.CommandError", err)
		}
		for _, kind := range append(c.Kinds, host.ErrNotFound, host.ErrExists, host.ErrBusy, host.ErrState, host.ErrTransient, host.ErrRefused) {
			if errors.Is(err, kind) {
				t.Errorf("the text of a %s has the kind %v", sort, kind)
			}
		}
	}
}
