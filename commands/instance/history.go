package instance

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/events"
	"github.com/sledctl/sledctl/commands/history"
)

// newHistory is history of one instance, by name; on a terminal its events.
func newHistory(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "history NAME|UUID",
		Short:   "Print what was decided about an instance, and when",
		Example: `  sledctl instance history web1`,
		Args:    cobra.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			s, _, err := env.Instances(ctx)
			if err != nil {
				return err
			}
			view, err := env.View(ctx)
			if err != nil {
				return err
			}
			r, err := s.Find(view, args[0])
			if err != nil {
				return err
			}
			if env.Output.Screen(env.Streams.Out) {
				return events.Run(ctx, env, events.Options{Of: r.ID})
			}
			return history.Run(ctx, env, history.Options{Prefix: "instance/" + r.ID})
		}),
	}
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, env.CompleteInstances)
	return cmd
}
