package instance

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/adoption"
	"github.com/sledctl/sledctl/sled/instance/record"
)

type adoptOptions struct {
	cli.Mutation
	manyFlags
	name string
}

func newAdopt(env *cli.Env) *cobra.Command {
	var o adoptOptions
	cmd := &cobra.Command{
		Use:   "adopt [NAME|UUID|ZONE]",
		Short: "Record a running VM that is not in the ledger",
		Long: `Record a running VM that is not in the ledger, because the ledger was lost or another tool created the VM. sledctl makes the
record from its zone's configuration, VNICs, address and dataset, and from the VM that its Propolis reports. A VM that sledctl created
becomes the same instance again, with its id, name, Propolis id, address and MACs; only its protection is lost.

sledctl recognises a VM that does not run (after a reboot, say) by the marks of its zone and dataset; instance ensure starts it. If the
marks are incomplete, sledctl records it as stopped, and a warning names what instance ensure must be given.

sledctl adopts a VM of another tool only if names.other_zone_prefix assigns that tool's zones to sledctl.

It changes nothing on the sled and does not disturb the VM. reap --dry-run lists what can be adopted as adoptable.`,
		Example: `  sledctl instance adopt --all
  sledctl instance adopt oxz_propolis-server_6f9619ff-8b86-d011-b42d-00c04fc964ff --name web1`,
		Args: cobra.MaximumNArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			if err := o.check("instance adopt", len(args) > 0); err != nil {
				return err
			}
			if o.many() && o.name != "" {
				return &cli.UsageError{Text: "instance adopt: --name is for one of them"}
			}
			return runAdopt(ctx, env, o, args)
		}),
	}
	o.Mutation.Add(cmd, false)
	o.manyFlags.add(cmd, "every VM that is not in the ledger")
	cmd.Flags().StringVar(&o.name, "name", "", "name for the instance (default: from its zone, else from Propolis)")
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, func(ctx context.Context) []string { return completeUnrecorded(ctx, env) })
	return cmd
}

func runAdopt(ctx context.Context, e *cli.Env, o adoptOptions, args []string) error {
	if err := cli.InstanceList(e).Check(e.Output); err != nil {
		return err
	}
	s, env, err := e.Instances(ctx)
	if err != nil {
		return err
	}
	if !o.many() {
		return adoptOne(ctx, e, s, env, o, args[0])
	}
	zones, err := unrecordedZones(ctx, e, s, env)
	if err != nil {
		return err
	}
	name := func(one adoption.Unrecorded) string { return one.Zone.Name }
	results, failed := eachOf(ctx, e, zones, name, o.parallel, func(ctx context.Context, one adoption.Unrecorded) (instance.Result, error) {
		return s.Adopt(ctx, env, one, o.request())
	})
	if err := printAdopted(ctx, e, s, env, o, results); err != nil && failed == nil {
		return err
	}
	return failed
}

func (o adoptOptions) request() instance.AdoptRequest {
	return instance.AdoptRequest{Verb: "instance adopt", Name: o.name, DryRun: o.Dry()}
}

// adoptOne takes one over. One that is recorded already is left alone.
func adoptOne(ctx context.Context, e *cli.Env, s instance.Settings, env operation.Env, o adoptOptions, ref string) error {
	zones, err := unrecordedZones(ctx, e, s, env)
	if err != nil {
		return err
	}
	one, err := s.FindUnrecorded(ctx, env, zones, ref)
	if cli.Is[*record.NotFoundError](err) {
		if r, known := recordedIncarnation(ctx, e, s, ref); known {
			return e.PrintInstance(ctx, s, env, r.ID, instance.Settings.Get)
		}
	}
	if err != nil {
		return err
	}
	result, err := s.Adopt(ctx, env, one, o.request())
	if err != nil {
		return failure.WithReport(err, result.Report)
	}
	return printAdopted(ctx, e, s, env, o, []instance.Result{result})
}

// recordedIncarnation finds an instance that has an incarnation, by name, id or zone.
func recordedIncarnation(ctx context.Context, e *cli.Env, s instance.Settings, ref string) (record.Record, bool) {
	view, err := e.View(ctx)
	if err != nil {
		return record.Record{}, false
	}
	if r, err := s.Find(view, ref); err == nil {
		return r, r.Incarnation != nil
	}
	all, err := record.All(view)
	for _, r := range all {
		if err == nil && r.Incarnation != nil && r.Incarnation.Zone == ref {
			return r, true
		}
	}
	return record.Record{}, false
}

func unrecordedZones(ctx context.Context, e *cli.Env, s instance.Settings, env operation.Env) ([]adoption.Unrecorded, error) {
	view, err := e.View(ctx)
	if err != nil {
		return nil, err
	}
	return s.ListUnrecorded(ctx, env, view)
}

// printAdopted prints the instances that were adopted; of a dry run, those that
// would have been.
func printAdopted(ctx context.Context, e *cli.Env, s instance.Settings, env operation.Env, o adoptOptions, results []instance.Result) error {
	var ids []string
	var would []cli.Instance
	for _, r := range results {
		if r.Record.ID != "" {
			ids = append(ids, r.Record.ID)
			would = append(would, cli.ShowInstance(instance.Instance{Record: r.Record, Status: instance.Status{State: r.State}}))
		}
	}
	if !o.Dry() {
		return printMany(context.WithoutCancel(ctx), e, s, env, func(i instance.Instance) bool { return slices.Contains(ids, i.ID) })
	}
	err := cli.InstanceList(e).Print(e.Streams.Out, e.Output, would)
	if len(would) > 0 && o.Detailed {
		err = errors.Join(err, cli.ErrDifferences)
	}
	return err
}

// completeUnrecorded offers the zones that can be adopted.
func completeUnrecorded(ctx context.Context, e *cli.Env) []string {
	s, env, err := e.Instances(ctx)
	if err != nil {
		return nil
	}
	all, err := unrecordedZones(ctx, e, s, env)
	if err != nil {
		return nil
	}
	names := make([]string, len(all))
	for i, one := range all {
		names[i] = one.Zone.Name
	}
	return names
}
