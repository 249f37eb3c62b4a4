package instance

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/watch"
)

func newWatch(env *cli.Env) *cobra.Command {
	var far remote
	cmd := &cobra.Command{
		Use:   "watch [NAME|UUID ...]",
		Short: "Print the instances and each change of their states",
		Long: `Print the instances and each change of their states: a line for each change of a state or its reason, until ^C (exit 130) or
--timeout (exit 7). Without names, these are all instances, and those created meanwhile. A deleted instance is printed as absent.

A long poll of each Propolis reports the states of running VMs; a state that lasts only a moment may be missed. Changes that no Propolis
can report, e.g. a zone halted before it has a VM, appear within 2 s. With -o json each line is one object.

With --agent the command continues after a restart of the agent: it says so, and prints what changed once the agent is back.`,
		Example: `  sledctl instance watch
  sledctl instance watch -H --columns name,state | while read -r name state; do echo "$name is $state"; done`,
		RunE: env.Run(func(ctx context.Context, args []string) error { return runWatch(ctx, env, far, args, nil) }),
	}
	far.Add(cmd)
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, env.CompleteInstances)
	return cmd
}

// runWatch prints each change of the instances that are named; of those that picks takes,
// if it is given.
func runWatch(ctx context.Context, e *cli.Env, far remote, refs []string, picks func(cli.Instance) bool) error {
	e.Progress.Follows()
	ctx, release := e.Streams.Out.WhileRead(ctx)
	defer release()
	list := cli.InstanceList(e)
	if err := list.Check(e.Output); err != nil {
		return err
	}
	if far.Is() {
		c, err := far.Client(e, cli.Mutation{})
		if err != nil {
			return err
		}
		c.Unreachable = e.Progress.Warn
		return c.Watch(ctx, refs, picked(list.Follow(e.Streams.Out, e.Output), picks))
	}
	s, op, err := e.Instances(ctx)
	if err != nil {
		return err
	}
	view, err := e.View(ctx)
	if err != nil {
		return err
	}
	pick, err := watch.Selector(s, view, refs)
	if err != nil {
		return err
	}
	print := picked(list.Follow(e.Streams.Out, e.Output), picks)
	err = watch.Watch(ctx, s, op, pick, func(i instance.Instance) error { return print(cli.ShowInstance(i)) }, nil)
	if ctx.Err() != nil { // what it was doing then is not why it ends
		return context.Cause(ctx)
	}
	return err
}

// picked prints what is picked alone.
func picked(print func(cli.Instance) error, picks func(cli.Instance) bool) func(cli.Instance) error {
	return func(i cli.Instance) error {
		if picks != nil && !picks(i) {
			return nil
		}
		return print(i)
	}
}

// lastsBold is how long a row of list --watch is bold that has changed.
const lastsBold = 3 * time.Second

// watchList lists the instances again and again: on a terminal in place, with what has
// changed in bold, else as instance watch.
func watchList(ctx context.Context, e *cli.Env, o listOptions, picks func(cli.Instance) bool, order func(a, b cli.Instance) int) error {
	if !e.Streams.Out.Erase || !e.Output.Table(e.Streams.Out) {
		if o.looks() {
			return &cli.UsageError{Text: "--watch without a terminal cannot pick by --failed, --state changed, at-risk or busy, or --filter last", Advice: "run it on a terminal"}
		}
		var refs []string
		if !o.names.Patterns() {
			refs = o.names
		}
		return runWatch(ctx, e, o.far, refs, picks)
	}
	var changed changes
	view := func(ctx context.Context) (string, error) {
		shown, of, err := o.look(ctx, e, picks, order)
		if err != nil {
			return "", err
		}
		changed.note(shown, e.Now())
		page, out, _ := terminal.Sheet(e.Streams.Out, e.Streams.Out.Width(), e.Streams.Out.Height())
		err = printList(e, page.Out, changed.bold(cli.InstanceList(e), e.Now()), o, shown, of)
		return topOf(out.String(), e.Streams.Out.Height(), e.Afar.Typed("sledctl top moves")), err
	}
	first, err := view(ctx)
	if err != nil {
		return err
	}
	return cli.WatchLive(ctx, e, o.watch, first, view)
}

// topOf is as much of a view as a screen has lines for, with how much more there is.
func topOf(text string, height int, top string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) <= height {
		return text
	}
	kept := max(1, height-1)
	return strings.Join(lines[:kept], "\n") + fmt.Sprintf("\n(%d more lines; --filter shows less, %s)\n", len(lines)-kept, top)
}

// changes are when instances have changed.
type changes struct {
	looked bool              // once at least
	last   map[string]change // by id
}

// change is how an instance was last.
type change struct {
	state string
	at    time.Time // zero: it has not
}

// note compares instances with how they were. At the first look nothing has changed.
func (c *changes) note(now []cli.Instance, at time.Time) {
	if !c.looked {
		at = time.Time{}
	}
	before := c.last
	c.looked, c.last = true, map[string]change{}
	for _, i := range now {
		state := cli.ShownState(i) + " " + i.Reason
		if was, known := before[i.ID]; known && was.state == state {
			c.last[i.ID] = was
		} else {
			c.last[i.ID] = change{state, at}
		}
	}
}

// bold has the rows in bold that have changed a moment ago.
func (c *changes) bold(list terminal.List[cli.Instance], now time.Time) terminal.List[cli.Instance] {
	for n, column := range list.Columns {
		list.Columns[n].Style = func(i cli.Instance) terminal.Style {
			switch at := c.last[i.ID].at; {
			case !at.IsZero() && now.Sub(at) < lastsBold && (column.Style == nil || column.Style(i) == terminal.Plain):
				return terminal.Strong
			case column.Style == nil:
				return terminal.Plain
			}
			return column.Style(i)
		}
	}
	return list
}
