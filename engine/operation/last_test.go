package operation_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/naming"
)

// ends is an operation on an instance: it does the actions, and leaves this record, or
// none.
func ends(verb string, actions []plan.Action, record string) operation.Request[struct{}] {
	fact := ledger.Fact{Key: "instance/1"}
	if record != "" {
		fact.Value = json.RawMessage(record)
	}
	return operation.Request[struct{}]{
		Verb: verb, Subject: "instance/1",
		Look: func(context.Context, host.Host) (struct{}, error) { return struct{}{}, nil },
		Decide: func(ledger.View, struct{}, operation.Stamp) (operation.Decision, error) {
			return operation.Decision{
				Plan:      plan.Plan{Policy: plan.Undo, Actions: actions},
				OnStart:   []ledger.Fact{{Key: "instance/1", Value: json.RawMessage(`{"name":"web1"}`)}},
				OnSuccess: []ledger.Fact{fact}, OnUndo: []ledger.Fact{{Key: "instance/1"}},
			}, nil
		},
	}
}

// The line that closes an operation says what it was. There is one fact of each
// subject; one that is gone leaves none of its own.
func TestWhatIsRememberedOfAnOperation(t *testing.T) {
	env := newEnv(t)
	env.By, env.Argv = operation.By{User: "anna", UID: 101, Via: operation.ViaCommand}, []string{"instance", "ensure", "web1"}
	env.Exit = func(_ error, left []string) int { return 1 + 2*len(left) }
	run := func(r operation.Request[struct{}]) (operation.Last, uint64) {
		before := seq(t, env)
		_, _ = operation.Run(t.Context(), env, r)
		lasts := operation.Lasts(operationtest.View(t, env))
		if len(lasts) == 0 {
			t.Fatal("nothing is remembered")
		}
		return lasts[len(lasts)-1], seq(t, env) - before
	}

	last, lines := run(ends("instance ensure", []plan.Action{action(fakeStep{name: "a"})}, `{"name":"web1"}`))
	if lines != 2 || last.ID == "" || last.End.Before(last.Start) || last.Start.IsZero() {
		t.Errorf("%d lines, %+v", lines, last)
	}
	last.ID, last.Start, last.End = "", last.Start.AddDate(-last.Start.Year(), 0, 0), last.Start.AddDate(-last.Start.Year(), 0, 0)
	want := operation.Last{
		Verb: "instance ensure", Subject: "instance/1", Name: "web1", By: env.By, Argv: env.Argv, Start: last.Start, End: last.End,
		Result: operation.Done, Changed: []string{"created thing a"},
	}
	if diff := cmp.Diff(want, last); diff != "" {
		t.Error(diff)
	}
	if _, known := lastOf(t, env, "instance/1"); !known {
		t.Error("nothing is remembered of instance/1")
	}

	broken := plan.Chain(action(fakeStep{name: "a", undo: errBroken}), action(fakeStep{name: "b", fails: errBroken}))
	last, _ = run(ends("instance start", broken, `{"name":"web1"}`))
	if last.Result != operation.Failed || last.Exit != 3 || !slices.Equal(last.Left, []string{"thing a"}) || last.Error != "step: broken" {
		t.Errorf("%+v", last)
	}

	last, _ = run(ends("instance delete", []plan.Action{action(fakeStep{name: "a"})}, ""))
	if last.Name != "web1" || last.Verb != "instance delete" {
		t.Errorf("%+v", last)
	}
	last, lines = run(ends("instance delete", nil, "")) // a plan without actions has one line
	if lines != 1 || last.Verb != "instance delete" {
		t.Errorf("%d lines, %+v", lines, last)
	}
	_, kept := lastOf(t, env, "instance/1")
	if _, deleted := lastOf(t, env, "deleted"); kept || !deleted {
		t.Error("of an instance that is gone, there is a fact of its own")
	}
}

// A line of a thousand names is not kept in the fact of each.
func TestALongCommandLineIsKeptShort(t *testing.T) {
	env := newEnv(t)
	env.Argv = slices.Repeat([]string{"web1"}, 1000)
	if _, err := operation.Run(t.Context(), env, ends("instance ensure", nil, `{"name":"web1"}`)); err != nil {
		t.Fatal(err)
	}
	last, _ := lastOf(t, env, "instance/1")
	if n := len(last.Argv); n != 17 || last.Argv[16] != "(984 more)" {
		t.Errorf("%d words: %q", n, last.Argv)
	}
}

// lastOf is the last operation on a subject, as the ledger has it.
func lastOf(t *testing.T, env operation.Env, subject string) (last operation.Last, known bool) {
	t.Helper()
	value, ok := operationtest.View(t, env).Get(naming.KeyLast + subject)
	return last, ok && json.Unmarshal(value, &last) == nil
}

// How long an operation usually takes is the median of those on other subjects, of the same
// verb, that ended well; it takes three to tell.
func TestHowLongAnOperationUsuallyTakes(t *testing.T) {
	env := newEnv(t)
	var usual func() time.Duration
	env.Observe = func(e operation.Event) {
		if usual == nil {
			usual = e.Usual
		}
	}
	run := func(verb, subject string) time.Duration {
		t.Helper()
		r := ends(verb, []plan.Action{action(fakeStep{name: "a"})}, `{"name":"web1"}`)
		r.Subject, usual = subject, nil
		if _, err := operation.Run(t.Context(), env, r); err != nil {
			t.Fatal(err)
		}
		return usual()
	}
	for _, subject := range []string{"base/1", "base/2", "base/3"} {
		if got := run("base ensure", subject); got != 0 {
			t.Errorf("%s: %v, of too few", subject, got)
		}
	}
	var took []time.Duration
	for _, last := range operation.Lasts(operationtest.View(t, env)) {
		took = append(took, last.End.Sub(last.Start))
	}
	slices.Sort(took)
	if got := run("base ensure", "base/4"); got != took[1] || got <= 0 {
		t.Errorf("%v of %v", got, took)
	}
	if got := run("base retire", "base/4"); got != 0 {
		t.Errorf("another verb: %v", got)
	}
}
