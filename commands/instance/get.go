package instance

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/documents"
)

// formatTOML is the document of an instance, which only instance get prints.
const formatTOML terminal.Format = "toml"

func newGet(env *cli.Env) *cobra.Command {
	var far remote
	cmd := &cobra.Command{
		Use:   "get NAME|UUID",
		Short: "Show one instance",
		Long: `Show one instance. With -o toml, print the document that describes it, with nothing left open: instance ensure -f takes it, and finds
nothing to do while the instance runs. An instance whose spec has secrets has no such document (exit 8).`,
		Example: `  sledctl instance get web1 -o json
  sledctl instance get web1 -o toml >web1.toml`,
		Args: cobra.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			switch {
			case env.Output.Format == formatTOML && far.is():
				return &cli.UsageError{Text: "an agent cannot be asked for -o toml", Advice: "run it on the sled"}
			case env.Output.Format == formatTOML:
				return printDocument(ctx, env, args[0])
			case far.is():
				return changeRemotely(ctx, env, far, cli.Mutation{}, manyFlags{parallel: 1}, args, "")
			}
			if err := cli.InstanceList(env).Check(env.Output); err != nil {
				return err
			}
			s, op, err := env.Instances(ctx)
			if err != nil {
				return err
			}
			return env.PrintInstance(ctx, s, op, args[0], instance.Settings.Get)
		}),
	}
	far.add(cmd)
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, env.CompleteInstances)
	return cmd
}

// printDocument prints what instance ensure -f reads.
func printDocument(ctx context.Context, e *cli.Env, ref string) error {
	s, _, err := e.Instances(ctx)
	if err != nil {
		return err
	}
	view, err := e.View(ctx)
	if err != nil {
		return err
	}
	r, err := s.Find(view, ref)
	if err != nil {
		return err
	}
	text, err := documents.Text(r, r.ID == s.ID(r.Name))
	if err != nil {
		return err
	}
	_, err = io.WriteString(e.Streams.Out, text)
	return err
}
