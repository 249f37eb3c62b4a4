package instance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/query"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// bulk is what a verb on many instances does with those that a selection picks.
type bulk struct {
	verb    string // "stop"
	asks    bool   // it ends what runs
	yes     bool   // --yes
	lenient bool   // a name that does not exist is no error

	sequence sequence
}

// addTo gives a verb the flags of a selection.
func (s *selection) addTo(env *cli.Env, cmd *cobra.Command) {
	s.add(env, cmd)
	cmd.Flags().BoolVar(&s.failed, "failed", false, "only instances that died since the sled booted")
}

// picks reports whether it takes a look to know which instances are meant.
func (s selection) picks() bool { return s.given() || s.names.Patterns() }

// check refuses a verb without an instance.
func (s selection) check(command string) error {
	if s.given() || len(s.names) > 0 {
		return nil
	}
	return &cli.UsageError{
		Text:   command + ": which instance?",
		Advice: "run: sledctl " + command + " NAME, or with a pattern, --state, --failed or --filter",
	}
}

// resolve decides once which instances a verb is about: those that are named, or all
// that the selection picks. What a selection has picked is asked for where the verb ends
// what runs. None: no VM fits.
func (s selection) resolve(ctx context.Context, e *cli.Env, far remote, m cli.Mutation, b bulk) ([]string, error) {
	if !s.picks() {
		return s.names, s.exist(ctx, e, far, b)
	}
	picks, err := s.picker(e.Now())
	if err != nil {
		return nil, err
	}
	all, err := lookAtAll(ctx, e, far, s.asksLast() || far.Is() && s.looks())
	if err != nil {
		return nil, err
	}
	if name := s.missing(all); name != "" && !b.lenient {
		return nil, missingOf(all, name)
	}
	picked := slices.DeleteFunc(all, func(i cli.Instance) bool { return !picks(i) })
	if len(picked) == 0 {
		e.Progress.Tell("no VM fits")
		return nil, nil
	}
	slices.SortFunc(picked, func(a, b cli.Instance) int { return query.Natural(a.Name, b.Name) })
	if b.asks && !m.Dry() {
		what := intended(b.verb, picked)
		question := strings.ToUpper(what[:1]) + what[1:] + "?"
		if err := e.Streams.Confirm(ctx, what, question, b.yes); err != nil {
			return nil, err
		}
	}
	var names []string
	for _, i := range picked {
		names = append(names, i.Name)
	}
	return names, nil
}

// exist fails if one of several names is of no instance, before the first is touched. One
// name alone is left to the operation.
func (s selection) exist(ctx context.Context, e *cli.Env, far remote, b bulk) error {
	if len(s.names) < 2 || b.lenient || far.Is() {
		return nil
	}
	settings, _, err := e.Instances(ctx)
	if err != nil {
		return err
	}
	view, err := e.View(ctx)
	if err != nil {
		return err
	}
	for _, name := range s.names {
		_, err := settings.Find(view, name)
		if missing, ok := errors.AsType[*record.NotFoundError](err); ok && b.verb == "ensure" {
			return &notMadeError{missing}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// notMadeError is a name among several to ensure that no instance has.
type notMadeError struct{ *record.NotFoundError }

// Unwrap gives the error about the name.
func (e *notMadeError) Unwrap() error { return e.NotFoundError }

// Hint says how it is made, unless another name was probably meant.
func (e *notMadeError) Hint() string {
	if e.Near != "" {
		return e.NotFoundError.Hint()
	}
	return "to create it, run: sledctl instance ensure " + e.Name + "; several names bring up what is recorded"
}

// intended says what a verb would do to which VMs: those that are up first.
func intended(verb string, picked []cli.Instance) string {
	var up, down []string
	for _, i := range picked {
		if isUp(i.State) {
			up = append(up, i.Name)
		} else {
			down = append(down, i.Name)
		}
	}
	count := func(names []string) string { return vms(len(names)) }
	runs := map[bool]string{true: "runs", false: "run"}
	switch {
	case len(down) == 0:
		return fmt.Sprintf("%s %s that %s: %s", verb, count(up), runs[len(up) == 1], strings.Join(up, " "))
	case len(up) == 0:
		return fmt.Sprintf("%s %s: %s", verb, count(down), strings.Join(down, " "))
	}
	return fmt.Sprintf("%s %s that %s: %s, and %d that %s not: %s",
		verb, count(up), runs[len(up) == 1], strings.Join(up, " "), len(down), map[bool]string{true: "does", false: "do"}[len(down) == 1], strings.Join(down, " "))
}

// printNone prints what a verb on no instance at all has to say.
func printNone(e *cli.Env, m cli.Mutation) error {
	if m.Dry() {
		return e.PrintPlan(m)
	}
	return cli.InstanceList(e).Print(e.Streams.Out, e.Output, nil)
}

// selectionHelp and askedHelp are the part of each such verb.s help about selections.
const (
	selectionHelp = `
Patterns of a shell, --state, --failed and --filter pick instances as in instance list. sledctl decides once which ones, before it
touches the first; if none fits, it says so and exits with 0. A name that does not exist is exit 4, before anything is done.`
	askedHelp = `
sledctl asks before it touches what a selection has picked; without a terminal it needs --yes.`
)

func addYes(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVar(yes, "yes", false, "do not ask about what a selection has picked")
}

// onSelected does a verb with the instances that are named or picked, here or at an agent,
// which is asked for a state.
func onSelected(
	ctx context.Context, e *cli.Env, far remote, m cli.Mutation, f manyFlags, s selection, b bulk, state string,
	do func(context.Context, instance.Settings, operation.Env, string) (instance.Result, error),
) error {
	if err := cmp.Or(s.check("instance "+b.verb), f.checkParallel(), cli.InstanceList(e).Check(e.Output)); err != nil {
		return err
	}
	refs, err := s.resolve(ctx, e, far, m, b)
	switch {
	case err != nil:
		return err
	case len(refs) == 0:
		return printNone(e, m)
	case far.Is():
		inOrder, err := wavesAfar(ctx, e, far, b.sequence, refs)
		if err != nil {
			return err
		}
		return changeRemotely(ctx, e, far, m, f, inOrder, state)
	}
	return each(ctx, e, m, f, b.sequence, refs, do)
}

func vms(n int) string {
	if n == 1 {
		return "1 VM"
	}
	return fmt.Sprintf("%d VMs", n)
}
