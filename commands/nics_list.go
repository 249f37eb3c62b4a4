package commands

import (
	"context"

	"github.com/spf13/cobra"
)

func newNICsList(env *Env) *cobra.Command {
	var f nicFlags
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
  leaked                 the record names this sled, which lacks the VM: sync removes it
  conflict               sled and record disagree on the owner: an operator must decide
  migrating              the VM is migrating: sync skips its records
  in progress            the VM is being provisioned: sync skips its records
  foreign                of another sled, or not known to be of this one
  no record              NAPI has no record of a NIC that is here; sledctl creates none`,
		Example: `  sledctl nics list
  sledctl nics list -o json | jq '.items[] | select(.verdict == "leaked") | .record.ip'`,
		Args: cobra.NoArgs,
		RunE: env.run(func(ctx context.Context, _ []string) error { return runNICsList(ctx, env, f) }),
	}
	f.add(cmd)
	env.addOutput(cmd)
	return cmd
}

func runNICsList(ctx context.Context, e *Env, f nicFlags) error {
	if err := nicList(false).Check(e.output); err != nil {
		return err
	}
	s, err := nicSettings(e, f)
	if err != nil {
		return err
	}
	_, env, err := e.operation()
	if err != nil {
		return err
	}
	findings, err := s.List(ctx, env)
	if err != nil {
		return err
	}
	return nicList(false).Print(e.Streams.Out, e.output, showNICs(findings, nil))
}
