package instance

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
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
		RunE: env.Run(func(ctx context.Context, args []string) error { return runWatch(ctx, env, far, args) }),
	}
	far.add(cmd)
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, env.CompleteInstances)
	return cmd
}

func runWatch(ctx context.Context, e *cli.Env, far remote, refs []string) error {
	list := cli.InstanceList(e)
	if err := list.Check(e.Output); err != nil {
		return err
	}
	if far.is() {
		c, err := agentClient(e, far, cli.Mutation{})
		if err != nil {
			return err
		}
		c.Unreachable = e.Progress.Warn
		return c.Watch(ctx, refs, list.Follow(e.Streams.Out, e.Output))
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
	print := list.Follow(e.Streams.Out, e.Output)
	return watch.Watch(ctx, s, op, pick, func(i instance.Instance) error { return print(cli.ShowInstance(i)) }, nil)
}
