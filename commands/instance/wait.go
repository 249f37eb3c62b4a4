package instance

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/instance/watch"
)

func newWait(env *cli.Env) *cobra.Command {
	var goal string
	var far remote
	cmd := &cobra.Command{
		Use:   "wait NAME|UUID ... --for STATE",
		Short: "Wait until instances reach a state",
		Long: `Wait until instances reach a state, all of them, and print them.

    running   the VM runs
    stopped   the instance was stopped, or its VM ended by itself
    failed    the VM failed, or was lost with its Propolis
    absent    nothing of the instance is on the host, or it is not recorded

The command ends at once with exit 1 if an instance cannot reach the state: it failed, or is deleted, and no other sledctl process works
on it. --timeout limits the wait (exit 7). With --agent the command continues after a restart of the agent.`,
		Example: `  sledctl instance wait web1 web2 --for running --timeout 2m
  sledctl propolis reboot --instance web1 && sledctl instance wait web1 --for running`,
		Args: cobra.MinimumNArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error { return runWait(ctx, env, far, goal, args) }),
	}
	cmd.Flags().StringVar(&goal, "for", "", cli.OrWords(watch.Goals()))
	env.Complete(cmd, "for", watch.Goals)
	far.Add(cmd)
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, env.CompleteInstances)
	return cmd
}

func runWait(ctx context.Context, e *cli.Env, far remote, goal string, refs []string) error {
	list := cli.InstanceList(e)
	if err := list.Check(e.Output); err != nil {
		return err
	}
	switch {
	case goal == "":
		return &cli.UsageError{Text: "--for is missing: which state?", Advice: "give --for " + cli.OrWords(watch.Goals())}
	case !slices.Contains(watch.Goals(), goal):
		hint := "give --for " + cli.OrWords(watch.Goals())
		if near := naming.Nearest(goal, watch.Goals()); near != "" {
			hint = "did you mean: --for " + near
		}
		return &cli.UsageError{Text: fmt.Sprintf("--for %q cannot be waited for", goal), Advice: hint}
	}
	if far.Is() {
		return waitRemotely(ctx, e, far, goal, refs)
	}
	s, op, err := e.Instances(ctx)
	if err != nil {
		return err
	}
	now, err := watch.Wait(ctx, s, op, refs, goal)
	if err != nil {
		return err
	}
	shown := make([]cli.Instance, len(now))
	for i, one := range now {
		shown[i] = cli.ShowInstance(one)
	}
	return list.Print(e.Streams.Out, e.Output, shown)
}
