package commands

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// stepOptions are those of a single step of an instance's bring-up.
type stepOptions struct {
	mutation
	specFlags
	ref string
}

// add adds the flags of a step. Each step accepts the whole description of the
// instance; its help describes the flags that it uses.
func (o *stepOptions) add(env *Env, cmd *cobra.Command, uses ...string) {
	cmd.Flags().StringVar(&o.ref, "instance", "", "`NAME|UUID` of the instance")
	env.completeFlag(cmd, "instance", env.completeInstances)
	o.specFlags.add(env, cmd, false)
	unused := slices.DeleteFunc([]string{"address", "cpus", "disk", "memory", "name", "nic", "pool", "spec"}, func(flag string) bool { return slices.Contains(uses, flag) })
	describedBy(cmd, "sledctl instance ensure", unused...)
	o.mutation.add(cmd, true)
	env.addOutput(cmd)
}

// newStep is a command that does one stage of the bring-up of an instance, and
// prints what the stage is about.
func newStep(env *Env, stage instance.Stage, cmd *cobra.Command, print func(context.Context, *Env, record.Record) error) *cobra.Command {
	var o stepOptions
	cmd.Args = cobra.NoArgs
	cmd.RunE = env.run(func(ctx context.Context, _ []string) error { return runStep(ctx, env, stage, o, print) })
	o.add(env, cmd, usedBy(stage)...)
	return cmd
}

// usedBy are the flags of an instance's description that a stage uses.
func usedBy(stage instance.Stage) []string {
	switch stage {
	case instance.StageVNIC:
		return []string{"nic", "name"}
	case instance.StageZone:
		return []string{"disk", "pool"}
	case instance.StageAddress:
		return []string{"address"}
	case instance.StageEnsure:
		return []string{"cpus", "memory", "disk", "nic", "spec"}
	}
	return nil
}

func runStep(ctx context.Context, e *Env, stage instance.Stage, o stepOptions, print func(context.Context, *Env, record.Record) error) error {
	if o.ref == "" {
		return &usageError{text: string(stage) + ": --instance is missing", hint: "sledctl " + string(stage) + " --instance NAME"}
	}
	wanted, err := wantedBy(e, o.specFlags)
	if err != nil {
		return err
	}
	wanted.Ref = o.ref
	s, env, err := e.instances(ctx)
	if err != nil {
		return err
	}
	result, err := s.Ensure(ctx, env, instance.EnsureRequest{Verb: string(stage), Wanted: wanted, Only: stage, DryRun: o.dry(), Keep: o.keep})
	if err != nil {
		return withReport(err, result.Report)
	}
	if o.dry() {
		return e.printPlan(o.mutation, result.Report)
	}
	return print(context.WithoutCancel(ctx), e, result.Record)
}
