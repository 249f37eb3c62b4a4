package nics

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
)

func newList(env *cli.Env) *cobra.Command {
	var f Flags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List this sled's NICs and their records, with a verdict",
		Long: `List this sled's NICs and their records, with a verdict and one reason each: the NICs in all zones, whatever their state, and the
records that NAPI has of them or assigns to this sled.

  in use                 sled and record agree
  needs cn_uuid          the NIC is here, and its record names no sled: sync sets this one
  stuck in provisioning  the VM is running or stopped: sync sets which
  wrong state            the record has another state than the VM: sync sets it
  arrived                the VM moved here, and its record names another sled: sync claims it
  departed               the VM moved to another sled, which claims the record: sync skips it
  unclaimed              the boot server created it for a link of this sled: sync claims it
  leaked                 the record names this sled, which lacks the VM or its NIC: sync removes it
  conflict               sled and record disagree on the owner: an operator must decide
  migrating              the VM is migrating: sync skips its records
  in progress            the VM is being provisioned: sync skips its records
  foreign                of another sled, or not known to be of this one
  no record              NAPI has no record of a NIC that is here; sledctl creates none`,
		Example: `  sledctl nics list
  sledctl nics list -o json | jq '.items[] | select(.verdict == "leaked") | .record.ip'`,
		Args: cobra.NoArgs,
		RunE: env.Run(func(ctx context.Context, _ []string) error { return runList(ctx, env, f) }),
	}
	f.add(cmd)
	env.AddOutput(cmd)
	return cmd
}

func runList(ctx context.Context, e *cli.Env, f Flags) error {
	if err := list(false).Check(e.Output); err != nil {
		return err
	}
	s, err := Settings(e, f)
	if err != nil {
		return err
	}
	_, env, err := e.Operation()
	if err != nil {
		return err
	}
	if s.Ledgerless, err = e.LedgerWithoutBootstrap(ctx, false); err != nil {
		return err
	}
	findings, err := s.List(ctx, env)
	if err != nil {
		return err
	}
	return list(false).Print(e.Streams.Out, e.Output, showNICs(findings, nil))
}
