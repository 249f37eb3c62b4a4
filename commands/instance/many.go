package instance

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// manyFlags let a verb act on many instances.
type manyFlags struct {
	all      bool
	parallel int
}

func (f *manyFlags) add(cmd *cobra.Command, all string) {
	cmd.Flags().BoolVar(&f.all, "all", false, all)
	f.addParallel(cmd)
}

func (f *manyFlags) addParallel(cmd *cobra.Command) {
	cmd.Flags().IntVar(&f.parallel, "parallel", instance.Parallel, "work on at most this many instances at once")
}

func (f manyFlags) checkParallel() error {
	if f.parallel < 1 {
		return &cli.UsageError{Text: fmt.Sprintf("--parallel %d: want a number above 0", f.parallel)}
	}
	return nil
}

func (f manyFlags) many() bool { return f.all }

// check refuses what cannot be meant: one instance and all, or neither.
func (f manyFlags) check(command string, named bool) error {
	switch {
	case f.many() && named:
		return &cli.UsageError{Text: command + ": an instance and --all exclude each other, and so do a selection and --all"}
	case !f.many() && !named:
		return &cli.UsageError{Text: command + ": which instance?", Advice: "run: sledctl " + command + " NAME, or with --all"}
	}
	return f.checkParallel()
}

// one does a verb with one of many instances.
type one func(context.Context, instance.Settings, operation.Env, record.Record) (instance.Result, error)

// eachOf does a verb with each of many, as instance.Each, and shows that.
func eachOf[T any](
	ctx context.Context, e *cli.Env, all []T, name func(T) string, parallel int, do func(context.Context, T) (instance.Result, error),
) ([]instance.Result, error) {
	return eachInWaves(ctx, e, [][]T{all}, name, parallel, do)
}

// eachInWaves does a verb with each of many, as instance.EachInWaves, and shows that.
func eachInWaves[T any](
	ctx context.Context, e *cli.Env, waves [][]T, name func(T) string, parallel int, do func(context.Context, T) (instance.Result, error),
) ([]instance.Result, error) {
	of := 0
	for _, wave := range waves {
		of += len(wave)
	}
	if of < 2 {
		return instance.EachInWaves(ctx, waves, name, parallel, do)
	}
	end, done := e.Progress.Many(of)
	defer done()
	return instance.EachInWaves(ctx, waves, name, parallel, func(ctx context.Context, one T) (instance.Result, error) {
		begun := e.Now()
		result, err := do(ctx, one)
		end(name(one), e.Now().Sub(begun), err)
		return result, err
	})
}

// forEach does a verb with all instances that pick takes, and prints them as they
// are then, also where some failed.
func forEach(ctx context.Context, e *cli.Env, m cli.Mutation, f manyFlags, sequence sequence, pick func(instance.Instance) bool, do one) error {
	if err := cli.InstanceList(e).Check(e.Output); err != nil {
		return err
	}
	s, env, err := e.Instances(ctx)
	if err != nil {
		return err
	}
	view, err := operation.Decided(ctx, env, m.Dry())
	e.WarnOf(view)
	if err != nil {
		return err
	}
	picked, err := s.Select(ctx, env, view, pick)
	if err != nil {
		return err
	}
	name := func(i instance.Instance) string { return i.Name }
	some := func(i instance.Instance) bool {
		return slices.ContainsFunc(picked, func(p instance.Instance) bool { return p.ID == i.ID })
	}
	inOrder := waves(sequence, picked, func(i instance.Instance) record.StartOrder { return i.Spec.StartOrder })
	results, failed := eachInWaves(ctx, e, inOrder, name, f.parallel, func(ctx context.Context, i instance.Instance) (instance.Result, error) {
		result, err := do(ctx, s, env, i.Record)
		if cli.Is[*record.NotFoundError](err) {
			e.Progress.Say("instance %q was deleted meanwhile: nothing to do", i.Name)
			return instance.Result{}, nil
		}
		return result, err
	})
	return printDone(ctx, e, m, s, env, some, ordered(sequence, results), failed)
}

// each does a verb with the instances that are named, and prints them as they are then,
// also where some failed.
func each(
	ctx context.Context, e *cli.Env, m cli.Mutation, f manyFlags, sequence sequence, refs []string,
	do func(context.Context, instance.Settings, operation.Env, string) (instance.Result, error),
) error {
	if err := f.checkParallel(); err != nil {
		return err
	}
	if len(refs) == 1 {
		return e.ChangeInstance(ctx, m, func(ctx context.Context, s instance.Settings, env operation.Env) (instance.Result, error) {
			return do(ctx, s, env, refs[0])
		})
	}
	if err := cli.InstanceList(e).Check(e.Output); err != nil {
		return err
	}
	s, env, err := e.Instances(ctx)
	if err != nil {
		return err
	}
	if refs, err = distinct(ctx, e, s, refs); err != nil {
		return err
	}
	some := func(i instance.Instance) bool { return slices.Contains(refs, i.Name) || slices.Contains(refs, i.ID) }
	inOrder, err := wavesHere(ctx, e, s, sequence, refs)
	if err != nil {
		return err
	}
	results, failed := eachInWaves(ctx, e, inOrder, itself, f.parallel, func(ctx context.Context, ref string) (instance.Result, error) {
		return do(ctx, s, env, ref)
	})
	return printDone(ctx, e, m, s, env, some, ordered(sequence, results), failed)
}

// itself is how a reference is named in an error.
func itself(ref string) string { return ref }

// printDone prints what came of a verb on many: a plan, or the instances as they are now.
func printDone(
	ctx context.Context, e *cli.Env, m cli.Mutation, s instance.Settings, env operation.Env,
	some func(instance.Instance) bool, reports []operation.Report, failed error,
) error {
	var broken []operation.Report
	for _, r := range reports {
		if r.Outcome.Err() != nil { // what the others have made is not left: it is what was asked for
			broken = append(broken, r)
		}
	}
	if m.Dry() && failed == nil {
		return e.PrintPlan(m, reports...)
	}
	if !m.Dry() {
		if err := printMany(context.WithoutCancel(ctx), e, s, env, some); err != nil && failed == nil {
			return err
		}
	}
	return failure.WithReport(failed, broken...)
}

// printMany prints instances as they are now.
func printMany(ctx context.Context, e *cli.Env, s instance.Settings, env operation.Env, some func(instance.Instance) bool) error {
	view, err := e.View(ctx)
	if err != nil {
		return err
	}
	now, err := s.Select(ctx, env, view, some)
	if err != nil {
		return err
	}
	shown := make([]cli.Instance, len(now))
	for i, n := range now {
		shown[i] = cli.ShowInstance(n)
	}
	return cli.InstanceList(e).Print(e.Streams.Out, e.Output, shown)
}

// errAsRecorded is a description of several instances.
var errAsRecorded = &cli.UsageError{Text: "instance ensure: --all, several names and selections bring up what is recorded, as it is recorded", Advice: "describe one instance at a time"}

// describes reports whether there is more to ensure than that instances run.
func (o ensureOptions) describes() bool {
	described := o.Wanted
	described.Ref = ""
	return !reflect.DeepEqual(described, instance.Wanted{}) || o.File+o.CloudInit+o.NetworkConfig != "" || len(o.SSHKeys) > 0 || o.recreate || o.protection() != nil
}

// runEnsureAll brings up what is wanted running.
func runEnsureAll(ctx context.Context, e *cli.Env, o ensureOptions) error {
	var ensure one = func(ctx context.Context, s instance.Settings, env operation.Env, r record.Record) (instance.Result, error) {
		c := instance.EnsureRequest{Verb: "instance ensure", Wanted: instance.Wanted{Ref: r.ID}, Known: true, DryRun: o.Dry(), Keep: o.Keep}
		return s.Ensure(ctx, env, c)
	}
	h, err := e.Host()
	if err != nil {
		return err
	}
	return forEach(ctx, e, o.Mutation, o.manyFlags, inStartOrder, instance.Unready(h.Files()), ensure)
}

// runStopAll removes everything that the selected instances have on the sled. Their
// records stay.
func runStopAll(ctx context.Context, e *cli.Env, m cli.Mutation, f manyFlags, grace time.Duration) error {
	pick := func(i instance.Instance) bool { return len(i.Incarnations()) > 0 }
	var stop one = func(ctx context.Context, s instance.Settings, env operation.Env, r record.Record) (instance.Result, error) {
		c := instance.StopRequest{Verb: "instance stop", Ref: r.ID, Evacuate: true, DryRun: m.Dry(), Grace: &grace}
		return s.Stop(ctx, env, c)
	}
	return forEach(ctx, e, m, f, allAtOnce, pick, stop)
}
