package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/sled/nicsync"
)

// nicsSyncFlags say what a sync may change.
type nicsSyncFlags struct {
	mutation
	nicFlags
	backfill, reap, state bool
	maxDelete             int
	confirmTwice          time.Duration
	migration             bool
}

// usualConfirmTwice is how long a zone's configuration may be away while it is
// written again, several times over (sdc-net-agent AGENT-878).
const usualConfirmTwice = 5 * time.Second

// usualMaxDelete is a quarter of the sled's records, and at least 8.
const usualMaxDelete = -1

func newNICsSync(env *Env) *cobra.Command {
	var f nicsSyncFlags
	cmd := &cobra.Command{
		Use:   "sync",
		Short: "Make NAPI's NIC records match this sled",
		Long: `Make NAPI's NIC records match this sled. --backfill sets this sled in the record of a NIC that is here, if the record names none
or the sled from which the VM came; --state sets running or stopped, as the VM is; --reap removes the records of VMs that are not on the
sled, which frees their addresses. Without any of the three, sync does all of them, in this order.

sync removes a record only if it names this sled, its VM is missing from complete listings, now and --recheck-after later, its MAC is
nowhere on the sled, it is not being provisioned, and NAPI still has the version that was judged. If sync would remove more records than
--max-delete, it changes nothing. sync reads and judges again a record that another program changes meanwhile.

sync changes nothing while the file nics.lock_file exists (exit 8; its first line says why; sync checks before each request), nor, with
--disable-during-migration, while a VM of the sled is migrating. It never touches the records of such a VM.

A NAPI without /search/nics cannot list this sled's records; with --allow-nics-endpoint, sync asks GET /nics?cn_uuid= instead. sync does
not rely on a list that was not filtered or cannot be read (exit 8 or 1).`,
		Example: `  sledctl nics sync --dry-run
  sledctl nics sync --dry-run -o json
  sledctl nics sync --reap --max-delete 40 --recheck-after 5m
  echo "web1 moves to sled7" > /etc/sledctl/nics.lock`,
		Args: cobra.NoArgs,
		RunE: env.run(func(ctx context.Context, _ []string) error { return runNICsSync(ctx, env, f) }),
	}
	f.mutation.add(cmd, false)
	f.nicFlags.add(cmd)
	env.addOutput(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&f.backfill, "backfill", false, "set cn_uuid in records of NICs that are here")
	flags.BoolVar(&f.reap, "reap", false, "remove records of VMs that are not on this sled")
	flags.BoolVar(&f.state, "state", false, "set the VM's state in records; claim records of the sled's links")
	flags.IntVar(&f.maxDelete, "max-delete", usualMaxDelete, "most records to remove (-1: a quarter of the sled's, at least 8)")
	flags.DurationVar(&f.confirmTwice, "recheck-after", usualConfirmTwice, "time between the two checks of a record before its removal")
	flags.DurationVar(&f.confirmTwice, "confirm-twice", usualConfirmTwice, "the earlier name of --recheck-after")
	_ = flags.MarkHidden("confirm-twice") // it fails only for a flag that does not exist
	flags.BoolVar(&f.migration, "disable-during-migration", false, "change nothing while a VM migrates (nics.disable_during_migration)")
	return cmd
}

func (f nicsSyncFlags) options() nicsync.Options {
	o := nicsync.Options{
		Backfill: f.backfill, Reap: f.reap, State: f.state, MaxDelete: f.maxDelete, ConfirmTwice: f.confirmTwice,
		DisableDuringMigration: f.migration, DryRun: f.dry(),
	}
	if !f.backfill && !f.reap && !f.state {
		o.Backfill, o.Reap, o.State = true, true, true
	}
	return o
}

func runNICsSync(ctx context.Context, e *Env, f nicsSyncFlags) error {
	list := nicList(true)
	switch err := list.Check(e.output); {
	case err != nil:
		return err
	case f.maxDelete < usualMaxDelete:
		return &usageError{text: fmt.Sprintf("--max-delete %d: want a number of records, or -1", f.maxDelete)}
	case f.confirmTwice < 0:
		return &usageError{text: fmt.Sprintf("--recheck-after %s: want a duration of at least 0, e.g. 30s", f.confirmTwice)}
	}
	s, err := nicSettings(e, f.nicFlags)
	if err != nil {
		return err
	}
	c, env, err := e.operation()
	if err != nil {
		return err
	}
	f.migration = f.migration || c.NICs.DisableDuringMigration
	outcome, err := s.Sync(ctx, env, f.options())
	if f.explain && err == nil {
		return e.printPlan(f.mutation, outcome.Reports...)
	}
	var perr error
	if outcome.Findings != nil {
		perr = list.Print(e.Streams.Out, e.output, showNICs(outcome.Findings, outcome.Results))
	}
	if err == nil && f.dryRun && f.detailed && len(outcome.Results) > 0 {
		err = errDifferences
	}
	if errors.Is(err, errDifferences) {
		return cmp.Or(perr, err)
	}
	return withReport(cmp.Or(err, perr), outcome.Reports...)
}
