package nics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/nicsync"
)

// SyncFlags say what a sync may change.
type SyncFlags struct {
	cli.Mutation
	Flags
	backfill, reap, state bool
	MaxDelete             int
	ConfirmTwice          time.Duration
	Migration             bool
}

// UsualConfirmTwice is how long a zone's configuration may be away while it is
// written again, several times over (sdc-net-agent AGENT-878).
const UsualConfirmTwice = 5 * time.Second

// UsualMaxDelete is a quarter of the sled's records, and at least 8.
const UsualMaxDelete = -1

func newSync(env *cli.Env) *cobra.Command {
	var f SyncFlags
	cmd := &cobra.Command{
		Use:   "sync",
		Short: "Make NAPI's NIC records match this sled",
		Long: `Make NAPI's NIC records match this sled. --backfill sets this sled in the record of a NIC that is here, if the record names none
or the sled from which the VM came; --state sets running or stopped, as the VM is; --reap removes the records of VMs and NICs that are not on the
sled, which frees their addresses. Without any of the three, sync does all of them, in this order.

sync removes a record only if it names this sled, its VM is missing from complete listings or no longer has the NIC, now and
--recheck-after later, its MAC is nowhere on the sled, it is not being provisioned, and NAPI still has the version that was judged. If sync would remove more records than
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
		RunE: env.Run(func(ctx context.Context, _ []string) error { return runSync(ctx, env, f) }),
	}
	f.Mutation.Add(cmd, false)
	f.Flags.add(cmd)
	env.AddOutput(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&f.backfill, "backfill", false, "set cn_uuid in records of NICs that are here")
	flags.BoolVar(&f.reap, "reap", false, "remove records of VMs that are not on this sled")
	flags.BoolVar(&f.state, "state", false, "set the VM's state in records; claim records of the sled's links")
	flags.IntVar(&f.MaxDelete, "max-delete", UsualMaxDelete, "most records to remove (-1: a quarter of the sled's, at least 8)")
	flags.DurationVar(&f.ConfirmTwice, "recheck-after", UsualConfirmTwice, "time between the two checks of a record before its removal")
	flags.DurationVar(&f.ConfirmTwice, "confirm-twice", UsualConfirmTwice, "the earlier name of --recheck-after")
	_ = flags.MarkHidden("confirm-twice") // it fails only for a flag that does not exist
	flags.BoolVar(&f.Migration, "disable-during-migration", false, "change nothing while a VM migrates (nics.disable_during_migration)")
	return cmd
}

// Options are the flags as nicsync takes them.
func (f SyncFlags) Options() nicsync.Options {
	o := nicsync.Options{
		Backfill: f.backfill, Reap: f.reap, State: f.state, MaxDelete: f.MaxDelete, ConfirmTwice: f.ConfirmTwice,
		DisableDuringMigration: f.Migration, DryRun: f.Dry(),
	}
	if !f.backfill && !f.reap && !f.state {
		o.Backfill, o.Reap, o.State = true, true, true
	}
	return o
}

func runSync(ctx context.Context, e *cli.Env, f SyncFlags) error {
	list := list(true)
	switch err := list.Check(e.Output); {
	case err != nil:
		return err
	case f.MaxDelete < UsualMaxDelete:
		return &cli.UsageError{Text: fmt.Sprintf("--max-delete %d: want a number of records, or -1", f.MaxDelete)}
	case f.ConfirmTwice < 0:
		return &cli.UsageError{Text: fmt.Sprintf("--recheck-after %s: want a duration of at least 0, e.g. 30s", f.ConfirmTwice)}
	}
	s, err := Settings(e, f.Flags)
	if err != nil {
		return err
	}
	c, env, err := e.Operation()
	if err != nil {
		return err
	}
	if s.Ledgerless, err = e.LedgerWithoutBootstrap(ctx, !f.Dry()); err != nil {
		return err
	}
	f.Migration = f.Migration || c.NICs.DisableDuringMigration
	outcome, err := s.Sync(ctx, env, f.Options())
	if f.Explain && err == nil {
		return e.PrintPlan(f.Mutation, outcome.Reports...)
	}
	var perr error
	if outcome.Findings != nil {
		perr = list.Print(e.Streams.Out, e.Output, showNICs(outcome.Findings, outcome.Results))
	}
	if err == nil && f.DryRun && f.Detailed && len(outcome.Results) > 0 {
		err = cli.ErrDifferences
	}
	if errors.Is(err, cli.ErrDifferences) {
		return cmp.Or(perr, err)
	}
	return failure.WithReport(cmp.Or(err, perr), outcome.Reports...)
}
