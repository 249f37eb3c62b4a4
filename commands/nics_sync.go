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
		Short: "Make the NIC records of this sled tell the truth",
		Long: `Make the records that NAPI has of this sled's NICs tell the truth: --backfill says this sled where the NIC is here and the record says none, or the sled
from which the VM was migrated, --state says running or stopped as the VM is, --reap removes records of VMs that are not on the sled, which frees their addresses. Without any
of the three, all are done, in this order.

A record goes only if a complete look condemns it: it says this sled, its VM is in no listing, at the first look and --confirm-twice later, its MAC is
nowhere on the sled, it is not being provisioned, and NAPI removes it only if it is still the version that was judged. If more would go than --max-delete,
nothing is changed. A record that somebody else changes meanwhile is read and judged again.

Nothing is changed while the file nics.lock_file is there (exit 8; its first line says why), which is looked at before each request, nor, with
--disable-during-migration, while a VM of the sled is being moved. Records of such a VM are never touched.

NAPI may not be able to say which records are this sled's: those without /search/nics are asked GET /nics?cn_uuid= with --allow-nics-endpoint. A list that
was not filtered, or cannot be understood, is not relied on (exit 8 or 1).`,
		Example: `  sledctl nics sync --dry-run
  sledctl nics sync --dry-run -o json
  sledctl nics sync --reap --max-delete 40 --confirm-twice 5m
  echo "web1 moves to sled7" > /etc/sledctl/nics.lock`,
		Args: cobra.NoArgs,
		RunE: env.run(func(ctx context.Context, _ []string) error { return runNICsSync(ctx, env, f) }),
	}
	f.mutation.add(cmd, false)
	f.nicFlags.add(cmd)
	env.addOutput(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&f.backfill, "backfill", false, "cn_uuid of records that say no sled, of NICs that are here, or the one from which their VM was migrated")
	flags.BoolVar(&f.reap, "reap", false, "remove records of VMs that are not here")
	flags.BoolVar(&f.state, "state", false, "state of records whose VM is in another one; claim records of the sled's own links")
	flags.IntVar(&f.maxDelete, "max-delete", usualMaxDelete, "refuse if more records would go; -1 is a quarter of the sled's, and at least 8")
	flags.DurationVar(&f.confirmTwice, "confirm-twice", usualConfirmTwice, "how long after the first look the second is at what would go")
	flags.BoolVar(&f.migration, "disable-during-migration", false, "change nothing while any VM of the sled is being moved (nics.disable_during_migration)")
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
		return &usageError{text: fmt.Sprintf("--confirm-twice %s: want a duration, as 30s, or 0", f.confirmTwice)}
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
