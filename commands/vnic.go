package commands

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/network"
	"github.com/sledctl/sledctl/vnic"
)

func newVNIC(env *Env) *cobra.Command {
	cmd := group("vnic", "List, create and delete VNICs", "")
	cmd.AddCommand(newVNICList(env), newVNICCreate(env), newVNICDelete(env))
	return cmd
}

// shownVNIC is a VNIC as it is printed.
type shownVNIC = api.VNIC

func vnicList() terminal.List[shownVNIC] {
	type column = terminal.Column[shownVNIC]
	return terminal.List[shownVNIC]{Kind: "VNIC", Name: func(v shownVNIC) string { return v.Name }, Columns: []column{
		{Name: "name", Value: func(v shownVNIC) string { return v.Name }, Whole: true},
		{Name: "over", Value: func(v shownVNIC) string { return v.Over }},
		{Name: "mac", Value: func(v shownVNIC) string { return v.MAC }},
		{Name: "vlan", Value: func(v shownVNIC) string { return strconv.Itoa(v.VLAN) }, Right: true},
		{Name: "zone", Value: func(v shownVNIC) string { return v.Zone }},
		{Name: "mtu", Value: func(v shownVNIC) string { return strconv.Itoa(v.MTU) }, Right: true, Extra: true},
	}}
}

func newVNICList(env *Env) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List sledctl's VNICs",
		Example: `  sledctl vnic list
  sledctl vnic list --all -o json`,
		Args: cobra.NoArgs,
		RunE: env.run(func(ctx context.Context, _ []string) error { return runVNICList(ctx, env, all) }),
	}
	cmd.Flags().BoolVar(&all, "all", false, "list foreign ones too")
	env.addOutput(cmd)
	return cmd
}

func runVNICList(ctx context.Context, e *Env, all bool) error {
	if err := vnicList().Check(e.output); err != nil {
		return err
	}
	shown, err := vnicsShown(ctx, e, all)
	if err != nil {
		return err
	}
	if err := vnicList().Print(e.Streams.Out, e.output, byName(shown, func(v shownVNIC) string { return v.Name })); err != nil {
		return err
	}
	return e.stateFile(ctx)
}

func vnicsShown(ctx context.Context, e *Env, all bool) ([]shownVNIC, error) {
	c, h, err := e.reach()
	if err != nil {
		return nil, err
	}
	links, err := inventory.Look(ctx, h, inventory.Want{Parts: []inventory.Part{inventory.Links}}).Links()
	if err != nil {
		return nil, err
	}
	var held []network.Hold
	if view, err := e.view(ctx); err == nil { // what is wrong with the state file is told next to the list
		held, _ = network.Holds(view)
	}
	ours := func(l vnic.Link) bool {
		return prefixes(c).NameOfVNIC(l.Name).Ours() || l.Name == c.Network.GZVNIC || prefixes(c).NameOfZone(l.Zone).Ours() ||
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
func completeVNICs(ctx context.Context, e *Env) []string {
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

// vnicOptions are those of a VNIC that belongs to no instance, next to those of
// a step.
type vnicOptions struct {
	stepOptions
	network.VNIC
}

func newVNICCreate(env *Env) *cobra.Command {
	var o vnicOptions
	cmd := &cobra.Command{
		Use:   "create [NAME]",
		Short: "Create an instance's VNICs, or hold one for later",
		Long: `Create an instance's VNICs, or hold one for later. With --instance, create the control VNIC and the guest VNICs of that instance:
the first step of its bring-up (docs/steps.md). Without, create one VNIC over a link; reap keeps it for the time of --hold.`,
		Example: `  vnics=$(sledctl vnic create --instance web1 --nic over=net0 -o name)
  sledctl vnic create --over net0 --hold 2h`,
		Args: cobra.MaximumNArgs(1),
		RunE: env.run(func(ctx context.Context, args []string) error {
			if len(args) > 0 {
				o.Name = args[0]
			}
			return runVNICCreate(ctx, env, o)
		}),
	}
	o.stepOptions.add(env, cmd, usedBy(instance.StageVNIC)...)
	flags := cmd.Flags()
	flags.StringVar(&o.Over, "over", "", "link or etherstub below the VNIC")
	flags.StringVar(&o.MAC, "mac", "", "MAC address (default: a random one)")
	flags.IntVar(&o.VLAN, "vlan", 0, "VLAN, 1 to 4094")
	flags.IntVar(&o.MTU, "mtu", 0, "MTU in bytes (default: the link's MTU)")
	flags.DurationVar(&o.Hold, "hold", time.Hour, "how long reap keeps the VNIC")
	return cmd
}

func runVNICCreate(ctx context.Context, e *Env, o vnicOptions) error {
	if err := vnicList().Check(e.output); err != nil {
		return err
	}
	if o.ref != "" {
		if o.Name != "" || o.Over != "" {
			return &usageError{text: "vnic create: --instance chooses names and links itself", hint: "--nic over=LINK gives the instance a guest NIC"}
		}
		return runStep(ctx, e, instance.StageVNIC, o.stepOptions, printRunVNICs)
	}
	if err := checkVNIC(&o.VNIC); err != nil {
		return err
	}
	c, env, err := e.operation()
	if err != nil {
		return err
	}
	made, report, err := networkSettings(c).CreateVNIC(ctx, env, o.VNIC, o.dry(), o.keep)
	if err != nil {
		return withReport(err, report)
	}
	if o.dry() {
		return e.printPlan(o.mutation, report)
	}
	return vnicList().PrintOne(e.Streams.Out, e.output, shownVNIC{Name: made.Name, Over: made.Over, MAC: made.MAC, VLAN: made.VLAN, MTU: o.MTU})
}

// checkVNIC refuses what dladm would, before it is asked.
func checkVNIC(v *network.VNIC) error {
	if v.Over == "" {
		return &usageError{text: "vnic create: --over or --instance is missing", hint: "sledctl vnic create --over LINK"}
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
		return &usageError{text: fmt.Sprintf("--vlan %d: want a number from 1 to 4094", v.VLAN)}
	}
	if v.Hold <= 0 {
		return &usageError{text: fmt.Sprintf("--hold %s: want a duration above 0, as 1h", v.Hold)}
	}
	if v.MTU != 0 && (v.MTU < 68 || v.MTU > 65535) {
		return &usageError{text: fmt.Sprintf("--mtu %d: want a number from 68 to 65535", v.MTU)}
	}
	return nil
}

func printRunVNICs(_ context.Context, e *Env, r record.Record) error {
	var shown []shownVNIC
	for _, v := range append([]record.VNIC{r.Run.Control}, r.Run.Guests...) {
		shown = append(shown, shownVNIC{Name: v.Name, Over: v.Over, MAC: v.MAC, VLAN: v.VLAN})
	}
	return vnicList().Print(e.Streams.Out, e.output, shown)
}

func newVNICDelete(env *Env) *cobra.Command {
	var m mutation
	var mustExist bool
	cmd := &cobra.Command{
		Use: "delete NAME", Aliases: []string{"rm"}, Short: "Delete a VNIC that no instance needs",
		Example: `  sledctl vnic delete vnic_propolis7`,
		Args:    cobra.ExactArgs(1),
		RunE: env.run(func(ctx context.Context, args []string) error {
			return runVNICDelete(ctx, env, m, args[0], mustExist)
		}),
	}
	m.add(cmd, false)
	env.addOutput(cmd)
	cmd.Flags().BoolVar(&mustExist, "must-exist", false, "exit 4 if it does not exist")
	completeArgs(cmd, func(ctx context.Context) []string { return completeVNICs(ctx, env) })
	return cmd
}

func runVNICDelete(ctx context.Context, e *Env, m mutation, name string, mustExist bool) error {
	if err := vnic.ValidateName(name); err != nil {
		return err
	}
	c, env, err := e.operation()
	if err != nil {
		return err
	}
	inUse := func(view ledger.View, name string) error {
		user, used, err := record.UserOfVNIC(view, name)
		if used {
			return &refusedError{err: fmt.Errorf("VNIC %s belongs to instance %q", name, user.Name), hint: "sledctl instance delete " + user.Name}
		}
		return err
	}
	there, report, err := networkSettings(c).DeleteVNIC(ctx, env, name, inUse, m.dry())
	switch {
	case err != nil:
		return withReport(err, report)
	case m.dry():
		return e.printPlan(m, report)
	case !there && mustExist:
		return &notFoundError{what: "VNIC " + name}
	}
	return nil
}
