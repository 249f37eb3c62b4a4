package instance

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/description"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
)

type ensureOptions struct {
	cli.Mutation
	description.Flags
	manyFlags
	selection
	recreate           bool
	protect, unprotect bool
	from, migration    string
	offline, stopped   bool // the instance moves here while it is stopped
}

func newEnsure(env *cli.Env) *cobra.Command {
	var o ensureOptions
	var far remote
	cmd := &cobra.Command{
		Use:   "ensure [NAME|UUID|PATTERN ...]",
		Short: "Create, repair or start an instance as described",
		Long: `Create, repair or start an instance as described. If the instance already runs as described, sledctl changes nothing.

What the flags leave open keeps its value; a new instance gets the defaults (docs/instance.md). If the command fails, it undoes what it
created, except with --keep; if it is killed, run it again and it resumes.

With --all it starts every instance that is wanted running, as recorded, e.g. after a reboot of the sled. With --failed it starts only
those that ran since the sled booted and died; with several names, patterns, --state or --filter, what they pick (as in instance list).
If an instance cannot start (its pool is missing, say), the others still do; sledctl reports it and exits with 3.

Of several instances, sledctl starts those with the lowest --start-order at once, then those with the next number, and those without one
last. The next number begins when each instance of the lower ones is up or has failed: a failed instance does not keep the others from
starting. A new --start-order of a running VM changes the record only.

With --migrate-from and --migration-id the VM comes from another sled while it runs; instance migrate runs this command on the target
(docs/migration.md). Without them, if an arrival was interrupted, sledctl waits for a VM that is on its way, and removes what was
created for a VM that stayed at its source. With --offline the instance moves here while it is stopped, with volumes that are here: with a
document it is put on record, and no command starts it; with its name or UUID alone, it is started then.`,
		Example: `  sledctl instance ensure web1 --cpus 4 --memory 8G --disk rpool/volumes/web1 --nic over=net0,vlan=100
  sledctl instance ensure -f web1.toml
  sledctl instance ensure web1 --spec machine.json --nic over=net0
  sledctl instance ensure --all`,
		RunE: env.Run(func(ctx context.Context, args []string) error {
			o.name(args)
			several := len(args) > 1 || o.picks()
			if err := o.manyFlags.check("instance ensure", len(args) > 0 || o.File != "" || several); err != nil {
				return err
			}
			if o.protect && o.unprotect {
				return &cli.UsageError{Text: "instance ensure: --protect and --no-protect exclude each other"}
			}
			if (several || o.many()) && o.describes() {
				return errAsRecorded
			}
			if several {
				return onSelected(ctx, env, far, o.Mutation, o.manyFlags, o.selection, bulk{verb: "ensure", sequence: inStartOrder}, api.WantRunning, startRecorded("instance ensure", o.Mutation))
			}
			o.TakeRef(args)
			if far.Is() {
				return ensureRemotely(ctx, env, far, o)
			}
			if o.many() {
				return runEnsureAll(ctx, env, o)
			}
			return runEnsure(ctx, env, o)
		}),
	}
	o.Flags.Add(env, cmd, true)
	o.Mutation.Add(cmd, true)
	far.Add(cmd)
	o.manyFlags.add(cmd, "every instance that is wanted running")
	o.addTo(env, cmd)
	cmd.Flags().Var(cli.FuncFlag{Kind: "N", Read: func(s string) error {
		order, err := record.ParseStartOrder(s)
		o.Wanted.StartOrder = &order
		return err
	}}, "start-order", "0 to 999: the lowest number starts first (none: last)")
	cmd.Flags().Var(cli.FuncFlag{Kind: "UUID", Read: func(s string) error {
		id, err := uuid.Parse(s)
		if err != nil {
			return errors.New("want a UUID")
		}
		o.Wanted.PropolisID = id.String()
		return nil
	}}, "propolis-id", "id of the VM that is created (default: a random one)")
	cmd.Flags().BoolVar(&o.protect, "protect", false, "from now on, delete needs --yes and reap --all skips the instance")
	cmd.Flags().BoolVar(&o.unprotect, "no-protect", false, "remove the protection")
	cmd.Flags().StringVar(&o.from, "migrate-from", "", "IP:PORT of the source Propolis (instance migrate sets it)")
	cmd.Flags().StringVar(&o.migration, "migration-id", "", "UUID of the migration, a new one for each attempt")
	cmd.Flags().BoolVar(&o.offline, "offline", false, "with --migration-id: the instance moves here stopped")
	cmd.Flags().BoolVar(&o.stopped, "stopped", false, "with --offline: it is not to be started here, either")
	cmd.Flags().BoolVar(&o.recreate, "recreate", false, "rebuild the zone if a difference needs it: powers the VM off")
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, env.CompleteInstances)
	return cmd
}

func runEnsure(ctx context.Context, e *cli.Env, o ensureOptions) error {
	if o.offline || o.stopped {
		return ensureMoved(ctx, e, o)
	}
	from, err := o.migrateFrom()
	if err != nil {
		return err
	}
	wanted, err := description.Wanted(ctx, e, o.Flags)
	if err != nil {
		return err
	}
	return ensureOne(ctx, e, o.Mutation, instance.EnsureRequest{
		Verb: "instance ensure", Wanted: wanted, Recreate: o.recreate, Protect: o.protection(), DryRun: o.Dry(), Keep: o.Keep,
		From: from, Tell: e.Progress.Moves("instance ensure", wanted.Ref, ""),
	})
}

// ensureMoved puts an instance on record that moves here while it is stopped, or starts it.
func ensureMoved(ctx context.Context, e *cli.Env, o ensureOptions) error {
	id, err := uuid.Parse(o.migration)
	switch described := o.File != ""; {
	case !o.offline:
		return &cli.UsageError{Text: "instance ensure: --stopped is for --offline"}
	case err != nil:
		return &cli.UsageError{Text: fmt.Sprintf("--migration-id %q: want a UUID", o.migration)}
	case described && o.from == "", !described && (o.from != "" || o.stopped || o.describes()):
		return &cli.UsageError{Text: "instance ensure --offline: want -f with --migrate-from, or else the name of an instance that arrives"}
	}
	c := instance.EnsureRequest{
		Verb: "instance ensure", Protect: o.protection(), DryRun: o.Dry(), Keep: o.Keep, Wanted: instance.Wanted{Ref: o.Wanted.Ref},
		From: &record.Migration{ID: id.String(), Source: o.from, Offline: true},
	}
	if o.File != "" {
		if c.Wanted, err = description.Wanted(ctx, e, o.Flags); err != nil {
			return err
		}
	}
	return e.ChangeInstance(ctx, o.Mutation, func(ctx context.Context, s instance.Settings, env operation.Env) (instance.Result, error) {
		switch {
		case o.File != "" && o.stopped:
			return instance.Expect(ctx, s, env, c, record.WantedStopped)
		case o.File != "":
			return instance.Expect(ctx, s, env, c, record.WantedRunning)
		}
		result, err := instance.Admit(ctx, s, env, c)
		if err != nil || o.Dry() {
			return result, err
		}
		volumes, _, err := cli.Volumes(e)
		if err == nil {
			_, err = volumes.Arrived(ctx, env, result.Record.ID, record.VolumesOf(result.Record.AllDisks()))
		}
		return result, err
	})
}

// migrateFrom is nil where the machine is made here.
func (o ensureOptions) migrateFrom() (*record.Migration, error) {
	if o.from == "" && o.migration == "" {
		return nil, nil
	}
	at, err := netip.ParseAddrPort(o.from)
	if err != nil || at.Port() == 0 {
		return nil, &cli.UsageError{Text: fmt.Sprintf("--migrate-from %q: want IP:PORT, as 10.77.0.2:12400", o.from)}
	}
	id, err := uuid.Parse(o.migration)
	if err != nil {
		return nil, &cli.UsageError{Text: fmt.Sprintf("--migration-id %q: want a UUID", o.migration)}
	}
	if o.recreate {
		return nil, &cli.UsageError{Text: "instance ensure: --recreate and --migrate-from exclude each other"}
	}
	return &record.Migration{ID: id.String(), Source: at.String()}, nil
}

// protection is nil where it must stay as it is.
func (o ensureOptions) protection() *bool {
	if o.protect || o.unprotect {
		return &o.protect
	}
	return nil
}

// ensureOne runs a change on the bring-up.
func ensureOne(ctx context.Context, e *cli.Env, m cli.Mutation, change instance.EnsureRequest) error {
	return e.ChangeInstance(ctx, m, func(ctx context.Context, s instance.Settings, env operation.Env) (instance.Result, error) {
		return s.Ensure(ctx, env, change)
	})
}
