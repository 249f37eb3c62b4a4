// Package steptest is what every step of a host resource promises (plan.Step), as one
// suite of tests. The packages of host resources run it over their steps, each on a
// sled where it succeeds.
package steptest

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

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
	// Again is the kind of the error of a second time. Nil: what is done is no error, as
	// for a step that sets something.
	Again error
	// NoFailure: no command that it runs can make it fail, or it runs none.
	NoFailure bool
}

// Sled is what a step is done on.
type Sled struct {
	Host host.Host
	// State is all that the step may change, so that two states can be compared.
	State func() any
}

// Conform holds steps to what they promise: they do what they explain, in that order; undone, all is as it was;
// a second time is an error of a kind, and changes nothing; and a command that fails with a text that nobody
// knows gives an error without a kind, with that text.
func Conform(t *testing.T, cases ...Case) {
	t.Helper()
	for _, c := range cases {
		t.Run(strings.TrimSpace(c.Step.Verb()+" "+c.Name), func(t *testing.T) {
			t.Run("does what it explains", c.explained)
			if c.Step.Undo() != nil {
				t.Run("undone, all is as it was", c.undone)
			}
			t.Run("a second time", c.repeated)
			if !c.NoFailure {
				t.Run("an unknown text has no kind", c.unknown)
			}
		})
	}
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
				explained = append(explained, l)
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
	if c.Again == nil && err != nil || c.Again != nil && !errors.Is(err, c.Again) {
		t.Errorf("%v, want %v", err, c.Again)
	}
	if diff := cmp.Diff(before, sled.State()); diff != "" {
		t.Errorf("it changes something (-before +after):\n%s", diff)
	}
}

// nobodysWords is a text that no program prints.
const nobodysWords = "the moon is in the wrong house"

func (c Case) unknown(t *testing.T) {
	h := failing{c.Sled(t).Host, &atomic.Bool{}}
	err := c.Step.Do(t.Context(), h)
	failed, ok := errors.AsType[*host.CommandError](err)
	switch {
	case !h.failed.Load():
		t.Fatal("it runs no command that changes anything")
	case !ok:
		t.Errorf("%v is no *host.CommandError", err)
	case failed.Means != nil:
		t.Errorf("the text has the kind %v", failed.Means)
	case !strings.Contains(err.Error(), nobodysWords):
		t.Errorf("%v lacks the command's words", err)
	}
}

// failing is a host on which the first command that changes something fails.
type failing struct {
	host.Host
	failed *atomic.Bool
}

// Run runs a command, or fails.
func (f failing) Run(ctx context.Context, c host.Command) (host.Result, error) {
	if !c.ReadOnly && f.failed.CompareAndSwap(false, true) {
		return host.Result{Exit: 1, Stderr: []byte(nobodysWords + "\n")}, nil
	}
	return f.Host.Run(ctx, c)
}
