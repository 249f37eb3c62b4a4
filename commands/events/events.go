// Package events is sledctl events.
package events

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/agent/client"
	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/events"
)

// New is the command events.
func New(env *cli.Env) *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:   "events [NAME|SUBJECT]",
		Short: "Show who did what on this sled, and how it ended",
		Long: `Show who did what on this sled, and how it ended: the operations that the ledger and its history know, oldest first, the newest 50.
NAME is an instance, also one that was deleted; SUBJECT is what an operation locks, e.g. sled or base/POOL. DIED is an operation whose process
ended before it did, seen is the end of a VM that nobody asked for. Who it was is what the process was told, not proven.

With --agent, the agent of a sled is asked for its newest 1,000 operations. With -f the command continues after a restart of the agent.`,
		Example: `  sledctl events
  sledctl events web1 --last 0
  sledctl events --failed --since 24h
  sledctl events --verb "instance delete" -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			o.Of = strings.Join(args, "")
			return Run(ctx, env, o)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.since, "since", "", "only those since a `TIME`: 10m ago, or 2026-11-23T06:27:17Z")
	flags.BoolVar(&o.failed, "failed", false, "only those that failed, died or were interrupted")
	flags.StringVar(&o.verb, "verb", "", "only those of a `VERB`, e.g. ensure")
	flags.BoolVarP(&o.follow, "follow", "f", false, "print events as they begin and end, until ^C")
	flags.IntVar(&o.Last, "last", 50, "only the newest `N` (0: all)")
	o.far.Add(cmd)
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, env.CompleteInstances)
	return cmd
}

// Options select events.
type Options struct {
	Of     string // an instance or a subject; empty: all
	Last   int    // how many; 0: all
	failed bool
	follow bool
	since  string
	verb   string
	far    cli.Remote
}

// Run prints the events that are selected.
func Run(ctx context.Context, e *cli.Env, o Options) error {
	if err := eventList().Check(e.Output); err != nil {
		return err
	}
	if o.Last < 0 {
		return &cli.UsageError{Text: fmt.Sprintf("--last %d: want a number of events, 0 for all", o.Last)}
	}
	since, err := cli.Since(e.Now(), o.since)
	if err != nil {
		return err
	}
	passes := func(v events.Event) bool {
		return o.of(v) && (!o.failed || v.Bad()) && !v.Start.Before(since) && o.does(v)
	}
	if o.far.Is() {
		return ask(ctx, e, o, passes)
	}
	r := &reader{e: e}
	past, err := r.past(ctx)
	if err != nil {
		return err
	}
	alive, err := r.alive(ctx)
	if err != nil {
		return err
	}
	all := past.Newest(o.Last, passes, alive)
	if len(all) == 0 && o.Of != "" && !o.follow {
		if err := known(past, alive, o); err != nil {
			return err
		}
	}
	if err := printAll(e, o, all); err != nil || !o.follow {
		return err
	}
	return follow(ctx, e, r, passes, past.Newest(0, passes, alive))
}

// agentHas is how many operations an agent gives at most.
const agentHas = 1000

// ask prints those of the operations that the agent of a sled gives.
func ask(ctx context.Context, e *cli.Env, o Options, passes func(events.Event) bool) error {
	c, err := o.far.Client(e, cli.Mutation{})
	if err != nil {
		return err
	}
	if o.follow {
		return askOn(ctx, e, c, o, passes)
	}
	answer, err := c.Operations(ctx, agentHas)
	if err != nil {
		return err
	}
	if o.Of != "" && !slices.ContainsFunc(answer.Items, o.of) {
		return &cli.NotFoundError{What: fmt.Sprintf("an event of %q among the newest %d", o.Of, agentHas), List: "sledctl events"}
	}
	return printAll(e, o, o.newest(answer.Items, passes))
}

// newest are those that pass, the newest as many as are asked for.
func (o Options) newest(all []events.Event, passes func(events.Event) bool) []events.Event {
	all = slices.DeleteFunc(all, func(v events.Event) bool { return !passes(v) })
	if o.Last > 0 {
		all = all[max(len(all)-o.Last, 0):]
	}
	return all
}

// askOn prints the same, and what begins and ends from then on.
func askOn(ctx context.Context, e *cli.Env, c *client.Client, o Options, passes func(events.Event) bool) error {
	e.Progress.Follows()
	ctx, release := e.Streams.Out.WhileRead(ctx)
	defer release()
	c.Unreachable = e.Progress.Warn
	var more func([]events.Event) error // once those that are past are printed
	return c.FollowOperations(ctx, agentHas, func(all []events.Event) error {
		if more == nil {
			if err := printAll(e, o, o.newest(all, passes)); err != nil {
				return err
			}
			more = printNew(e)
			return nil
		}
		if all = slices.DeleteFunc(all, func(v events.Event) bool { return !passes(v) }); len(all) == 0 {
			return nil
		}
		return more(all)
	})
}

func printAll(e *cli.Env, o Options, all []events.Event) error {
	switch {
	case e.Output.Screen(e.Streams.Out) || e.Output.Format == terminal.FormatWide:
		_, err := e.Streams.Out.Write([]byte(screenOf(e).text(all)))
		return err
	case o.follow && e.Output.Format == terminal.FormatJSON: // one object per line, as those that come
		return printNew(e)(all)
	}
	return eventList().Print(e.Streams.Out, e.Output, all)
}

// Recent are the newest events of an instance, at most n, as a terminal shows them; empty:
// there is none.
func Recent(ctx context.Context, e *cli.Env, id string, n int) (string, error) {
	all, err := newest(ctx, e, n, Options{Of: id})
	if len(all) == 0 || err != nil {
		return "", err
	}
	return screenOf(e).text(all), nil
}

// Newest are the newest n events of the sled, as -o json prints them, for an agent.
func Newest(ctx context.Context, e *cli.Env, n int) (api.Events, error) {
	all, err := newest(ctx, e, n, Options{})
	return api.Events{APIVersion: terminal.APIVersion, Kind: kind + "List", Items: append([]events.Event{}, all...)}, err
}

// Rows are the newest n events of the sled, as a terminal of that width shows them, below
// the lines of their head.
func Rows(ctx context.Context, e *cli.Env, width, n int) (head []string, rows []Row, err error) {
	all, err := newest(ctx, e, n, Options{})
	if len(all) == 0 || err != nil {
		return nil, nil, err
	}
	s := screenOf(e)
	s.width = width
	head, rows = s.rows(all)
	return head, rows, nil
}

func newest(ctx context.Context, e *cli.Env, n int, o Options) ([]events.Event, error) {
	r := &reader{e: e}
	past, err := r.past(ctx)
	if err != nil {
		return nil, err
	}
	alive, err := r.alive(ctx)
	if err != nil {
		return nil, err
	}
	return past.Newest(n, o.of, alive), nil
}

// of reports whether an event is of what was named.
func (o Options) of(v events.Event) bool {
	return o.Of == "" || slices.Contains([]string{v.Object.Name, v.Object.ID, v.Subject}, o.Of)
}

func (o Options) does(v events.Event) bool {
	return o.verb == "" || v.Verb == o.verb || what(v) == o.verb
}

// known is the error of an object that no event is of.
func known(past *events.Past, alive alive, o Options) error {
	var names []string
	for _, v := range past.Newest(0, func(events.Event) bool { return true }, alive) {
		if o.of(v) {
			return nil // and nothing of it was asked for
		}
		names = append(names, v.Object.Name)
	}
	return &cli.NotFoundError{What: fmt.Sprintf("an event of %q", o.Of), List: "sledctl events", Near: naming.Nearest(o.Of, names)}
}

// alive says which process holds a subject's lock.
type alive = func(subject string) (operation.Holder, bool)

// reader reads the past of a sled.
type reader struct{ e *cli.Env }

func (r *reader) past(ctx context.Context) (*events.Past, error) {
	h, places, err := r.e.Places()
	if err != nil {
		return nil, err
	}
	return events.Of(ledger.History(ctx, h.Files(), places))
}

func (r *reader) alive(ctx context.Context) (alive, error) {
	_, env, err := r.e.Operation()
	return func(subject string) (operation.Holder, bool) { return operation.Alive(ctx, env, subject) }, err
}
