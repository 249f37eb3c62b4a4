package sim

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
)

func newWeb(env *cli.Env) *cobra.Command {
	var address string
	cmd := &cobra.Command{
		Use:   "web DIR",
		Short: "Put a web server near the simulated sled",
		Long: `Put a web server near the simulated sled, with the files of the directory DIR. The sled reaches it by http at the address; sledctl sim
fault disturbs it. There is one: another DIR or address takes its place.`,
		Example: `  sledctl sim web ~/images --address images.example:80
  sledctl image fetch http://images.example/disk.qcow2`,
		Args: cobra.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			if err := checkAddress(address); err != nil {
				return err
			}
			sled, _, err := simulatedSled(env)
			if err != nil {
				return err
			}
			if err := sled.InitWeb(ctx, address, args[0]); err != nil {
				return cli.NamedFile(args[0], err)
			}
			env.Progress.Say("a web server with the files of %s answers at %s", args[0], address)
			return nil
		}),
	}
	cmd.Flags().StringVar(&address, "address", "images.example:80", "HOST:PORT of the web server")
	return cmd
}
