// Package base is sledctl base.
package base

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/sled/base"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// New is the command base.
func New(env *cli.Env) *cobra.Command {
	cmd := cli.Group("base", "List, create and remove base zones", "")
	cmd.AddCommand(newList(env), newEnsure(env), newRetire(env))
	return cmd
}

// shownBase is a base zone as it is printed.
type shownBase struct {
	base.Status
	Spares int `json:"spares"` // of the clones, those that no VM has taken yet
}

func baseList() terminal.List[shownBase] {
	type column = terminal.Column[shownBase]
	return terminal.List[shownBase]{Kind: "Base", Name: func(b shownBase) string { return b.Zone }, Columns: []column{
		{Name: "zone", Value: func(b shownBase) string { return b.Zone }},
		{Name: "pool", Value: func(b shownBase) string { return b.Pool }},
		{Name: "generation", Value: func(b shownBase) string { return strconv.Itoa(b.Generation) }, Right: true},
		{Name: "valid", Value: func(b shownBase) string { return strconv.FormatBool(b.Valid) }},
		{Name: "clones", Value: func(b shownBase) string { return strconv.Itoa(b.Clones) }, Right: true},
		{Name: "spares", Value: func(b shownBase) string { return strconv.Itoa(b.Spares) }, Right: true},
		{Name: "reason", Value: func(b shownBase) string { return b.Reason }, Note: true},
		{Name: "dataset", Value: func(b shownBase) string { return b.Dataset }, Extra: true},
		{Name: "uuid", Value: func(b shownBase) string { return b.UUID }, Extra: true},
	}}
}

func newList(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the base zones and what is cloned from them",
		Example: `  sledctl base list`,
		Args:    cobra.NoArgs,
		RunE:    env.Run(func(ctx context.Context, _ []string) error { return runList(ctx, env) }),
	}
	env.AddOutput(cmd)
	return cmd
}

func runList(ctx context.Context, e *cli.Env) error {
	if err := baseList().Check(e.Output); err != nil {
		return err
	}
	c, h, err := e.Reach()
	if err != nil {
		return err
	}
	view, err := e.View(ctx)
	if err != nil {
		return err
	}
	all, err := cli.BaseSettings(c).List(ctx, h, view)
	if err != nil {
		return err
	}
	spares, err := record.Spares(view)
	if err != nil {
		return err
	}
	var shown []shownBase
	for _, b := range all {
		one := shownBase{Status: b}
		for _, spare := range spares {
			if spare.Base == b.Zone {
				one.Spares++
			}
		}
		shown = append(shown, one)
	}
	return baseList().Print(e.Streams.Out, e.Output, shown)
}

func newEnsure(env *cli.Env) *cobra.Command {
	var m cli.Mutation
	cmd := &cobra.Command{
		Use:   "ensure [POOL ...]",
		Short: "Create a base zone on each pool that lacks a valid one",
		Long: `Create a base zone on each pool that lacks a valid one: on the pools that may hold zones, or on those named. sledctl does not
repair a base of another system release, or one that was changed: it creates the next generation next to it.`,
		Example: `  sledctl base ensure
  sledctl base ensure oxp_11111111-1111-4111-8111-111111111111 --explain`,
		RunE: env.Run(func(ctx context.Context, pools []string) error { return runEnsure(ctx, env, m, pools) }),
	}
	m.Add(cmd, true)
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, env.CompletePools)
	return cmd
}

func runEnsure(ctx context.Context, e *cli.Env, m cli.Mutation, pools []string) error {
	if err := baseList().Check(e.Output); err != nil {
		return err
	}
	c, env, err := e.Operation()
	if err != nil {
		return err
	}
	named := make([]*string, len(pools))
	for i := range pools {
		named[i] = &pools[i]
	}
	if err := cli.WholePools(ctx, e, named...); err != nil {
		return err
	}
	if len(pools) == 0 {
		if pools, err = e.ZonePools(ctx, env.Host); err != nil {
			return err
		}
	}
	var reports []operation.Report
	for _, pool := range pools {
		_, report, err := cli.BaseSettings(c).Ensure(ctx, env, pool, m.Dry(), m.Keep)
		reports = append(reports, report)
		if err != nil {
			return failure.WithReport(err, reports...)
		}
	}
	if m.Dry() {
		return e.PrintPlan(m, reports...)
	}
	return runList(ctx, e)
}

// clones is what instances and spares are cloned from a base.
func clones(env operation.Env) base.Clones {
	return base.Clones{Since: record.ClonedSince, Ahead: func(view ledger.View, inv *inventory.Inventory, name string) (base.Ahead, error) {
		boot, err := operation.Boot(env)
		if err != nil {
			return base.Ahead{}, err
		}
		g, err := instance.GiveUpSpares(view, inv, name, boot)
		return base.Ahead(g), err
	}}
}

func newRetire(env *cli.Env) *cobra.Command {
	var m cli.Mutation
	var mustExist bool
	cmd := &cobra.Command{
		Use:     "retire ZONE",
		Short:   "Remove a base zone without clones, and its spares",
		Example: `  sledctl base retire propolis_base_11111111_1`,
		Args:    cobra.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			c, op, err := env.Operation()
			if err != nil {
				return err
			}
			there, report, err := cli.BaseSettings(c).Retire(ctx, op, args[0], clones(op), m.Dry())
			switch {
			case err != nil:
				return failure.WithReport(err, report)
			case !there && mustExist:
				return &cli.NotFoundError{What: "base " + args[0], List: "sledctl base list"}
			case m.Dry():
				return env.PrintPlan(m, report)
			}
			return nil
		}),
	}
	m.Add(cmd, false)
	env.AddOutput(cmd)
	cmd.Flags().BoolVar(&mustExist, "must-exist", false, "exit 4 if it does not exist")
	cli.CompleteArgs(cmd, cli.Recorded(env, base.All, func(b base.Record) string { return b.Zone }))
	return cmd
}
