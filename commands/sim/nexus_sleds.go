package sim

import (
	"context"
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sled/failure"
)

// planeSleds is how sleds are printed as the control plane knows them.
func planeSleds() terminal.List[sim.NexusSled] {
	type sled = sim.NexusSled
	number := func(n uint64) string { return strconv.FormatUint(n, 10) }
	state := func(s sled) string {
		if s.Decommissioned {
			return "decommissioned"
		}
		return "active"
	}
	return terminal.List[sled]{Kind: "Sled", Name: func(s sled) string { return s.ID }, Columns: []terminal.Column[sled]{
		{Name: "id", Value: func(s sled) string { return s.ID }},
		{Name: "state", Value: state},
		{Name: "serial", Value: func(s sled) string { return s.Baseboard.Serial }},
		{Name: "address", Value: func(s sled) string { return s.Address }},
		{Name: "generation", Value: func(s sled) string { return number(s.Generation) }, Right: true},
		{Name: "part", Value: func(s sled) string { return s.Baseboard.Part }, Extra: true},
		{Name: "cpu_family", Value: func(s sled) string { return s.Family }, Extra: true},
		{Name: "threads", Value: func(s sled) string { return number(uint64(s.Threads)) }, Right: true, Extra: true},
		{Name: "memory", Value: func(s sled) string { return number(s.RAM) }, Human: func(s sled) string { return terminal.FormatSize(s.RAM) }, Right: true, Extra: true},
		{Name: "reservoir", Value: func(s sled) string { return number(s.Reservoir) }, Human: func(s sled) string { return terminal.FormatSize(s.Reservoir) }, Right: true, Extra: true},
	}}
}

func newNexusSleds(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sleds",
		Short: "List the sleds that have registered with the control plane",
		Long: `List the sleds that have registered with the control plane: the agent of a sled does so if nexus.sled_id is set, and again whenever
what the control plane knows differs. A sled that is decommissioned stays so.`,
		Example: `  sledctl sim nexus sleds -o wide`, Args: cobra.NoArgs,
		RunE: env.Run(func(ctx context.Context, _ []string) error {
			sled, _, err := simulatedSled(env)
			if err != nil {
				return err
			}
			all, err := sled.NexusSleds(ctx)
			if err != nil {
				return noNexus(err)
			}
			return planeSleds().Print(env.Streams.Out, env.Output, all)
		}),
	}
	env.AddOutput(cmd)
	return cmd
}

func newNexusInventory(env *cli.Env) *cobra.Command {
	type item = sim.NexusItem
	list := terminal.List[item]{Kind: "Item", Name: func(i item) string { return i.Name }, Columns: []terminal.Column[item]{
		{Name: "sled", Value: func(i item) string { return i.Sled }},
		{Name: "kind", Value: func(i item) string { return i.Kind }},
		{Name: "name", Value: func(i item) string { return i.Name }},
		{Name: "detail", Value: func(i item) string { return i.Detail }},
	}}
	cmd := &cobra.Command{
		Use:   "inventory",
		Short: "Make the control plane ask its sleds what they have",
		Long: `Make the control plane ask its sleds what they have: their disks, pools and datasets, and, once sledctl sim nexus reconcile has told a sled
what it should have, the result for each disk and dataset.`,
		Example: `  sledctl sim nexus inventory --columns kind,name,detail`, Args: cobra.NoArgs,
		RunE: env.Run(func(ctx context.Context, _ []string) error {
			sled, _, err := simulatedSled(env)
			if err != nil {
				return err
			}
			all, err := sled.NexusInventory(ctx)
			if err != nil {
				return noNexus(err)
			}
			return list.Print(env.Streams.Out, env.Output, all)
		}),
	}
	env.AddOutput(cmd)
	return cmd
}

func newNexusDecommission(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "decommission SLED-ID",
		Short:   "Make the control plane take a sled out of service for good",
		Example: `  sledctl sim nexus decommission 5b6f33bb-9c0c-4a3c-8e5f-2d6b1c0b7a11`, Args: cobra.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			sled, _, err := simulatedSled(env)
			if err != nil {
				return err
			}
			err = sled.DecommissionSled(ctx, args[0])
			if errors.Is(err, sim.ErrNoSled) {
				return &failure.RefusedError{Err: err, Advice: "to list those that it knows, run: sledctl sim nexus sleds"}
			}
			return noNexus(err)
		}),
	}
	cli.CompleteArgs(cmd, func(ctx context.Context) (ids []string) {
		sled, _, err := simulatedSled(env)
		if err != nil {
			return nil
		}
		all, _ := sled.NexusSleds(ctx)
		for _, s := range all {
			ids = append(ids, s.ID)
		}
		return ids
	})
	return cmd
}
