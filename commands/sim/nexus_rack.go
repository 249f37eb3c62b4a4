package sim

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/sim"
)

// planeInstances is how the control plane's instances are printed.
func planeInstances() terminal.List[sim.NexusInstance] {
	type one = sim.NexusInstance
	return terminal.List[one]{Kind: "Instance", Name: func(i one) string { return i.Name }, Columns: []terminal.Column[one]{
		{Name: "name", Value: func(i one) string { return i.Name }},
		{Name: "state", Value: func(i one) string { return i.State }},
		{Name: "ip", Value: func(i one) string { return i.IP }},
		{Name: "sled", Value: func(i one) string { return i.Sled }},
		{Name: "vm", Value: func(i one) string { return i.VM }},
		{Name: "disk", Value: func(i one) string { return i.Disk }, Extra: true},
		{Name: "mac", Value: func(i one) string { return i.MAC }, Extra: true},
		{Name: "id", Value: func(i one) string { return i.ID }, Extra: true},
	}}
}

func newNexusInstances(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "instances",
		Short:   "List the instances that the control plane runs",
		Long:    `List the instances that the control plane runs: the state that it knows, the sled that each is on, and its Propolis id.`,
		Example: `  sledctl sim nexus instances -o wide`, Args: cobra.NoArgs,
		RunE: env.Run(func(ctx context.Context, _ []string) error {
			sled, _, err := simulatedSled(env)
			if err != nil {
				return err
			}
			all, err := sled.NexusInstances(ctx)
			if err != nil {
				return noNexus(err)
			}
			return planeInstances().Print(env.Streams.Out, env.Output, all)
		}),
	}
	env.AddOutput(cmd)
	return cmd
}

func newNexusPlace(env *cli.Env) *cobra.Command {
	var w sim.NexusVMWanted
	var disk, memory string
	cmd := &cobra.Command{
		Use:   "place NAME...",
		Short: "Make the control plane run instances on its sleds",
		Long: `Make the control plane run instances on its sleds. It asks each registered sled for its inventory, and puts each instance on the one that has most
memory left, with a NIC in its VPC and, with --disk, a local disk there. sledctl sim nexus reconcile sends the rest.`,
		Example: `  sledctl sim nexus place web1 web2 --memory 512M --disk 1G`, Args: cobra.MinimumNArgs(1),
		RunE: env.Run(func(ctx context.Context, names []string) error {
			bytes, err := terminal.ParseSize(memory)
			if err == nil && disk != "" {
				w.Disk, err = terminal.ParseSize(disk)
			}
			if err != nil {
				return err
			}
			w.Memory = int(bytes >> 20)
			sled, _, err := simulatedSled(env)
			if err != nil {
				return err
			}
			for _, w.Name = range names {
				if err := sled.PlaceInNexus(ctx, w); err != nil {
					return noNexus(fmt.Errorf("place %s: %w", w.Name, err))
				}
			}
			return nil
		}),
	}
	flags := cmd.Flags()
	flags.IntVar(&w.CPUs, "cpus", 1, "number of virtual CPUs of each")
	flags.StringVar(&memory, "memory", "512M", "memory of each, in whole `SIZE`s of 1M")
	flags.StringVar(&disk, "disk", "", "`SIZE` of the local disk of each (default: none)")
	return cmd
}

func newNexusReconcile(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "reconcile",
		Short: "Make the control plane tell its sleds what they should have",
		Long: `Make the control plane tell its sleds what they should have, once, as its background tasks do: their disks and datasets, where the
addresses of the VPC are, its firewall and its routes. A VM that has failed is removed and made again.`,
		Example: `  sledctl sim nexus reconcile`, Args: cobra.NoArgs,
		RunE: env.Run(func(ctx context.Context, _ []string) error {
			sled, _, err := simulatedSled(env)
			if err != nil {
				return err
			}
			return noNexus(sled.ReconcileNexus(ctx))
		}),
	}
}

func newNexusMigrate(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "migrate NAME SLED-ID",
		Short:   "Make the control plane move an instance to another sled",
		Long:    `Make the control plane move an instance to another sled, and wait until its VM runs there. One with a local disk stays.`,
		Example: `  sledctl sim nexus migrate web1 5b6f33bb-9c0c-4a3c-8e5f-2d6b1c0b7a11`, Args: cobra.ExactArgs(2),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			sled, _, err := simulatedSled(env)
			if err != nil {
				return err
			}
			return noNexus(sled.MigrateInNexus(ctx, args[0], args[1]))
		}),
	}
	completeInstances(env, cmd)
	return cmd
}

func newNexusRemove(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "remove NAME...",
		Short: "Make the control plane take instances out of use",
		Long: `Make the control plane take instances out of use: it stops the VM of each, waits until it has ended, and has its sled remove its local disk.
sledctl sim nexus reconcile repeats what a sled did not finish.`,
		Example: `  sledctl sim nexus remove web1 web2`, Args: cobra.MinimumNArgs(1),
		RunE: env.Run(func(ctx context.Context, names []string) error {
			sled, _, err := simulatedSled(env)
			for _, name := range names {
				if err == nil {
					err = noNexus(sled.RemoveFromNexus(ctx, name))
				}
			}
			return err
		}),
	}
	completeInstances(env, cmd)
	return cmd
}

// completeInstances completes the names of the control plane's instances.
func completeInstances(env *cli.Env, cmd *cobra.Command) {
	cli.CompleteArgs(cmd, func(ctx context.Context) (names []string) {
		sled, _, err := simulatedSled(env)
		if err != nil {
			return nil
		}
		all, _ := sled.NexusInstances(ctx)
		for _, i := range all {
			names = append(names, i.Name)
		}
		return names
	})
}
