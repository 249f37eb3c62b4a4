package instance

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/description"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/sled/copies"
	"github.com/sledctl/sledctl/sled/instance"
)

func newCopy(env *cli.Env) *cobra.Command {
	var m cli.Mutation
	var f description.Flags
	var c copies.Request
	cmd := &cobra.Command{
		Use: "copy INSTANCE NAME", Short: "Create an instance as another one, with clones of its disks",
		Long: `Create an instance as another one, with clones of its disks, and start it. It has the CPUs, the memory and the links of the
other; its id, MACs and addresses are its own. Clones take no time, and no room for what both have in common. Flags say what else is
to differ, as for instance ensure.

The disks are as the other's are now: of one that runs, as after a power failure (sledctl instance snapshot --help). For that, the other
gets a snapshot for-NAME; --snapshot takes one that exists. It stays as long as volumes are clones of it.

If the other has cloud-init data, the copy has it with its own name, the same SSH keys and another instance-id, so that cloud-init
makes new host keys; user-data and network-config are not copied.`,
		Example: `  sledctl instance copy web1 web2
  sledctl instance copy web1 web2 --snapshot before-upgrade --memory 16G`,
		Args: cobra.ExactArgs(2),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			c.From, f.Wanted.Ref = args[0], args[1]
			wanted, err := description.Wanted(ctx, env, f)
			if err != nil {
				return err
			}
			c.Wanted, c.DryRun, c.Keep = wanted, m.Dry(), m.Keep
			return env.ChangeInstance(ctx, m, func(ctx context.Context, instances instance.Settings, op operation.Env) (instance.Result, error) {
				s, err := cli.Copies(env, instances)
				if err != nil {
					return instance.Result{}, err
				}
				return s.Copy(ctx, op, c)
			})
		}),
	}
	f.Add(env, cmd, false)
	cmd.Flags().StringVar(&c.Snapshot, "snapshot", "", "`NAME` of a snapshot to clone (default: one is taken)")
	m.Add(cmd, true)
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, env.CompleteInstances)
	return cmd
}
