package commands

import (
	"context"

	"github.com/spf13/cobra"
)

// newInstanceHistory is history of one instance, by name.
func newInstanceHistory(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "history NAME|UUID",
		Short:   "Print what was decided about an instance, and when",
		Example: `  sledctl instance history web1`,
		Args:    cobra.ExactArgs(1),
		RunE: env.run(func(ctx context.Context, args []string) error {
			s, _, err := env.instances(ctx)
			if err != nil {
				return err
			}
			view, err := env.view(ctx)
			if err != nil {
				return err
			}
			r, err := s.Find(view, args[0])
			if err != nil {
				return err
			}
			return runHistory(ctx, env, historyOptions{prefix: "instance/" + r.ID})
		}),
	}
	env.addOutput(cmd)
	completeArgs(cmd, env.completeInstances)
	return cmd
}
