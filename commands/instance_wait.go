package commands

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/sled/instance/watch"
)

func newInstanceWait(env *Env) *cobra.Command {
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
		RunE: env.run(func(ctx context.Context, args []string) error { return runInstanceWait(ctx, env, far, goal, args) }),
	}
	cmd.Flags().StringVar(&goal, "for", "", orWords(watch.Goals()))
	env.complete(cmd, "for", watch.Goals)
	far.add(cmd)
	env.addOutput(cmd)
	completeArgs(cmd, env.completeInstances)
	return cmd
}

func runInstanceWait(ctx context.Context, e *Env, far remote, goal string, refs []string) error {
	list := instanceList(e)
	if err := list.Check(e.output); err != nil {
		return err
	}
	switch {
	case goal == "":
		return &usageError{text: "--for is missing: which state?", hint: "--for " + orWords(watch.Goals())}
	case !slices.Contains(watch.Goals(), goal):
		hint := "one of " + orWords(watch.Goals())
		if near := terminal.Nearest(goal, watch.Goals()); near != "" {
			hint = "did you mean: --for " + near
		}
		return &usageError{text: fmt.Sprintf("--for %q cannot be waited for", goal), hint: hint}
	}
	if far.is() {
		return waitRemotely(ctx, e, far, goal, refs)
	}
	s, op, err := e.instances(ctx)
	if err != nil {
		return err
	}
	now, err := watch.Wait(ctx, s, op, refs, goal)
	if err != nil {
		return err
	}
	shown := make([]shownInstance, len(now))
	for i, one := range now {
		shown[i] = showInstance(one)
	}
	return list.Print(e.Streams.Out, e.output, shown)
}
