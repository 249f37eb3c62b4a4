package commands

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/sled/base"
	"github.com/sledctl/sledctl/sled/instance/record"
)

func newBase(env *Env) *cobra.Command {
	cmd := group("base", "List, create and remove base zones", "")
	cmd.AddCommand(newBaseList(env), newBaseEnsure(env), newBaseRetire(env))
	return cmd
}

func baseList() terminal.List[base.Status] {
	type column = terminal.Column[base.Status]
	return terminal.List[base.Status]{Kind: "Base", Name: func(b base.Status) string { return b.Zone }, Columns: []column{
		{Name: "zone", Value: func(b base.Status) string { return b.Zone }},
		{Name: "pool", Value: func(b base.Status) string { return b.Pool }},
		{Name: "generation", Value: func(b base.Status) string { return strconv.Itoa(b.Generation) }, Right: true},
		{Name: "valid", Value: func(b base.Status) string { return strconv.FormatBool(b.Valid) }},
		{Name: "clones", Value: func(b base.Status) string { return strconv.Itoa(b.Clones) }, Right: true},
		{Name: "reason", Value: func(b base.Status) string { return b.Reason }},
		{Name: "dataset", Value: func(b base.Status) string { return b.Dataset }, Extra: true},
		{Name: "uuid", Value: func(b base.Status) string { return b.UUID }, Extra: true},
	}}
}

func newBaseList(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the base zones and what is cloned from them",
		Example: `  sledctl base list`,
		Args:    cobra.NoArgs,
		RunE:    env.run(func(ctx context.Context, _ []string) error { return runBaseList(ctx, env) }),
	}
	env.addOutput(cmd)
	return cmd
}

func runBaseList(ctx context.Context, e *Env) error {
	if err := baseList().Check(e.output); err != nil {
		return err
	}
	c, h, err := e.reach()
	if err != nil {
		return err
	}
	view, err := e.view(ctx)
	if err != nil {
		return err
	}
	all, err := baseSettings(c).List(ctx, h, view)
	if err != nil {
		return err
	}
	return baseList().Print(e.Streams.Out, e.output, all)
}

func newBaseEnsure(env *Env) *cobra.Command {
	var m mutation
	cmd := &cobra.Command{
		Use:   "ensure [POOL ...]",
		Short: "Create a base zone on each pool that lacks a valid one",
		Long: `Create a base zone on each pool that lacks a valid one: on the pools that may hold zones, or on those named. sledctl does not
repair a base of another system release, or one that was changed: it creates the next generation next to it.`,
		Example: `  sledctl base ensure
  sledctl base ensure oxp_11111111-1111-4111-8111-111111111111 --explain`,
		RunE: env.run(func(ctx context.Context, pools []string) error { return runBaseEnsure(ctx, env, m, pools) }),
	}
	m.add(cmd, true)
	env.addOutput(cmd)
	completeArgs(cmd, env.completePools)
	return cmd
}

func runBaseEnsure(ctx context.Context, e *Env, m mutation, pools []string) error {
	if err := baseList().Check(e.output); err != nil {
		return err
	}
	c, env, err := e.operation()
	if err != nil {
		return err
	}
	if len(pools) == 0 {
		if pools, err = e.zonePools(ctx, env.Host); err != nil {
			return err
		}
	}
	var reports []operation.Report
	for _, pool := range pools {
		_, report, err := baseSettings(c).Ensure(ctx, env, pool, m.dry(), m.keep)
		reports = append(reports, report)
		if err != nil {
			return withReport(err, reports...)
		}
	}
	if m.dry() {
		return e.printPlan(m, reports...)
	}
	return runBaseList(ctx, e)
}

func newBaseRetire(env *Env) *cobra.Command {
	var m mutation
	var mustExist bool
	cmd := &cobra.Command{
		Use:     "retire ZONE",
		Short:   "Remove a base zone without clones",
		Example: `  sledctl base retire propolis_base_11111111_1`,
		Args:    cobra.ExactArgs(1),
		RunE: env.run(func(ctx context.Context, args []string) error {
			c, op, err := env.operation()
			if err != nil {
				return err
			}
			there, report, err := baseSettings(c).Retire(ctx, op, args[0], record.ClonedSince, m.dry())
			switch {
			case err != nil:
				return withReport(err, report)
			case !there && mustExist:
				return &notFoundError{what: "base " + args[0]}
			case m.dry():
				return env.printPlan(m, report)
			}
			return nil
		}),
	}
	m.add(cmd, false)
	env.addOutput(cmd)
	cmd.Flags().BoolVar(&mustExist, "must-exist", false, "exit 4 if it does not exist")
	completeArgs(cmd, func(ctx context.Context) []string {
		view, err := env.view(ctx)
		if err != nil {
			return nil
		}
		all, err := base.All(view)
		if err != nil {
			return nil
		}
		var names []string
		for _, b := range all {
			names = append(names, b.Zone)
		}
		return names
	})
	return cmd
}
