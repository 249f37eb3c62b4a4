package commands

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
)

func newInstanceList(env *Env) *cobra.Command {
	var far remote
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the instances and their states",
		Long: `List the instances and their states. States are made anew from the host each time: one listing of the zones and of the
links, and a question to each running Propolis. The reason also tells what others have done to an instance: its zone halted, removed or
configured otherwise, its VNICs deleted, its Propolis started anew without its machine. After a reboot of the sled it tells which ran.`,
		Example: `  sledctl instance list
  sledctl instance list -H --columns name,state,zone`,
		Args: cobra.NoArgs,
		RunE: env.run(func(ctx context.Context, _ []string) error { return runInstanceList(ctx, env, far) }),
	}
	far.add(cmd)
	env.addOutput(cmd)
	return cmd
}

func runInstanceList(ctx context.Context, e *Env, far remote) error {
	list := instanceList(e)
	if err := list.Check(e.output); err != nil {
		return err
	}
	name := func(s shownInstance) string { return s.Name }
	if far.is() {
		c, err := agentClient(e, far, mutation{})
		if err != nil {
			return err
		}
		all, err := c.List(ctx)
		if err != nil {
			return err
		}
		return list.Print(e.Streams.Out, e.output, byName(all, name))
	}
	s, env, err := e.instances(ctx)
	if err != nil {
		return err
	}
	view, err := e.view(ctx)
	if err != nil {
		return err
	}
	all, err := s.List(ctx, env, view)
	if err != nil {
		return err
	}
	shown := make([]shownInstance, len(all))
	for i, one := range all {
		shown[i] = showInstance(one)
	}
	return list.Print(e.Streams.Out, e.output, byName(shown, name))
}

func newInstanceGet(env *Env) *cobra.Command {
	var far remote
	cmd := &cobra.Command{
		Use:     "get NAME|UUID",
		Short:   "Show one instance",
		Example: `  sledctl instance get web1 -o json`,
		Args:    cobra.ExactArgs(1),
		RunE: env.run(func(ctx context.Context, args []string) error {
			if far.is() {
				return changeRemotely(ctx, env, far, mutation{}, args[0], "")
			}
			if err := instanceList(env).Check(env.output); err != nil {
				return err
			}
			s, op, err := env.instances(ctx)
			if err != nil {
				return err
			}
			return env.printInstance(ctx, s, op, args[0], instance.Settings.Get)
		}),
	}
	far.add(cmd)
	env.addOutput(cmd)
	completeArgs(cmd, env.completeInstances)
	return cmd
}

func newInstanceStart(env *Env) *cobra.Command {
	var m mutation
	var far remote
	cmd := &cobra.Command{
		Use:     "start NAME|UUID",
		Short:   "Bring a recorded instance up again",
		Long:    "Bring a recorded instance up again, with the addresses and MACs that it had. One that runs is left alone.",
		Example: `  sledctl instance start web1`,
		Args:    cobra.ExactArgs(1),
		RunE: env.run(func(ctx context.Context, args []string) error {
			if far.is() {
				return changeRemotely(ctx, env, far, m, args[0], api.WantRunning)
			}
			return ensureOne(ctx, env, m, instance.EnsureRequest{
				Verb: "instance start", Wanted: instance.Wanted{Ref: args[0]}, Known: true, DryRun: m.dry(), Keep: m.keep,
			})
		}),
	}
	m.add(cmd, true)
	far.add(cmd)
	env.addOutput(cmd)
	completeArgs(cmd, env.completeInstances)
	return cmd
}

func newInstanceStop(env *Env) *cobra.Command {
	var m mutation
	var far remote
	var f manyFlags
	grace := instance.StopTime
	cmd := &cobra.Command{
		Use:   "stop [NAME|UUID]",
		Short: "Power an instance off and take its zone away",
		Long: `Power an instance off and take its zone, VNICs and datasets away. Its record stays, with address and MACs: start brings it
up again. Stopping what is stopped does nothing.

Propolis is asked to stop the machine, started or not, and has --grace for it; a machine that has not ended then, or whose Propolis does not answer, ends
with its zone, and that is told. The guest itself is not asked: shut it down first where it matters. --grace 0 asks nobody.

With --all, all that is on the sled of any instance is taken away, and what is wanted stays: instance ensure --all brings up again
those that were wanted running. So a sled is shut down.`,
		Example: `  sledctl instance stop web1
  sledctl instance stop --all`,
		Args: cobra.MaximumNArgs(1),
		RunE: env.run(func(ctx context.Context, args []string) error {
			if err := f.check("instance stop", len(args) > 0); err != nil {
				return err
			}
			if grace < 0 {
				return &usageError{text: fmt.Sprintf("--grace %s: want a duration, as 30s; 0 is none", grace)}
			}
			if far.is() && (f.many() || grace != instance.StopTime) {
				return &usageError{text: "an agent cannot be asked for --all or --grace", hint: "run it on the sled"}
			}
			if far.is() {
				return changeRemotely(ctx, env, far, m, args[0], api.WantStopped)
			}
			if f.many() {
				return runStopAll(ctx, env, m, f, grace)
			}
			return env.changeInstance(ctx, m, func(ctx context.Context, s instance.Settings, op operation.Env) (instance.Result, error) {
				return s.Stop(ctx, op, instance.StopRequest{Verb: "instance stop", Ref: args[0], Grace: &grace, DryRun: m.dry()})
			})
		}),
	}
	m.add(cmd, false)
	far.add(cmd)
	cmd.Flags().DurationVar(&grace, "grace", grace, "how long the machine may take to end before its zone is halted under it")
	f.add(cmd, "all that is on the sled of any instance; what is wanted stays")
	env.addOutput(cmd)
	completeArgs(cmd, env.completeInstances)
	return cmd
}

func newInstanceReboot(env *Env) *cobra.Command {
	var m mutation
	var far remote
	cmd := &cobra.Command{
		Use:     "reboot NAME|UUID",
		Short:   "Reset an instance's machine",
		Long:    "Reset an instance's machine, and wait until it runs again. The guest is not asked; its zone stays.",
		Example: `  sledctl instance reboot web1`,
		Args:    cobra.ExactArgs(1),
		RunE: env.run(func(ctx context.Context, args []string) error {
			if far.is() {
				return changeRemotely(ctx, env, far, m, args[0], api.WantReboot)
			}
			return env.changeInstance(ctx, m, func(ctx context.Context, s instance.Settings, op operation.Env) (instance.Result, error) {
				return s.Reboot(ctx, op, instance.PowerRequest{Verb: "instance reboot", Ref: args[0], DryRun: m.dry()})
			})
		}),
	}
	m.add(cmd, false)
	far.add(cmd)
	env.addOutput(cmd)
	completeArgs(cmd, env.completeInstances)
	return cmd
}

// deleteOptions are the flags of instance delete.
type deleteOptions struct {
	mutation
	mustExist, yes bool
	migration      string // only what arrives by it
}

func newInstanceDelete(env *Env) *cobra.Command {
	var o deleteOptions
	var far remote
	cmd := &cobra.Command{
		Use:     "delete NAME|UUID ...",
		Aliases: []string{"rm"},
		Short:   "Take an instance away and forget it",
		Long: `Take an instance away and forget it, with its address and MACs. Its disks are not touched. Deleting what is not there
succeeds, unless --must-exist. Where an instance is protected (instance ensure --protect), it is asked first; where nobody can be
asked, --yes is needed.`,
		Example: `  sledctl instance delete web1
  sledctl instance delete web1 --dry-run`,
		Args: cobra.MinimumNArgs(1),
		RunE: env.run(func(ctx context.Context, args []string) error {
			if far.is() {
				return deleteRemotely(ctx, env, far, o, args)
			}
			return runInstanceDelete(ctx, env, o, args)
		}),
	}
	o.add(cmd, false)
	env.addOutput(cmd)
	far.add(cmd)
	cmd.Flags().BoolVar(&o.mustExist, "must-exist", false, "exit 4 if it is not there")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "also what is protected")
	cmd.Flags().StringVar(&o.migration, "migration-id", "", "only what is arriving by this migration, and has not arrived")
	env.complete(cmd, "migration-id", noWords)
	completeArgs(cmd, env.completeInstances)
	return cmd
}

// runInstanceDelete tries every one, and tells all that went wrong.
func runInstanceDelete(ctx context.Context, e *Env, o deleteOptions, refs []string) error {
	s, env, err := e.instances(ctx)
	if err != nil {
		return err
	}
	failed := instance.PartialError{Of: len(refs)}
	var reports, dry []operation.Report
	for _, ref := range refs {
		result, err := deleteInstance(ctx, e.Streams, s, env, instance.DeleteRequest{
			Verb: "instance delete", Ref: ref, Yes: o.yes, Arrival: o.migration, DryRun: o.dry(),
		})
		switch {
		case is[*record.NotFoundError](err) && !o.mustExist:
			e.progress.tell(fmt.Sprintf("no instance %q: nothing to do", ref))
		case err != nil:
			failed.Failures = append(failed.Failures, instance.Failure{Name: ref, Err: err})
		case o.dry():
			dry = append(dry, result.Report)
		}
		reports = append(reports, result.Report)
	}
	switch {
	case len(refs) == 1 && len(failed.Failures) == 1:
		return withReport(failed.Failures[0].Err, reports...)
	case len(failed.Failures) > 0:
		return withReport(&failed, reports...)
	}
	if o.dry() {
		return e.printPlan(o.mutation, dry...)
	}
	return nil
}

// deleteInstance asks before it takes away what is protected.
func deleteInstance(ctx context.Context, streams *terminal.Streams, s instance.Settings, env operation.Env, c instance.DeleteRequest) (instance.Result, error) {
	result, err := s.Delete(ctx, env, c)
	protected, ok := errors.AsType[*instance.ProtectedError](err)
	if !ok || c.DryRun {
		return result, err
	}
	what := fmt.Sprintf("delete the protected instance %q", protected.Name)
	if no := streams.Confirm(ctx, what, what+"?", false); no != nil {
		if refused, ok := errors.AsType[*terminal.RefusedError](no); ok && !refused.Asked {
			return result, err
		}
		return result, no
	}
	c.Yes = true
	return s.Delete(ctx, env, c)
}
