// Package step is one stage of an instance's bring-up, as a command.
package step

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/description"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// Options are those of a single step of an instance's bring-up.
type Options struct {
	cli.Mutation
	description.Flags
	Ref string
}

// Add adds the flags of a step. Each step accepts the whole description of the
// instance; its help describes the flags that it uses.
func (o *Options) Add(env *cli.Env, cmd *cobra.Command, uses ...string) {
	cmd.Flags().StringVar(&o.Ref, "instance", "", "`NAME|UUID` of the instance")
	env.CompleteFlag(cmd, "instance", env.CompleteInstances)
	o.Flags.Add(env, cmd, false)
	unused := slices.DeleteFunc(Describing(), func(flag string) bool { return slices.Contains(uses, flag) })
	cli.DescribedBy(cmd, "sledctl instance ensure", unused...)
	o.Mutation.Add(cmd, true)
	env.AddOutput(cmd)
}

// Describing are the flags that describe an instance.
func Describing() []string {
	return []string{"address", "cloud-init", "cpus", "disk", "hostname", "memory", "name", "network-config", "nic", "pool", "spec", "ssh-key"}
}

// New is a command that does one stage of the bring-up of an instance, and
// prints what the stage is about.
func New(env *cli.Env, stage instance.Stage, cmd *cobra.Command, print func(context.Context, *cli.Env, record.Record) error) *cobra.Command {
	var o Options
	cmd.Args = cobra.NoArgs
	cmd.RunE = env.Run(func(ctx context.Context, _ []string) error { return Run(ctx, env, stage, o, print) })
	o.Add(env, cmd, UsedBy(stage)...)
	return cmd
}

// UsedBy are the flags of an instance's description that a stage uses.
func UsedBy(stage instance.Stage) []string {
	switch stage {
	case instance.StageVNIC:
		return []string{"nic", "name"}
	case instance.StageZone:
		return []string{"disk", "pool"}
	case instance.StageAddress:
		return []string{"address"}
	case instance.StageEnsure:
		return []string{"cpus", "memory", "disk", "nic", "spec", "cloud-init", "hostname", "ssh-key", "network-config"}
	}
	return nil
}

// Run does one stage of the bring-up, and prints what it is about.
func Run(ctx context.Context, e *cli.Env, stage instance.Stage, o Options, print func(context.Context, *cli.Env, record.Record) error) error {
	if o.Ref == "" {
		return &cli.UsageError{Text: string(stage) + ": --instance is missing", Advice: "run: sledctl " + string(stage) + " --instance NAME"}
	}
	wanted, err := description.Wanted(ctx, e, o.Flags)
	if err != nil {
		return err
	}
	wanted.Ref = o.Ref
	s, env, err := e.Instances(ctx)
	if err != nil {
		return err
	}
	result, err := s.Ensure(ctx, env, instance.EnsureRequest{Verb: string(stage), Wanted: wanted, Only: stage, DryRun: o.Dry(), Keep: o.Keep})
	if err != nil {
		return failure.WithReport(err, result.Report)
	}
	if o.Dry() {
		return e.PrintPlan(o.Mutation, result.Report)
	}
	return print(context.WithoutCancel(ctx), e, result.Record)
}
