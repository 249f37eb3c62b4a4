package instance

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
)

func newStart(env *cli.Env) *cobra.Command {
	var m cli.Mutation
	var far remote
	var f manyFlags
	var sel selection
	cmd := &cobra.Command{
		Use:   "start [NAME|UUID|PATTERN ...]",
		Short: "Start recorded instances",
		Long: `Start recorded instances, with the addresses and MACs that they had. A running instance stays as it is. With --all, sledctl starts
every instance; instance ensure --all starts only those that were not stopped by name. sledctl follows
their start order (instance ensure).
` + selectionHelp,
		Example: `  sledctl instance start web1
  sledctl instance start 'web*' --state stopped`,
		RunE: env.Run(func(ctx context.Context, args []string) error {
			sel.name(args)
			if err := f.check("instance start", len(args) > 0 || sel.given()); err != nil {
				return err
			}
			if f.many() {
				sel.name([]string{"*"})
			}
			return onSelected(ctx, env, far, m, f, sel, bulk{verb: "start", sequence: inStartOrder}, api.WantRunning, startRecorded("instance start", m))
		}),
	}
	m.Add(cmd, true)
	sel.addTo(env, cmd)
	f.add(cmd, "every instance, also those that were stopped by name")
	far.Add(cmd)
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, env.CompleteInstances)
	return cmd
}

// startRecorded brings an instance up as it is recorded.
func startRecorded(verb string, m cli.Mutation) func(context.Context, instance.Settings, operation.Env, string) (instance.Result, error) {
	return func(ctx context.Context, s instance.Settings, op operation.Env, ref string) (instance.Result, error) {
		return s.Ensure(ctx, op, instance.EnsureRequest{
			Verb: verb, Wanted: instance.Wanted{Ref: ref}, Known: true, DryRun: m.Dry(), Keep: m.Keep,
		})
	}
}

func newStop(env *cli.Env) *cobra.Command {
	var m cli.Mutation
	var far remote
	var f manyFlags
	var sel selection
	var yes bool
	grace := instance.StopTime
	cmd := &cobra.Command{
		Use:   "stop [NAME|UUID|PATTERN ...]",
		Short: "Power instances off and remove their zones",
		Long: `Power instances off and remove their zones, with their VNICs and datasets. A record stays, with address and MACs: instance start
brings the instance up again. Stopping a stopped instance does nothing.

sledctl asks Propolis to stop the VM, started or not, and waits --grace for it. A VM that has not ended by then, or whose Propolis does
not answer, ends with its zone, and sledctl reports that. sledctl does not ask the guest to shut down: do that first if it matters. With
--grace 0, Propolis is not asked either.

With --all, sledctl stops every instance and keeps which of them are wanted running: instance ensure --all starts those again. Use it to
shut the sled down. Stopping does not follow the start order: all instances stop at once.
` + selectionHelp + askedHelp,
		Example: `  sledctl instance stop web1 web2
  sledctl instance stop 'web*' --filter vlan=100
  sledctl instance stop --all`,
		RunE: env.Run(func(ctx context.Context, args []string) error {
			sel.name(args)
			if err := f.check("instance stop", len(args) > 0 || sel.given()); err != nil {
				return err
			}
			if grace < 0 {
				return &cli.UsageError{Text: fmt.Sprintf("--grace %s: want a duration, e.g. 30s; 0 is none", grace)}
			}
			if far.Is() && (f.many() || grace != instance.StopTime) {
				return &cli.UsageError{Text: "an agent cannot be asked for --all or --grace", Advice: "run it on the sled"}
			}
			if f.many() {
				return runStopAll(ctx, env, m, f, grace)
			}
			b := bulk{verb: "stop", asks: true, yes: yes}
			return onSelected(ctx, env, far, m, f, sel, b, api.WantStopped, func(ctx context.Context, s instance.Settings, op operation.Env, ref string) (instance.Result, error) {
				return s.Stop(ctx, op, instance.StopRequest{Verb: "instance stop", Ref: ref, Grace: &grace, DryRun: m.Dry()})
			})
		}),
	}
	m.Add(cmd, false)
	far.Add(cmd)
	cmd.Flags().DurationVar(&grace, "grace", grace, "time for the VM to end before sledctl halts its zone")
	f.add(cmd, "every instance; instance ensure --all starts them again")
	sel.addTo(env, cmd)
	addYes(cmd, &yes)
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, env.CompleteInstances)
	return cmd
}

func newReboot(env *cli.Env) *cobra.Command {
	var m cli.Mutation
	var far remote
	var f manyFlags
	var sel selection
	var yes bool
	cmd := &cobra.Command{
		Use:   "reboot [NAME|UUID|PATTERN ...]",
		Short: "Reset the VMs of instances",
		Long: `Reset the VMs of instances, and wait until they run again. sledctl does not ask the guest; the zone stays.
` + selectionHelp + askedHelp,
		Example: `  sledctl instance reboot web1
  sledctl instance reboot 'web*' --state running`,
		RunE: env.Run(func(ctx context.Context, args []string) error {
			sel.name(args)
			b := bulk{verb: "reboot", asks: true, yes: yes}
			return onSelected(ctx, env, far, m, f, sel, b, api.WantReboot, func(ctx context.Context, s instance.Settings, op operation.Env, ref string) (instance.Result, error) {
				return s.Reboot(ctx, op, instance.PowerRequest{Verb: "instance reboot", Ref: ref, DryRun: m.Dry()})
			})
		}),
	}
	m.Add(cmd, false)
	sel.addTo(env, cmd)
	addYes(cmd, &yes)
	f.addParallel(cmd)
	far.Add(cmd)
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, env.CompleteInstances)
	return cmd
}

// deleteOptions are the flags of instance delete.
type deleteOptions struct {
	cli.Mutation
	manyFlags
	selection
	mustExist, yes bool
	migration      string // only what arrives by it
}

func newDelete(env *cli.Env) *cobra.Command {
	var o deleteOptions
	var far remote
	cmd := &cobra.Command{
		Use:     "delete [NAME|UUID|PATTERN ...]",
		Aliases: []string{"rm"},
		Short:   "Remove an instance and its record",
		Long: `Remove an instance and its record, with its address and MACs. Its disks stay, but for volumes that are set to go with it
(volume set). Deleting an instance that does not exist succeeds, except with --must-exist. For a protected instance (instance ensure --protect) sledctl asks first; without a terminal it
needs its name and --yes.
` + selectionHelp + askedHelp,
		Example: `  sledctl instance delete web1
  sledctl instance delete 'ci*' --state stopped --dry-run`,
		RunE: env.Run(func(ctx context.Context, args []string) error {
			o.name(args)
			return selectDelete(ctx, env, far, o)
		}),
	}
	o.Mutation.Add(cmd, false)
	o.addParallel(cmd)
	env.AddOutput(cmd)
	far.Add(cmd)
	cmd.Flags().BoolVar(&o.mustExist, "must-exist", false, "exit 4 if it does not exist")
	o.addTo(env, cmd)
	cmd.Flags().BoolVar(&o.yes, "yes", false, "do not ask; of named instances, delete protected ones too")
	cmd.Flags().StringVar(&o.migration, "migration-id", "", "delete only an instance that is still arriving by this migration")
	cli.CompleteArgs(cmd, env.CompleteInstances)
	return cmd
}

// selectDelete decides what is deleted, and deletes it. A protected instance goes if it
// is named, or if the operator says so.
func selectDelete(ctx context.Context, e *cli.Env, far remote, o deleteOptions) error {
	if _, err := uuid.Parse(o.migration); o.migration != "" && err != nil {
		return &cli.UsageError{Text: fmt.Sprintf("--migration-id %q: want a UUID", o.migration)}
	}
	if err := o.selection.check("instance delete"); err != nil {
		return err
	}
	refs, err := o.resolve(ctx, e, far, o.Mutation, bulk{verb: "delete", asks: true, yes: o.yes, lenient: !o.mustExist})
	switch {
	case err != nil:
		return err
	case len(refs) == 0 && o.mustExist:
		return &cli.NotFoundError{What: "a VM that fits", List: "sledctl instance list"}
	case len(refs) == 0:
		return nil
	}
	o.yes = o.yes && !o.picks()
	if far.Is() {
		return deleteRemotely(ctx, e, far, o, refs)
	}
	return runDelete(ctx, e, o, refs)
}

// runDelete tries every one, and tells all that went wrong. It asks about what
// is protected when all others are gone.
func runDelete(ctx context.Context, e *cli.Env, o deleteOptions, refs []string) error {
	if err := o.checkParallel(); err != nil {
		return err
	}
	s, env, err := e.Instances(ctx)
	if err != nil {
		return err
	}
	if refs, err = distinct(ctx, e, s, refs); err != nil {
		return err
	}
	found := make(map[string]operation.Report, len(refs))
	var mu sync.Mutex
	remove := func(ctx context.Context, ref string, yes bool) (instance.Result, error) {
		result, err := s.Delete(ctx, env, instance.DeleteRequest{
			Verb: "instance delete", Ref: ref, Yes: yes, Arrival: o.migration, DryRun: o.Dry(),
		})
		if missing, is := errors.AsType[*record.NotFoundError](err); is && !o.mustExist {
			e.Progress.Tell(nothingToDelete(missing))
			return result, nil
		}
		mu.Lock()
		defer mu.Unlock()
		found[ref] = result.Report
		return result, err
	}
	_, err = eachOf(ctx, e, refs, itself, o.parallel, func(ctx context.Context, ref string) (instance.Result, error) {
		return remove(ctx, ref, o.yes)
	})
	failed, _ := errors.AsType[*instance.PartialError](err)
	if failed != nil && !o.Dry() {
		failed = failed.Retry(func(f instance.Failure) error {
			return confirmed(ctx, e.Streams, f.Err, func() error { _, err := remove(ctx, f.Name, true); return err })
		})
	}
	var reports []operation.Report
	for _, ref := range refs {
		if report, ok := found[ref]; ok {
			reports = append(reports, report)
		}
	}
	switch {
	case failed != nil && len(refs) == 1:
		return failure.WithReport(failed.Failures[0].Err, reports...)
	case failed != nil:
		return failure.WithReport(failed, reports...)
	case o.Dry():
		return e.PrintPlan(o.Mutation, reports...)
	}
	return nil
}

// nothingToDelete says that an instance does not exist, and which one was probably meant.
func nothingToDelete(missing *record.NotFoundError) string {
	text := missing.Error() + ": nothing to do"
	if missing.Near != "" {
		text += "; did you mean " + missing.Near + "?"
	}
	return text
}

// distinct leaves out what names an instance that is named already: two runs would
// wait for each other's lock.
func distinct(ctx context.Context, e *cli.Env, s instance.Settings, refs []string) ([]string, error) {
	if len(refs) == 1 {
		return refs, nil
	}
	view, err := e.View(ctx)
	if err != nil {
		return nil, err
	}
	var all []string
	named := map[string]bool{}
	for _, ref := range refs {
		key := ref
		if r, err := s.Find(view, ref); err == nil {
			key = r.ID
		}
		if !named[key] {
			all = append(all, ref)
		}
		named[key] = true
	}
	return all, nil
}

// confirmed asks whether what was refused, because it is protected, is deleted all the same,
// and does so.
func confirmed(ctx context.Context, streams *terminal.Streams, refused error, remove func() error) error {
	protected, ok := errors.AsType[*instance.ProtectedError](refused)
	if !ok {
		return refused
	}
	what := fmt.Sprintf("delete the protected instance %q", protected.Name)
	if no := streams.Confirm(ctx, what, what+"?", false); no != nil {
		if r, ok := errors.AsType[*terminal.RefusedError](no); ok && !r.Asked {
			return refused
		}
		return no
	}
	return remove()
}
