package instance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/instance/secrets"
)

// Verbs on many instances at once. Each instance is an operation of its own:
// a failure of one does not stop the others, and is reported at the end.

// Parallel is how many instances a verb on many works on at once, if nothing else is
// said. One takes seconds, in which it waits for its zone most of the time; there is
// one number, and no tuning at run time.
//
// Guess sixty-four-at-once: a sled can take 64 instances being started, stopped or removed at once
// (`--parallel`): zoneadmd, configd and the file system of each are not slower than one after the
// other.
// Check: `time sledctl instance ensure --all` of 64, with `--parallel 64` and `--parallel 8`
const Parallel = 64

// Failure is an instance with which a verb on many did not succeed.
type Failure struct {
	Name string
	Err  error
}

// PartialError is a verb on many instances that did not succeed with all of them.
type PartialError struct {
	Of       int // how many there were to do
	Failures []Failure
}

// One is the cause, if it is the same of all, and none was done; else nil.
func (e *PartialError) One() error {
	if len(e.Failures) < e.Of {
		return nil
	}
	first := e.Failures[0]
	for _, f := range e.Failures[1:] {
		if f.text() != first.text() {
			return nil
		}
	}
	return first.Err
}

// names reports whether the cause names its instance.
func (f Failure) names() bool {
	return regexp.MustCompile(`\b` + regexp.QuoteMeta(f.Name) + `\b`).MatchString(f.Err.Error())
}

// text is the cause without what tells one instance from another.
func (f Failure) text() string {
	const numbers = `[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9]+`
	return regexp.MustCompile(`\b`+regexp.QuoteMeta(f.Name)+`\b|`+numbers).ReplaceAllString(f.Err.Error(), "…")
}

// Group is failures that have one cause.
type Group struct {
	Names []string
	Err   error // of the first of them
}

// Groups are the failures by their causes: the largest group first, of equals that of the
// first failure. Names, ids and numbers do not make a cause another one.
func (e *PartialError) Groups() []Group {
	var groups []Group
	at := map[string]int{}
	for _, f := range e.Failures {
		text := f.text()
		n, known := at[text]
		if !known {
			n = len(groups)
			at[text], groups = n, append(groups, Group{Err: f.Err})
		}
		groups[n].Names = append(groups[n].Names, f.Name)
	}
	slices.SortStableFunc(groups, func(a, b Group) int { return len(b.Names) - len(a.Names) })
	return groups
}

// shownGroups is how many causes Error tells.
const shownGroups = 5

// Error has a line for each cause, with the names of those that it kept from being done;
// of more than five causes, the rarer ones are counted.
// A cause that is the same of all, and of which none was done, stands once, with their
// count, and with the names of the others if it has one.
func (e *PartialError) Error() string {
	if one := e.One(); one != nil && e.Of > 1 {
		text := fmt.Sprintf("none of %d instances: %v", e.Of, one)
		if e.Failures[0].names() {
			var others []string
			for _, f := range e.Failures[1:] {
				others = append(others, f.Name)
			}
			text += "; the same of " + strings.Join(others, ", ")
		}
		return text
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d instances: not done", len(e.Failures), e.Of)
	groups := e.Groups()
	for _, g := range groups[:min(len(groups), shownGroups)] {
		fmt.Fprintf(&b, "\n  %s: %v", strings.Join(g.Names, ", "), g.Err)
	}
	if len(groups) > shownGroups {
		rest := 0
		for _, g := range groups[shownGroups:] {
			rest += len(g.Names)
		}
		fmt.Fprintf(&b, "\n  %d more, for %d other reasons: sledctl events --failed lists them", rest, len(groups)-shownGroups)
	}
	return b.String()
}

func (*PartialError) Kind() fault.Kind { return fault.Partial }

// Common is the kind of all causes, where none was done, and of a run that was
// interrupted: what keeps all from being done for one reason is not cured by running
// it again. Otherwise it is Partial.
func (e *PartialError) Common() fault.Kind {
	kind := fault.Of(e.Failures[0].Err)
	for _, f := range e.Failures[1:] {
		if fault.Of(f.Err) != kind {
			return fault.Partial
		}
	}
	if len(e.Failures) < e.Of && kind != fault.Interrupted {
		return fault.Partial
	}
	return kind
}

// Unwrap gives the causes.
func (e *PartialError) Unwrap() []error {
	errs := make([]error, len(e.Failures))
	for i, f := range e.Failures {
		errs[i] = f.Err
	}
	return errs
}

// Retry gives what is left of the failures once each was tried in another way; nil if
// none is.
func (e *PartialError) Retry(again func(Failure) error) *PartialError {
	left := &PartialError{Of: e.Of}
	for _, f := range e.Failures {
		if f.Err = again(f); f.Err != nil {
			left.Failures = append(left.Failures, f)
		}
	}
	if len(left.Failures) == 0 {
		return nil
	}
	return left
}

// WantedUp picks the instances that are wanted running and are not known to, and
// those that a run which was killed has brought up and not put down as such.
// Those of the control plane may run on another sled.
func WantedUp(i Instance) bool {
	done := i.State == record.Running && i.Incarnation != nil && i.Incarnation.Ensured && len(i.Leaving) == 0
	return i.Wanted == record.WantedRunning && i.VMM == nil && !done
}

// Unready picks those of WantedUp, and those that are wanted running and have something left of a run
// which was killed: other secrets than those of its record. Both are what an ensure of all is for.
func Unready(files host.Files) func(Instance) bool {
	others := secrets.Others(files)
	return func(i Instance) bool {
		return WantedUp(i) || i.Wanted == record.WantedRunning && i.VMM == nil && others(i.Record)
	}
}

// Died picks the instances that were complete in this boot of the sled and do
// not run any longer, though they are wanted to.
func (i Instance) Died(boot string) bool {
	ended := []record.State{record.Failed, record.Absent, record.Stopped, "destroyed"}
	return i.Wanted == record.WantedRunning && i.VMM == nil && i.Incarnation != nil && i.Incarnation.Ensured && i.Incarnation.Boot == boot && slices.Contains(ended, i.State)
}

// Each does one thing with each of many, instances or unrecorded, at most parallel of them at
// once, in the order given. The error is a *PartialError; the results are those of
// all, in their order. When ctx ends, no further one is begun.
func Each[T any](
	ctx context.Context, all []T, name func(T) string, parallel int, do func(context.Context, T) (Result, error),
) ([]Result, error) {
	results, errs := make([]Result, len(all)), make([]error, len(all))
	var wg sync.WaitGroup
	gate := make(chan struct{}, max(parallel, 1))
	for i, one := range all {
		gate <- struct{}{}
		if ctx.Err() != nil {
			errs[i] = fmt.Errorf("not begun: %w", context.Cause(ctx))
			<-gate
			continue
		}
		wg.Go(func() {
			defer func() { <-gate }()
			results[i], errs[i] = do(ctx, one)
		})
	}
	wg.Wait()
	some := &PartialError{Of: len(all)}
	for i, err := range errs {
		if err != nil {
			some.Failures = append(some.Failures, Failure{Name: name(all[i]), Err: err})
		}
	}
	if len(some.Failures) == 0 {
		return results, nil
	}
	return results, some
}

// Waves sorts instances, or what stands for them, by their start order: those of one number
// are a wave, the lowest first, and those without a number are the last. In a wave they
// stand as they did.
func Waves[T any](all []T, order func(T) record.StartOrder) [][]T {
	by := map[record.StartOrder][]T{}
	for _, one := range all {
		o := order(one)
		by[o] = append(by[o], one)
	}
	var waves [][]T
	for _, o := range slices.SortedFunc(maps.Keys(by), record.StartOrder.Compare) {
		waves = append(waves, by[o])
	}
	return waves
}

// EachInWaves is Each with one wave, and then with the next, whatever failed in those before.
func EachInWaves[T any](
	ctx context.Context, waves [][]T, name func(T) string, parallel int, do func(context.Context, T) (Result, error),
) ([]Result, error) {
	var results []Result
	some := &PartialError{}
	for _, wave := range waves {
		done, err := Each(ctx, wave, name, parallel, do)
		results, some.Of = append(results, done...), some.Of+len(wave)
		if failed, ok := errors.AsType[*PartialError](err); ok {
			some.Failures = append(some.Failures, failed.Failures...)
		}
	}
	if len(some.Failures) == 0 {
		return results, nil
	}
	return results, some
}

// Select lists the statuses of those instances that pick takes, by name.
func (s Settings) Select(ctx context.Context, env operation.Env, view ledger.View, pick func(Instance) bool) ([]Instance, error) {
	all, err := s.List(ctx, env, view)
	if err != nil {
		return nil, err
	}
	picked := slices.DeleteFunc(all, func(i Instance) bool { return !pick(i) })
	slices.SortFunc(picked, func(a, b Instance) int { return strings.Compare(a.Name, b.Name) })
	return picked, nil
}
