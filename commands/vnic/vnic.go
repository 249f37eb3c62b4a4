// Package vnic is sledctl vnic.
package vnic

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/step"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/network"
	"github.com/sledctl/sledctl/vnic"
)

// New is the command vnic.
func New(env *cli.Env) *cobra.Command {
	cmd := cli.Group("vnic", "List, create and delete VNICs", "")
	cmd.AddCommand(newList(env), newCreate(env), newDelete(env))
	return cmd
}

// shownVNIC is a VNIC as it is printed.
type shownVNIC = api.VNIC

func vnicList() terminal.List[shownVNIC] {
	type column = terminal.Column[shownVNIC]
	return terminal.List[shownVNIC]{Kind: "VNIC", Name: func(v shownVNIC) string { return v.Name }, Columns: []column{
		{Name: "name", Value: func(v shownVNIC) string { return v.Name }},
		{Name: "over", Value: func(v shownVNIC) string { return v.Over }},
		{Name: "mac", Value: func(v shownVNIC) string { return v.MAC }},
		{Name: "vlan", Value: func(v shownVNIC) string { return strconv.Itoa(v.VLAN) }, Right: true},
		{Name: "zone", Value: func(v shownVNIC) string { return v.Zone }},
		{Name: "mtu", Value: func(v shownVNIC) string { return strconv.Itoa(v.MTU) }, Right: true, Extra: true},
	}}
}

func newList(env *cli.Env) *cobra.Command {
	var all bool
	var of string
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List sledctl's VNICs",
		Example: `  sledctl vnic list
  sledctl vnic list --instance web1
  sledctl vnic list --all -o json`,
		Args: cobra.NoArgs,
		RunE: env.Run(func(ctx context.Context, _ []string) error { return runList(ctx, env, all, of) }),
	}
	cmd.Flags().StringVar(&of, "instance", "", "list only the VNICs of the instance with this `NAME` or UUID")
	env.CompleteFlag(cmd, "instance", env.CompleteInstances)
	cmd.Flags().BoolVar(&all, "all", false, "list foreign ones too")
	env.AddOutput(cmd)
	return cmd
}

func runList(ctx context.Context, e *cli.Env, all bool, of string) error {
	if err := vnicList().Check(e.Output); err != nil {
		return err
	}
	shown, err := vnicsShown(ctx, e, all)
	if err != nil {
		return err
	}
	if of != "" {
		r, err := e.OfInstance(ctx, of)
		if err != nil {
			return err
		}
		shown = slices.DeleteFunc(shown, func(v shownVNIC) bool { return !has(r, v.Name) })
	}
	if err := vnicList().Print(e.Streams.Out, e.Output, cli.ByName(shown, func(v shownVNIC) string { return v.Name })); err != nil {
		return err
	}
	return e.StateFile(ctx)
}

// has reports whether a VNIC is one of an instance's.
func has(r record.Record, name string) bool {
	return slices.ContainsFunc(r.Incarnations(), func(i record.Incarnation) bool {
		return slices.ContainsFunc(i.VNICs(), func(v record.VNIC) bool { return v.Name == name })
	})
}

func vnicsShown(ctx context.Context, e *cli.Env, all bool) ([]shownVNIC, error) {
	c, h, err := e.Reach()
	if err != nil {
		return nil, err
	}
	links, err := inventory.Look(ctx, h, inventory.Want{Parts: []inventory.Part{inventory.Links}}).Links()
	if err != nil {
		return nil, err
	}
	var held []network.Hold
	if view, err := e.View(ctx); err == nil { // what is wrong with the ledger is told next to the list
		held, _ = network.Holds(view)
	}
	ours := func(l vnic.Link) bool {
		return cli.Prefixes(c).NameOfVNIC(l.Name).Ours() || l.Name == c.Network.GZVNIC || cli.Prefixes(c).NameOfZone(l.Zone).Ours() ||
			slices.ContainsFunc(held, func(h network.Hold) bool { return h.Kind == "vnic" && h.Name == l.Name && h.MAC == l.MAC })
	}
	var shown []shownVNIC
	for _, l := range links {
		if l.Class == "vnic" && (all || ours(l)) {
			shown = append(shown, shownVNIC{Name: l.Name, Over: l.Over, MAC: l.MAC, VLAN: l.VLAN, MTU: l.MTU, Zone: l.Zone})
		}
	}
	return shown, nil
}

// completeVNICs offers those that may be deleted: not the global zone's own.
func completeVNICs(ctx context.Context, e *cli.Env) []string {
	shown, err := vnicsShown(ctx, e, false)
	if err != nil {
		return nil
	}
	c, err := e.Config()
	if err != nil {
		return nil
	}
	shown = slices.DeleteFunc(shown, func(v shownVNIC) bool { return v.Name == c.Network.GZVNIC })
	var names []string
	for _, v := range shown {
		names = append(names, v.Name)
	}
	return names
}

// options are those of a VNIC that belongs to no instance, next to those of
// a step.
type options struct {
	step.Options
	network.VNIC
}

func newCreate(env *cli.Env) *cobra.Command {
	var o options
	var cmd *cobra.Command
	cmd = &cobra.Command{
		Use:   "create [NAME]",
		Short: "Create an instance's VNICs, or hold one for later",
		Long: `Create an instance's VNICs, or hold one for later. With --instance, create the control VNIC and the guest VNICs of that instance:
the first step of its bring-up (docs/steps.md). Without, create one VNIC over a link; reap keeps it for the time of --hold.`,
		Example: `  vnics=$(sledctl vnic create --instance web1 --nic over=net0 -o name)
  sledctl vnic create --over net0 --hold 2h`,
		Args: cobra.MaximumNArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			if len(args) > 0 {
				o.VNIC.Name = args[0]
			}
			if err := checkFlags(cmd.Flags(), o.Ref != ""); err != nil {
				return err
			}
			return runCreate(ctx, env, o)
		}),
	}
	o.Options.Add(env, cmd, step.UsedBy(instance.StageVNIC)...)
	flags := cmd.Flags()
	flags.StringVar(&o.Over, "over", "", "link or etherstub below the VNIC")
	env.CompleteFlag(cmd, "over", env.CompleteLinks)
	flags.StringVar(&o.MAC, "mac", "", "MAC address (default: a random one)")
	flags.IntVar(&o.VLAN, "vlan", 0, "VLAN, 1 to 4094")
	flags.IntVar(&o.MTU, "mtu", 0, "MTU in bytes (default: the link's MTU)")
	flags.DurationVar(&o.Hold, "hold", time.Hour, "how long reap keeps the VNIC")
	return cmd
}

// checkFlags refuses a flag that would have no effect: one that describes an instance
// without one, or a VNIC that belongs to none with one.
func checkFlags(flags *pflag.FlagSet, ofInstance bool) error {
	if ofInstance {
		for _, flag := range []string{"mac", "vlan", "mtu", "hold"} {
			if flags.Changed(flag) {
				return &cli.UsageError{Text: "--" + flag + " is about a VNIC of no instance: want --over LINK with it", Advice: "give the instance a guest NIC with --nic over=LINK"}
			}
		}
		return nil
	}
	for _, flag := range step.Describing() {
		if flags.Changed(flag) {
			return &cli.UsageError{Text: "--" + flag + " describes an instance: want --instance NAME with it"}
		}
	}
	return nil
}

func runCreate(ctx context.Context, e *cli.Env, o options) error {
	if err := vnicList().Check(e.Output); err != nil {
		return err
	}
	if o.Ref != "" {
		if o.Name != "" || o.Over != "" {
			return &cli.UsageError{Text: "vnic create: --instance chooses names and links itself", Advice: "give the instance a guest NIC with --nic over=LINK"}
		}
		return step.Run(ctx, e, instance.StageVNIC, o.Options, printRunVNICs)
	}
	if err := checkVNIC(&o.VNIC); err != nil {
		return err
	}
	c, env, err := e.Operation()
	if err != nil {
		return err
	}
	made, report, err := cli.NetworkSettings(c).CreateVNIC(ctx, env, o.VNIC, o.Dry(), o.Keep)
	if err != nil {
		return failure.WithReport(err, report)
	}
	if o.Dry() {
		return e.PrintPlan(o.Mutation, report)
	}
	return vnicList().PrintOne(e.Streams.Out, e.Output, shownVNIC{Name: made.Name, Over: made.Over, MAC: made.MAC, VLAN: made.VLAN, MTU: o.MTU})
}

// checkVNIC refuses what dladm would, before it is asked.
func checkVNIC(v *network.VNIC) error {
	if v.Over == "" {
		return &cli.UsageError{Text: "vnic create: --over or --instance is missing", Advice: "run: sledctl vnic create --over LINK"}
	}
	if err := vnic.ValidateName(v.Over); err != nil {
		return fmt.Errorf("--over: %w", err)
	}
	if v.MAC != "" {
		mac, err := vnic.ParseMAC(v.MAC)
		if err != nil {
			return fmt.Errorf("--mac: %w", err)
		}
		v.MAC = mac
	}
	if v.Name != "" {
		if err := vnic.ValidateName(v.Name); err != nil {
			return err
		}
	}
	if v.VLAN < 0 || v.VLAN > 4094 {
		return &cli.UsageError{Text: fmt.Sprintf("--vlan %d: want a number from 1 to 4094", v.VLAN)}
	}
	if v.Hold <= 0 {
		return &cli.UsageError{Text: fmt.Sprintf("--hold %s: want a duration above 0, e.g. 1h", v.Hold)}
	}
	if v.MTU != 0 && (v.MTU < 68 || v.MTU > 65535) {
		return &cli.UsageError{Text: fmt.Sprintf("--mtu %d: want a number from 68 to 65535", v.MTU)}
	}
	return nil
}

func printRunVNICs(_ context.Context, e *cli.Env, r record.Record) error {
	return vnicList().Print(e.Streams.Out, e.Output, api.VNICsOf(r))
}

func newDelete(env *cli.Env) *cobra.Command {
	var m cli.Mutation
	var mustExist bool
	cmd := &cobra.Command{
		Use: "delete NAME", Aliases: []string{"rm"}, Short: "Delete a VNIC that no instance needs",
		Example: `  sledctl vnic delete vnic_propolis7`,
		Args:    cobra.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			return runDelete(ctx, env, m, args[0], mustExist)
		}),
	}
	m.Add(cmd, false)
	env.AddOutput(cmd)
	cmd.Flags().BoolVar(&mustExist, "must-exist", false, "exit 4 if it does not exist")
	cli.CompleteArgs(cmd, func(ctx context.Context) []string { return completeVNICs(ctx, env) })
	return cmd
}

func runDelete(ctx context.Context, e *cli.Env, m cli.Mutation, name string, mustExist bool) error {
	if err := vnic.ValidateName(name); err != nil {
		return err
	}
	c, env, err := e.Operation()
	if err != nil {
		return err
	}
	inUse := func(view ledger.View, name string) error {
		user, used, err := record.UserOfVNIC(view, name)
		if used {
			return &failure.RefusedError{Err: fmt.Errorf("VNIC %s belongs to instance %q", name, user.Name), Advice: "run: sledctl instance delete " + user.Name}
		}
		return err
	}
	there, report, err := cli.NetworkSettings(c).DeleteVNIC(ctx, env, name, inUse, m.Dry())
	switch {
	case err != nil:
		return failure.WithReport(err, report)
	case m.Dry():
		return e.PrintPlan(m, report)
	case there:
		return nil
	}
	if r, err := e.OfInstance(ctx, name); err == nil { // an instance's VNICs go with it
		return &failure.RefusedError{
			Err: fmt.Errorf("%q is an instance, and no VNIC", r.Name), Advice: "to list its VNICs, run: sledctl vnic list --instance " + r.Name,
		}
	}
	if mustExist {
		return &cli.NotFoundError{What: "VNIC " + name, List: "sledctl vnic list"}
	}
	return nil
}
