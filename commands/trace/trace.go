// Package trace is sledctl trace.
package trace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host"
)

type options struct {
	id      string
	list    bool
	steps   bool
	slowest int
	changes bool
}

// New is the command trace.
func New(env *cli.Env) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "trace [ID]",
		Short: "Show what an operation did, and how long it took",
		Long: `Show what an operation did, and how long it took: every command, request and file, in order. Without an ID, show the newest
operation; --list prints the kept ones: the newest 100 since the sled booted. Of an ID, the first 8 digits are enough.`,
		Example: `  sledctl trace --list
  sledctl trace --slowest 5
  sledctl trace --changes -H --columns text`,
		Args: cobra.MaximumNArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			o.id = strings.Join(args, "")
			return run(ctx, env, o)
		}),
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.list, "list", false, "list the operations whose traces are kept")
	flags.BoolVar(&o.steps, "steps", false, "print the steps, not what each of them ran")
	flags.IntVar(&o.slowest, "slowest", 0, "print the N slowest steps")
	flags.BoolVar(&o.changes, "changes", false, "print only what changed something")
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, func(ctx context.Context) []string { return completeOperations(ctx, env) })
	return cmd
}

// completeOperations offers the ids of the kept traces, with what each is of.
func completeOperations(ctx context.Context, e *cli.Env) []string {
	c, h, err := e.Reach()
	if err != nil {
		return nil
	}
	heads, err := operation.TraceList(h.Files(), c.Paths.Run)
	if err != nil {
		return nil
	}
	var words []string
	called := subjectNames(ctx, e)
	for _, head := range slices.Backward(heads) {
		words = append(words, fmt.Sprintf("%s\t%s %s", head.ID, head.Verb, called(head.Subject)))
	}
	return words
}

func run(ctx context.Context, e *cli.Env, o options) error {
	c, h, err := e.Reach()
	if err != nil {
		return err
	}
	if o.slowest < 0 {
		return &cli.UsageError{Text: fmt.Sprintf("--slowest %d: want a number above 0", o.slowest)}
	}
	heads, err := operation.TraceList(h.Files(), c.Paths.Run)
	if err != nil {
		return err
	}
	if len(heads) == 0 { // a bootstrap that failed before there was a ledger has left some
		if err := e.StateFile(ctx); err != nil {
			return err
		}
	}
	if o.list {
		return printTraceHeads(ctx, e, heads)
	}
	if o.id == "" && len(heads) > 0 {
		o.id = heads[len(heads)-1].ID
	}
	if o.id == "" {
		return &cli.NotFoundError{What: "a trace (nothing has changed since the sled booted)", List: "sledctl events"}
	}
	id, err := whole(o.id, heads)
	if err != nil {
		return err
	}
	t, err := operation.ReadTrace(h.Files(), c.Paths.Run, id)
	if errors.Is(err, fs.ErrNotExist) {
		return &cli.NotFoundError{What: "the trace of operation " + o.id, List: "sledctl trace --list"}
	}
	if err != nil {
		return err
	}
	if o.steps || o.slowest > 0 {
		return printTraceSteps(e, t, o.slowest)
	}
	return printTraceEvents(e, t, o.changes)
}

// shortID is how many digits of an id events prints.
const shortID = 8

// whole is the id of the kept trace that begins so: events prints the first digits.
func whole(begins string, heads []operation.TraceHead) (string, error) {
	var found []string
	for _, head := range heads {
		if head.ID == begins || len(begins) >= shortID && strings.HasPrefix(head.ID, begins) {
			found = append(found, head.ID)
		}
	}
	switch len(found) {
	case 0:
		return begins, nil // no trace of it is kept
	case 1:
		return found[0], nil
	}
	return "", &cli.UsageError{Text: fmt.Sprintf("operation %q: %d begin so: %s", begins, len(found), strings.Join(found, " "))}
}

func millis(d time.Duration) string {
	return strconv.FormatFloat(float64(d.Microseconds())/1000, 'f', 3, 64)
}

// subjectNames is what people call the subjects of operations; without a ledger, as after a
// bootstrap that failed, it is the subjects.
func subjectNames(ctx context.Context, e *cli.Env) func(subject string) string {
	view, err := e.View(ctx)
	if err != nil {
		return func(subject string) string { return subject }
	}
	return func(subject string) string { return cmp.Or(cli.NameOf(view, subject), "-") }
}

func printTraceHeads(ctx context.Context, e *cli.Env, heads []operation.TraceHead) error {
	called := subjectNames(ctx, e)
	type head = operation.TraceHead
	type column = terminal.Column[head]
	table := []string{"id", "verb", "subject", "started", "elapsed_ms", "error"}
	var pools []string
	for _, t := range heads {
		pools = append(pools, terminal.PoolNames(called(t.Subject))...)
	}
	short := terminal.ShortPools(slices.Compact(slices.Sorted(slices.Values(pools))))
	list := terminal.List[head]{Kind: "Trace", Name: func(t head) string { return t.ID }, Table: table, Columns: []column{
		{Name: "id", Value: func(t head) string { return t.ID }, Human: func(t head) string { return t.ID[:min(len(t.ID), shortID)] }},
		{Name: "verb", Value: func(t head) string { return t.Verb }},
		{Name: "started", Value: func(t head) string { return t.Start.Format(time.RFC3339) }, Human: func(t head) string { return terminal.Ago(e.Now(), t.Start) }},
		{Name: "elapsed_ms", Value: func(t head) string { return millis(t.Elapsed) }, Right: true},
		{Name: "own_ms", Value: func(t head) string { return millis(t.Elapsed - t.Busy) }, Right: true},
		{Name: "error", Value: func(t head) string { return t.Error }, Note: true},
		{Name: "subject", Value: func(t head) string { return t.Subject }, Human: func(t head) string { return short(called(t.Subject)) }},
	}}
	return list.Print(e.Streams.Out, e.Output, heads)
}

func printTraceSteps(e *cli.Env, t operation.Trace, slowest int) error {
	type step = operation.TraceStep
	type column = terminal.Column[step]
	list := terminal.List[step]{Kind: "TraceStep", Name: func(s step) string { return s.Action }, Columns: []column{
		{Name: "elapsed_ms", Value: func(s step) string { return millis(s.Elapsed) }, Right: true},
		{Name: "step", Value: func(s step) string { return s.Verb }},
		{Name: "object", Value: func(s step) string { return s.Object }},
		{Name: "error", Value: func(s step) string { return s.Error }},
		{Name: "action", Value: func(s step) string { return s.Action }, Extra: true},
	}}
	steps := t.Steps
	if slowest > 0 {
		steps = slices.Clone(steps)
		slices.SortStableFunc(steps, func(a, b step) int { return int(b.Elapsed - a.Elapsed) })
		steps = steps[:min(slowest, len(steps))]
	}
	return list.Print(e.Streams.Out, e.Output, steps)
}

func printTraceEvents(e *cli.Env, t operation.Trace, changes bool) error {
	type event = host.Event
	type column = terminal.Column[event]
	list := terminal.List[event]{Kind: "TraceEvent", Name: func(v event) string { return v.Line.Text }, Columns: []column{
		{Name: "at_ms", Value: func(v event) string { return millis(v.Start.Sub(t.Start)) }, Right: true},
		{Name: "elapsed_ms", Value: func(v event) string { return millis(v.End.Sub(v.Start)) }, Right: true},
		{Name: "kind", Value: func(v event) string { return string(v.Line.Kind) }},
		{Name: "exit", Value: func(v event) string { return strconv.Itoa(v.Exit) }, Right: true},
		{Name: "text", Value: func(v event) string { return v.Line.Text }, Human: func(v event) string { first, _, _ := strings.Cut(v.Line.Text, "\n"); return first }},
		{Name: "action", Value: func(v event) string { return v.Action }, Extra: true},
		{Name: "stderr", Value: func(v event) string { return v.Stderr }, Extra: true},
	}}
	events := t.Events
	if changes {
		events = slices.DeleteFunc(slices.Clone(events), func(v event) bool { return !v.Line.Mutates() })
	}
	return list.Print(e.Streams.Out, e.Output, events)
}
