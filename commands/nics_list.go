package commands

import (
	"context"

	"github.com/spf13/cobra"
)

func newNICsList(env *Env) *cobra.Command {
	var f nicFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the NICs of the sled and their records, with a verdict and its reason",
		Long: `List the NICs that are on the sled, whatever state their zones are in, and the records that NAPI has of them or says are this sled's. Each gets
a verdict and one reason:

  in use                 sled and record agree
  needs cn_uuid          the NIC is here, and the record says no sled: sync says this one
  stuck in provisioning  the VM is running or stopped: sync says which
  wrong state            the same, of a record that says the other
  arrived                the VM was migrated here, and the record says another sled: sync claims it
  departed               the VM was migrated to another sled, which claims the record: left alone
  unclaimed              made by the boot server for a link of this sled: sync claims it
  leaked                 the record says this sled, and the VM is not on it: sync removes it
  conflict               sled and record disagree on whose it is: somebody must look
  migrating              the VM is being moved: its records are not touched
  in progress            being provisioned: left alone
  not ours               another sled's, or not known to be this one's
  no record              NAPI knows nothing of a NIC that is here; sledctl makes no records`,
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
