package instance

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/query"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/sled/instance/record"
)

type listOptions struct {
	selection
	watch time.Duration // how often; 0: once
	far   remote
	sort  string
	group string
}

func newList(env *cli.Env) *cobra.Command {
	var o listOptions
	cmd := &cobra.Command{
		Use:     "list [NAME|UUID|PATTERN ...]",
		Aliases: []string{"ls"},
		Short:   "List the instances and their states",
		Long: `List the instances and their states. sledctl reads the states from the host each time: one listing of the zones and of the
links, and one request to each running Propolis. The reason also reports what others changed: the instance's zone halted, removed or
reconfigured, its VNICs deleted, its Propolis restarted without its VM. After a reboot of the sled it says which instances ran.

A table begins with the number of instances in each state. A star marks an instance that others changed. SINCE is how long ago sledctl
brought the instance into its state; a state that came by itself began after that, so it has < before it. A reason that does not fit,
or that three instances share, is a note below the table.

A selection lists some: names, patterns of a shell, --state, --failed, and --filter with a key, an operator and a value. All must hold.
Keys are those of --sort, and disk, nic, vlan and mac; last is ok, failed or interrupted, how the last operation on it ended. Operators are = != < <= > >=, and ~ !~ for regular expressions. A name that does
not exist is exit 4.

With --watch it looks again every 2 s and draws the table in place, with the rows that changed in bold, until q or ^C (exit 0). Without a
terminal, or with -o json, it prints what instance watch prints, of those that are picked.`,
		Example: `  sledctl instance list
  sledctl instance list --filter 'memory>=16G' --watch
  sledctl instance list --filter last=failed -o wide
  sledctl instance list -H --columns name,state,zone`,
		RunE: env.Run(func(ctx context.Context, args []string) error {
			o.name(args)
			return runList(ctx, env, o)
		}),
	}
	o.add(env, cmd)
	cmd.Flags().BoolVar(&o.failed, "failed", false, "only what instance ensure --failed would start")
	cmd.Flags().StringVar(&o.sort, "sort", "", "`[-]KEY,...` to sort by; - is descending (default: name)")
	env.Complete(cmd, "sort", func() []string {
		var keys []string
		for _, f := range fields() {
			keys = append(keys, f.Key)
		}
		return keys
	})
	cmd.Flags().StringVar(&o.group, "group", "", "for people, a table for each `KEY`: state, pool or reason")
	env.Complete(cmd, "group", groups)
	cli.AddWatch(cmd, &o.watch)
	o.far.Add(cmd)
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, env.CompleteInstances)
	return cmd
}

func runList(ctx context.Context, e *cli.Env, o listOptions) error {
	list := cli.InstanceList(e)
	if err := list.Check(e.Output); err != nil {
		return err
	}
	if o.group != "" && !slices.Contains(groups(), o.group) {
		return &cli.UsageError{Text: fmt.Sprintf("--group %q: want %s", o.group, cli.OrWords(groups()))}
	}
	picks, err := o.picker(e.Now())
	if err != nil {
		return err
	}
	order := func(a, b cli.Instance) int { return query.Natural(a.Name, b.Name) }
	if o.sort != "" {
		if order, err = query.Order(fields(), o.sort); err != nil {
			return err
		}
	}
	switch {
	case o.watch < 0:
		return &cli.UsageError{Text: fmt.Sprintf("--watch %v: want a time above 0", o.watch), Advice: "give --watch=2s"}
	case o.watch > 0:
		return watchList(ctx, e, o, picks, order)
	}
	shown, of, err := o.look(ctx, e, picks, order)
	if err != nil {
		return err
	}
	return printList(e, e.Streams.Out, list, o, shown, of)
}

// look lists the instances that are picked, in order, and counts all.
func (o listOptions) look(ctx context.Context, e *cli.Env, picks func(cli.Instance) bool, order func(a, b cli.Instance) int) (shown []cli.Instance, of int, err error) {
	all, err := lookAtAll(ctx, e, o.far, o.asksLast() || o.showsLast(e.Output) || o.far.Is() && o.looks())
	if err != nil {
		return nil, 0, err
	}
	if name := o.missing(all); name != "" {
		return nil, 0, missingOf(all, name)
	}
	of = len(all)
	shown = slices.DeleteFunc(all, func(i cli.Instance) bool { return !picks(i) })
	if e.Output.Table(e.Streams.Out) || o.sort != "" {
		slices.SortStableFunc(shown, order)
	}
	return shown, of, nil
}

func printList(e *cli.Env, out *terminal.Stream, list terminal.List[cli.Instance], o listOptions, shown []cli.Instance, of int) error {
	list.Summary = summary(shown, of)
	if o.group != "" && e.Output.Table(out) {
		return printGroups(e, out, list, shown, o.group)
	}
	return list.Print(out, e.Output, shown)
}

// groups are the keys by which instances may be put together.
func groups() []string { return []string{"state", "pool", "reason"} }

// printGroups prints a table for each value of a key, the largest first.
func printGroups(e *cli.Env, out *terminal.Stream, list terminal.List[cli.Instance], shown []cli.Instance, key string) error {
	all := fields()
	field := all[slices.IndexFunc(all, func(f query.Field[cli.Instance]) bool { return f.Key == key })]
	members := map[string][]cli.Instance{}
	var order []string
	for _, i := range shown {
		values := field.Text(i) // a pool's last is the short one
		group := cmp.Or(values[len(values)-1], "no "+key)
		if members[group] == nil {
			order = append(order, group)
		}
		members[group] = append(members[group], i)
	}
	slices.SortStableFunc(order, func(a, b string) int { return len(members[b]) - len(members[a]) })
	if !e.Output.NoHeader {
		if _, err := fmt.Fprintln(out, list.Summary); err != nil {
			return err
		}
	}
	for _, group := range order {
		head := out.Style(terminal.Strong, terminal.Printable(group))
		if _, err := fmt.Fprintf(out, "\n%s: %d\n", head, len(members[group])); err != nil {
			return err
		}
		list.Summary = ""
		if err := list.Print(out, e.Output, members[group]); err != nil {
			return err
		}
	}
	return nil
}

// showsLast says whether what is printed has the last operations.
func (o listOptions) showsLast(out terminal.Output) bool {
	return slices.Contains([]terminal.Format{terminal.FormatJSON, terminal.FormatWide}, out.Format) || slices.Contains(out.Columns, "last") || strings.Contains(o.sort, "last")
}

// lookAtAll lists the instances, by name, here or at an agent, with the last operation on
// each if that is asked for.
func lookAtAll(ctx context.Context, e *cli.Env, far remote, last bool) ([]cli.Instance, error) {
	if far.Is() {
		c, err := far.Client(e, cli.Mutation{})
		if err != nil {
			return nil, err
		}
		all, err := c.List(ctx, last)
		return cli.ByName(all.Items, func(s cli.Instance) string { return s.Name }), err
	}
	s, env, err := e.Instances(ctx)
	if err != nil {
		return nil, err
	}
	view, err := e.View(ctx)
	if err != nil {
		return nil, err
	}
	all, err := s.List(ctx, env, view)
	if err != nil {
		return nil, err
	}
	shown := make([]cli.Instance, len(all))
	for i, at := range cli.OrderOf(len(all), func(i int) string { return all[i].Name }) {
		shown[i] = cli.ShowInstance(all[at])
	}
	if last {
		api.AddLast(shown, view)
	}
	return shown, nil
}

// summary says how many instances are in which state, and what those that are up have.
func summary(shown []cli.Instance, of int) string {
	count := map[string]int{}
	var cpus int
	var memory uint64
	for _, i := range shown {
		count[i.State]++
		if isUp(i.State) {
			cpus, memory = cpus+i.CPUs, memory+i.Memory
		}
	}
	var parts []string
	for _, state := range cli.StatesOf(count) {
		parts = append(parts, fmt.Sprintf("%d %s", count[state], state))
	}
	text := vms(len(shown))
	if len(shown) != of {
		text = fmt.Sprintf("%d of %s", len(shown), vms(of))
	}
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	if cpus > 0 {
		text += fmt.Sprintf("   %d vCPUs, %s in use", cpus, terminal.FormatSize(memory))
	}
	return text
}

// isUp reports whether a state is one of a VM that has memory.
func isUp(state string) bool {
	return !slices.Contains([]string{record.Stopped, record.Absent, record.Failed, record.Unknown, record.Creating, "destroyed"}, state)
}
