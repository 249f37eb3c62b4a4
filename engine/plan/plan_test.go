package plan_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
)

// diary notes what fake steps do, in order.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

// fakeStep is a step that takes time, may fail, and can be undone.
type fakeStep struct {
	verb  string
	name  string
	takes time.Duration
	fails error
	book  *diary
	undo  error // why undoing fails
	final bool  // cannot be undone
	panic bool
	lines []host.Line // nil: one
}

func (d fakeStep) Verb() string { return d.verb }
func (d fakeStep) Explain() []host.Line {
	if d.lines != nil {
		return d.lines
	}
	return []host.Line{{Kind: host.LineRun, Text: "do " + d.name}}
}

func (d fakeStep) Do(ctx context.Context, _ host.Host) error {
	if d.panic {
		panic("no such step")
	}
	d.book.note("begin %s", d.name)
	select {
	case <-time.After(d.takes):
	case <-ctx.Done():
		d.book.note("abandon %s", d.name)
		return ctx.Err()
	}
	d.book.note("end %s", d.name)
	return d.fails
}

func (d fakeStep) Undo() any {
	if d.final {
		return nil
	}
	return fakeStep{verb: d.verb, name: "undo " + d.name, book: d.book, fails: d.undo, final: true}
}

func action(d fakeStep, after ...string) plan.Action {
	return plan.Action{ID: d.name, Object: "thing " + d.name, Change: plan.Create, After: after, Step: d}
}

func TestSortedKeepsTheGivenOrderWhereNothingForbidsIt(t *testing.T) {
	p := plan.Plan{Actions: []plan.Action{
		action(fakeStep{name: "c"}, "a", "b"), action(fakeStep{name: "b"}), action(fakeStep{name: "a"}), action(fakeStep{name: "d"}, "c"),
	}}
	sorted, err := p.Sorted()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"b", "a", "c", "d"}, plan.IDs(sorted.Actions)); diff != "" {
		t.Error(diff)
	}
}

func TestSortedRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		actions []plan.Action
		says    string
	}{
		"a cycle":             {[]plan.Action{action(fakeStep{name: "a"}, "b"), action(fakeStep{name: "b"}, "a")}, `"a" waits for itself`},
		"an unknown id":       {[]plan.Action{action(fakeStep{name: "a"}, "x")}, `"a" comes after "x"`},
		"an id that is twice": {[]plan.Action{action(fakeStep{name: "a"}), action(fakeStep{name: "a"})}, `two actions are called "a"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := plan.Plan{Actions: tc.actions}.Sorted()
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %s", err, tc.says)
			}
		})
	}
}

func apply(t *testing.T, ctx context.Context, p plan.Plan, o plan.Options) plan.Outcome {
	t.Helper()
	outcome, err := plan.Apply(ctx, nil, p, o)
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

func TestApplyRunsAnActionAsSoonAsThoseBeforeItAreDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book := &diary{}
		start := time.Now()
		outcome := apply(t, t.Context(), plan.Plan{Policy: plan.Undo, Actions: []plan.Action{
			action(fakeStep{name: "slow", takes: 3 * time.Second, book: book}),
			action(fakeStep{name: "quick", takes: time.Second, book: book}),
			action(fakeStep{name: "behind quick", takes: time.Second, book: book}, "quick"),
			action(fakeStep{name: "last", takes: time.Second, book: book}, "slow", "behind quick"),
		}}, plan.Options{})
		if outcome.Err() != nil || len(outcome.Done) != 4 {
			t.Fatalf("outcome: %+v", outcome)
		}
		if took := time.Since(start); took != 4*time.Second {
			t.Errorf("took %v: the longest chain is 4 s", took)
		}
	})
}

func TestApplyBoundsHowManyRunAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book := &diary{}
		var actions []plan.Action
		for i := range 6 {
			actions = append(actions, action(fakeStep{name: fmt.Sprint(i), takes: time.Second, book: book}))
		}
		start := time.Now()
		apply(t, t.Context(), plan.Plan{Actions: actions}, plan.Options{Parallel: 2})
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("6 steps of 1 s, two at once, took %v", took)
		}
	})
}

var errBroken = errors.New("broken")

func TestAFailureUndoesWhatWasMadeNewestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book := &diary{}
		outcome := apply(t, t.Context(), plan.Plan{Policy: plan.Undo, Actions: []plan.Action{
			action(fakeStep{name: "a", book: book}), action(fakeStep{name: "b", book: book}, "a"),
			action(fakeStep{name: "c", book: book, fails: errBroken}, "b"), action(fakeStep{name: "d", book: book}, "c"),
		}}, plan.Options{})
		if !errors.Is(outcome.Err(), errBroken) {
			t.Errorf("error: %v", outcome.Err())
		}
		want := []string{"begin a", "end a", "begin b", "end b", "begin c", "end c", "begin undo b", "end undo b", "begin undo a", "end undo a"}
		if diff := cmp.Diff(want, book.lines); diff != "" {
			t.Error(diff)
		}
		if len(outcome.Leftovers) != 0 || len(outcome.Done) != 0 || len(outcome.Undone) != 2 {
			t.Errorf("outcome: %+v", outcome)
		}
	})
}

func TestWhatCannotBeUndoneIsLeftAndTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book := &diary{}
		outcome := apply(t, t.Context(), plan.Plan{Policy: plan.Undo, Actions: []plan.Action{
			action(fakeStep{name: "a", book: book, undo: errors.New("stuck")}), action(fakeStep{name: "b", book: book, fails: errBroken}, "a"),
		}}, plan.Options{})
		if diff := cmp.Diff([]string{"thing a"}, outcome.Leftovers); diff != "" {
			t.Error(diff)
		}
		if len(outcome.Failed) != 2 {
			t.Errorf("failures: %v", outcome.Failed)
		}
	})
}

// What a step says that it has left is left, and so is what stands next to an
// object and could not be removed with it.
func TestWhatAFailedStepHasLeftIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		half := action(fakeStep{name: "a", book: &diary{}, fails: &host.LeftoverError{Cause: errBroken, Err: errors.New("stuck")}})
		half.Change = plan.Modify
		outcome := apply(t, t.Context(), plan.Plan{Policy: plan.Undo, Actions: []plan.Action{half}}, plan.Options{})
		if diff := cmp.Diff([]string{"thing a"}, outcome.Leftovers); diff != "" {
			t.Error(diff)
		}
		extra := action(fakeStep{name: "a", book: &diary{}, fails: errBroken})
		extra.Cleanup = []plan.Action{{ID: "undo b", Object: "thing b", Change: plan.Remove, Step: fakeStep{name: "undo b", book: &diary{}, fails: errors.New("stuck"), final: true}}}
		outcome = apply(t, t.Context(), plan.Plan{Policy: plan.Undo, Actions: []plan.Action{extra}}, plan.Options{})
		if diff := cmp.Diff([]string{"thing b"}, outcome.Leftovers); diff != "" {
			t.Error(diff)
		}
	})
}

// limited is a step that says how long it may take.
type limited struct {
	fakeStep
	most  time.Duration
	waits bool
}

func (l limited) Limit() (time.Duration, bool) { return l.most, l.waits }

// No step lasts longer than it says itself, or else a minute, also where the operator
// has set no limit; those after it are not begun.
func TestAStepEndsAtItsDeadline(t *testing.T) {
	long := fakeStep{name: "a", book: &diary{}, takes: 24 * time.Hour}
	for name, c := range map[string]struct {
		step plan.Step
		want time.Duration
	}{
		"one that changes the host":           {limited{long, 3 * time.Minute, false}, 3 * time.Minute},
		"one that waits":                      {limited{long, 2 * time.Minute, true}, 2 * time.Minute},
		"one that says nothing":               {long, time.Minute},
		"one that takes as long as it wishes": {limited{long, 0, true}, 24 * time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			began, want := time.Now(), c.want
			outcome := apply(t, t.Context(), plan.Plan{Policy: plan.Undo, Actions: []plan.Action{
				{ID: "a", Object: "thing a", Change: plan.Create, Step: c.step}, action(fakeStep{name: "b", book: &diary{}}, "a"),
			}}, plan.Options{})
			if took := time.Since(began); took != want || (want < 24*time.Hour) != errors.Is(outcome.Err(), context.DeadlineExceeded) {
				t.Errorf("%s: %v after %v, want it after %v", name, outcome.Err(), took, want)
			}
			if limit, ok := errors.AsType[*plan.LimitError](outcome.Err()); want < 24*time.Hour && (!ok || limit.Limit != want) {
				t.Errorf("%s: %v does not say whose limit it was", name, outcome.Err())
			}
		})
	}
}

func TestAChangeThatGoesOnByItselfIsLeftWhereTheNextActionFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, fails := range []error{nil, errBroken} {
			asks := action(fakeStep{name: "a", book: &diary{}})
			asks.Change, asks.Irrevocable = plan.Modify, true
			outcome := apply(t, t.Context(), plan.Plan{Policy: plan.Stop, Actions: []plan.Action{asks, action(fakeStep{name: "b", book: &diary{}, fails: fails}, "a")}}, plan.Options{})
			if (len(outcome.Leftovers) > 0) != (fails != nil) {
				t.Errorf("%v: left %q", fails, outcome.Leftovers)
			}
		}
	})
}

func TestKeepLeavesWhatWasMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book := &diary{}
		outcome := apply(t, t.Context(), plan.Plan{Policy: plan.Undo, Actions: []plan.Action{
			action(fakeStep{name: "a", book: book}), action(fakeStep{name: "b", book: book, fails: errBroken}, "a"),
		}}, plan.Options{Keep: true})
		if diff := cmp.Diff([]string{"thing a"}, outcome.Leftovers); diff != "" {
			t.Error(diff)
		}
	})
}

func TestContinueTriesAllAndTellsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book := &diary{}
		remove := func(d fakeStep, after ...string) plan.Action {
			a := action(d, after...)
			a.Change = plan.Remove
			return a
		}
		outcome := apply(t, t.Context(), plan.Plan{Policy: plan.Continue, Actions: []plan.Action{
			remove(fakeStep{name: "a", book: book, fails: errBroken}), remove(fakeStep{name: "behind a", book: book}, "a"),
			remove(fakeStep{name: "b", book: book, fails: errBroken}), remove(fakeStep{name: "c", book: book}),
		}}, plan.Options{})
		if len(outcome.Failed) != 2 || len(outcome.Done) != 1 {
			t.Errorf("outcome: %+v", outcome)
		}
		if diff := cmp.Diff([]string{"thing a", "thing behind a", "thing b"}, outcome.Leftovers); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAnEndedContextAbandonsWaitsAndLetsChangesFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book := &diary{}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		outcome := apply(t, ctx, plan.Plan{Policy: plan.Stop, Actions: []plan.Action{
			action(fakeStep{verb: "zone.boot", name: "boot", takes: 3 * time.Second, book: book}),
			{ID: "wait", Object: "thing wait", Change: plan.Wait, Step: limited{fakeStep{verb: "smf.await", name: "wait", takes: 30 * time.Second, book: book}, 3 * time.Minute, true}},
			action(fakeStep{name: "never", book: book}, "boot"),
		}}, plan.Options{})
		if !errors.Is(outcome.Err(), context.Canceled) {
			t.Errorf("error: %v", outcome.Err())
		}
		if !slices.Contains(book.lines, "end boot") || !slices.Contains(book.lines, "abandon wait") || slices.Contains(book.lines, "begin never") {
			t.Errorf("diary: %q", book.lines)
		}
	})
}

func TestNothingIsTakenFromUnderACommandThatStillRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book := &diary{}
		outcome := apply(t, t.Context(), plan.Plan{Policy: plan.Undo, Actions: []plan.Action{
			action(fakeStep{name: "a", book: book}), action(fakeStep{name: "b", book: book, fails: fmt.Errorf("zoneadm: %w", host.ErrStillRunning)}, "a"),
		}}, plan.Options{})
		if slices.Contains(book.lines, "begin undo a") {
			t.Error("a was undone under b, which still runs")
		}
		if diff := cmp.Diff([]string{"thing a", "thing b"}, outcome.Leftovers); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAPanicIsAFailureThatIsUndone(t *testing.T) {
	book := &diary{}
	outcome := apply(t, t.Context(), plan.Plan{Policy: plan.Undo, Actions: []plan.Action{
		action(fakeStep{name: "a", book: book}), action(fakeStep{name: "b", book: book, panic: true}, "a"),
	}}, plan.Options{})
	if !errors.Is(outcome.Err(), plan.ErrPanic) || !slices.Contains(book.lines, "end undo a") {
		t.Errorf("outcome: %v, diary %q", outcome.Err(), book.lines)
	}
}

func TestTextShowsChangeVerbObjectAndReason(t *testing.T) {
	p := plan.Plan{Actions: []plan.Action{
		{ID: "1", Object: "vnic vnic_propolis0", Why: "control VNIC", Change: plan.Create, Step: fakeStep{verb: "vnic.create", name: "1"}},
		{ID: "2", Object: "zone z", Change: plan.Wait, Step: fakeStep{verb: "smf.await", name: "2"}},
	}}
	got, err := p.Text(true, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := "+ vnic.create  vnic vnic_propolis0: control VNIC\n    do 1\n  smf.await    zone z\n    do 2\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What is read is broken where it is too wide; what can be copied stays in one piece, and
// a comment remains one.
func TestTextFoldsWhatIsNotCopied(t *testing.T) {
	p := plan.Plan{Why: "because of this", Actions: []plan.Action{
		{ID: "1", Object: "zone z", Why: "no reason", Change: plan.Wait, Step: fakeStep{verb: "v", name: "1", lines: []host.Line{
			host.WaitLine("all is well"), {Kind: host.LineRun, Text: "zoneadm -z z boot"},
		}}},
	}}
	got, err := p.Text(true, func(line string, _ int) string {
		return strings.ReplaceAll(strings.ReplaceAll(line, ": ", ":\n    "), " is", "\n    is")
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "# because of this\n  v  zone z:\n    no reason\n    # waits until all\n    # is well\n    zoneadm -z z boot\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestARemovalThatFindsNothingIsDone(t *testing.T) {
	book := &diary{}
	gone := action(fakeStep{name: "a", book: book, fails: fmt.Errorf("dataset: %w", host.ErrNotFound)})
	made := gone
	gone.Change = plan.Remove
	if o := apply(t, t.Context(), plan.Plan{Policy: plan.Stop, Actions: []plan.Action{gone}}, plan.Options{}); o.Err() != nil {
		t.Errorf("removal: %v", o.Err())
	}
	if o := apply(t, t.Context(), plan.Plan{Policy: plan.Stop, Actions: []plan.Action{made}}, plan.Options{}); o.Err() == nil {
		t.Error("a creation that says \"not found\" passed")
	}
}

func TestAnUndoThatFindsNothingIsDone(t *testing.T) {
	book := &diary{}
	outcome := apply(t, t.Context(), plan.Plan{Policy: plan.Undo, Actions: []plan.Action{
		action(fakeStep{name: "a", book: book, undo: fmt.Errorf("dataset: %w", host.ErrNotFound)}), action(fakeStep{name: "b", book: book, fails: errBroken}, "a"),
	}}, plan.Options{})
	if len(outcome.Leftovers) != 0 {
		t.Errorf("left: %v", outcome.Leftovers)
	}
}
