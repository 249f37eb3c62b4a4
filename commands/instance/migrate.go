package instance

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/moves"
)

type migrateOptions struct {
	cli.Mutation
	manyFlags
	to, command    string
	shared, cancel bool
	yes, offline   bool
}

func newMigrate(env *cli.Env) *cobra.Command {
	var o migrateOptions
	cmd := &cobra.Command{
		Use:   "migrate NAME|UUID ... --to TARGET",
		Short: "Move running instances to another sled",
		Long: `Move running instances to another sled. sledctl runs the target's sledctl as sled list has it, or else with ssh TARGET sledctl, or with
the command in --to-command, split at blanks. It creates the zone and VNICs of each there, with the same MACs, asks both Propolis servers whether the
VM can move, and moves it; then it removes what is left here. docs/migration.md lists what can be moved, and what to do after a failure.

With --offline the volumes that are its disks go along: sledctl sends them while the guest runs, and then what has changed, until little
is left; it stops the instance, sends the rest, and has the target start it. Then it deletes the volumes here. A stopped instance
stays stopped. If the target cannot start it, it starts here again, and what was sent stays there for the next try.

Until a VM runs on the target, the source keeps it: whatever fails, it runs on one sled. While the outcome is unknown, no other command
changes the instance here; the same command again asks both sides for the outcome, and resumes. --cancel undoes a migration that has not
moved the VM yet.`,
		Example: `  sledctl instance migrate web1 --to sled2
  sledctl instance migrate web1 --to-command 'ssh root@sled2 /opt/sledctl/bin/sledctl'
  sledctl instance migrate web1 --to sled2 --offline
  sledctl instance migrate web1                # resumes an interrupted migration`,
		Args: cobra.MinimumNArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error { return runMigrate(ctx, env, o, args) }),
	}
	o.Mutation.Add(cmd, false)
	o.addParallel(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.to, "to", "", "target sled, of sled list or as ssh knows it")
	env.CompleteFlag(cmd, "to", cli.CompleteSleds(env))
	flags.StringVar(&o.command, "to-command", "", "command that runs the target's sledctl, instead of ssh")
	flags.BoolVar(&o.shared, "shared-disks", false, "the VM's disks are the same files on both sleds")
	flags.BoolVar(&o.offline, "offline", false, "take the volumes along, and stop the VM for the last of it")
	flags.BoolVar(&o.cancel, "cancel", false, "undo an interrupted migration that has not moved the VM")
	flags.BoolVar(&o.yes, "yes", false, "with --cancel: do not ask a target that is off for good")
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, env.CompleteInstances)
	return cmd
}

// words run the target's sledctl; nil: as they were before.
func (o migrateOptions) words(e *cli.Env) ([]string, error) {
	switch {
	case o.yes && !o.cancel:
		return nil, &cli.UsageError{Text: "instance migrate: --yes is for --cancel"}
	case o.to != "" && o.command != "":
		return nil, &cli.UsageError{Text: "instance migrate: --to and --to-command exclude each other"}
	case strings.HasPrefix(o.to, "-"):
		return nil, &cli.UsageError{Text: "--to " + o.to + ": want the name of a sled"}
	case o.to != "":
		return cli.ProgramOf(e, o.to)
	}
	if words := strings.Fields(o.command); len(words) > 0 {
		return words, nil
	}
	return nil, nil
}

func runMigrate(ctx context.Context, e *cli.Env, o migrateOptions, refs []string) error {
	words, err := o.words(e)
	if err := cmp.Or(err, o.checkParallel(), cli.InstanceList(e).Check(e.Output)); err != nil {
		return err
	}
	s, env, err := e.Instances(ctx)
	if err != nil {
		return err
	}
	if refs, err = distinct(ctx, e, s, refs); err != nil {
		return err
	}
	results := make(map[string]instance.Departed, len(refs))
	var mu sync.Mutex
	_, err = eachOf(ctx, e, refs, itself, o.parallel, func(ctx context.Context, ref string) (instance.Result, error) {
		done, err := o.move(ctx, e, s, env, ref, words)
		mu.Lock()
		defer mu.Unlock()
		results[ref] = done
		return instance.Result{}, err
	})
	failed, _ := errors.AsType[*instance.PartialError](err)
	if failed != nil && len(refs) == 1 {
		err = failed.Failures[0].Err
	}
	var reports, broken []operation.Report
	var moved []instance.Departed
	for _, ref := range refs {
		done := results[ref]
		reports = append(reports, done.Reports...)
		if failed != nil && slices.ContainsFunc(failed.Failures, func(f instance.Failure) bool { return f.Name == ref }) {
			broken = append(broken, done.Reports...)
		} else {
			moved = append(moved, done)
		}
	}
	if errors.Is(err, instance.ErrNoTarget) {
		return &cli.UsageError{
			Text: "instance migrate: --to is missing: which sled?", Advice: "run: sledctl instance migrate " + strings.Join(refs, " ") + " --to TARGET",
		}
	}
	if o.Dry() && err == nil {
		return e.PrintPlan(o.Mutation, reports...)
	}
	if !o.Dry() && len(moved) > 0 {
		if perr := printMoved(context.WithoutCancel(ctx), e, s, env, o, moved); perr != nil && err == nil {
			return perr
		}
	}
	return failure.WithReport(err, broken...)
}

// move moves one instance as it runs, or while it is stopped, if it is asked for or has begun so.
func (o migrateOptions) move(ctx context.Context, e *cli.Env, s instance.Settings, env operation.Env, ref string, words []string) (instance.Departed, error) {
	tell := e.Progress.Moves("instance migrate", ref, o.to)
	r, err := instance.FindRecorded(ctx, s, env, ref, o.Dry())
	if err != nil {
		return instance.Departed{}, err
	}
	if !o.offline && (r.Migration == nil || !r.Migration.Offline) {
		return s.Migrate(ctx, env, instance.Departure{
			Verb: "instance migrate", Ref: ref, Target: words, Run: e.Remote, Shared: o.shared, Cancel: o.cancel, Yes: o.yes, DryRun: o.Dry(), Tell: tell,
		})
	}
	t, err := transfers(e, s)
	if err != nil {
		return instance.Departed{}, err
	}
	c, err := e.Config()
	if err != nil {
		return instance.Departed{}, err
	}
	from, err := cli.SledName(c, env.Host.Files())
	if err != nil {
		return instance.Departed{}, err
	}
	return moves.Settings(t).Move(ctx, env, moves.Request{
		Verb: "instance migrate", Ref: ref, Target: words, Run: e.Remote, Feed: e.Feed, From: from,
		Shared: o.shared, Cancel: o.cancel, Yes: o.yes, DryRun: o.Dry(), Tell: tell, Progress: e.Progress.Copies(),
	})
}

// printMoved prints the instances that have moved, or whose migration was cancelled.
func printMoved(ctx context.Context, e *cli.Env, s instance.Settings, env operation.Env, o migrateOptions, moved []instance.Departed) error {
	switch {
	case !o.cancel && len(moved) == 1:
		return printDeparted(e, moved[0])
	case !o.cancel:
		return printAllDeparted(e, moved)
	case len(moved) == 1:
		return e.PrintInstance(ctx, s, env, moved[0].Record.ID, instance.Settings.Summary)
	}
	return printMany(ctx, e, s, env, func(i instance.Instance) bool {
		return slices.ContainsFunc(moved, func(d instance.Departed) bool { return d.Record.ID == i.ID })
	})
}

// printDeparted prints an instance as the target describes it.
func printDeparted(e *cli.Env, d instance.Departed) error {
	shown, err := departed(d)
	if err != nil {
		return err
	}
	return cli.InstanceList(e).PrintOne(e.Streams.Out, e.Output, shown)
}

func printAllDeparted(e *cli.Env, all []instance.Departed) error {
	shown := make([]cli.Instance, len(all))
	for i, d := range all {
		var err error
		if shown[i], err = departed(d); err != nil {
			return err
		}
	}
	return cli.InstanceList(e).Print(e.Streams.Out, e.Output, cli.ByName(shown, func(i cli.Instance) string { return i.Name }))
}

func departed(d instance.Departed) (cli.Instance, error) {
	if d.There == nil {
		return cli.ShowInstance(instance.Instance{Record: d.Record, Status: instance.Status{State: record.Absent, Reason: "migrated to " + d.Peer}}), nil
	}
	var shown cli.Instance
	err := json.Unmarshal(d.There, &shown)
	return shown, err
}
