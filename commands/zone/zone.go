// Package zone is sledctl zone.
package zone

import (
	"cmp"
	"context"
	"slices"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/step"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/zone"
)

// New is the command zone.
func New(env *cli.Env) *cobra.Command {
	cmd := cli.Group("zone", "List zones, and build an instance's zone step by step", "")
	cmd.AddCommand(
		newList(env),
		step.New(env, instance.StageZone, &cobra.Command{
			Use:     "create --instance NAME",
			Short:   "Create an instance's zone",
			Example: `  zone=$(sledctl zone create --instance web1 --disk rpool/volumes/web1 -o name)`,
		}, printRunZone),
		step.New(env, instance.StageBoot, &cobra.Command{
			Use:     "boot --instance NAME",
			Short:   "Boot an instance's zone to single-user mode",
			Example: `  sledctl zone boot --instance web1`,
		}, printRunZone),
		step.New(env, instance.StageAddress, &cobra.Command{
			Use:     "address --instance NAME",
			Short:   "Give an instance's zone its control address",
			Example: `  address=$(sledctl zone address --instance web1 -o name)`,
		}, printRunAddress),
		newHalt(env), newDelete(env), newExec(env), newBundle(env),
	)
	return cmd
}

// shownZone is a zone as it is printed.
type shownZone struct {
	Name     string `json:"name"`
	State    string `json:"state"`
	Instance string `json:"instance"`
	Brand    string `json:"brand"`
	Zonepath string `json:"zonepath"`
	UUID     string `json:"uuid"`
}

func zoneList() terminal.List[shownZone] {
	type column = terminal.Column[shownZone]
	return terminal.List[shownZone]{Kind: "Zone", Name: func(z shownZone) string { return z.Name }, Columns: []column{
		{Name: "name", Value: func(z shownZone) string { return z.Name }},
		{Name: "state", Value: func(z shownZone) string { return z.State }},
		{Name: "instance", Value: func(z shownZone) string { return z.Instance }},
		{Name: "brand", Value: func(z shownZone) string { return z.Brand }},
		{Name: "zonepath", Value: func(z shownZone) string { return z.Zonepath }, Extra: true},
		{Name: "uuid", Value: func(z shownZone) string { return z.UUID }, Extra: true},
	}}
}

func newList(env *cli.Env) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "list [ZONE|INSTANCE ...]", Aliases: []string{"ls"}, Short: "List sledctl's zones",
		Example: `  sledctl zone list
  sledctl zone list web1
  sledctl zone list --all -H --columns name,state`,
		RunE: env.Run(func(ctx context.Context, words []string) error {
			if err := zoneList().Check(env.Output); err != nil {
				return err
			}
			shown, err := zonesNamed(ctx, env, all, words)
			if err != nil {
				return err
			}
			if err := zoneList().Print(env.Streams.Out, env.Output, cli.ByName(shown, func(z shownZone) string { return z.Name })); err != nil {
				return err
			}
			return env.StateFile(ctx)
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "list foreign ones too")
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, func(ctx context.Context) []string { return completeZones(ctx, env) })
	return cmd
}

// zonesNamed lists the zones that are named, by themselves or by their instances; without
// a name, all.
func zonesNamed(ctx context.Context, e *cli.Env, all bool, words []string) ([]shownZone, error) {
	shown, err := zonesShown(ctx, e, all)
	if err != nil || len(words) == 0 {
		return shown, err
	}
	var named []shownZone
	for _, word := range words {
		name, err := e.ZoneNamed(ctx, word)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(shown, func(z shownZone) bool { return z.Name == name })
		if at < 0 {
			return nil, e.NoZone(ctx, word, namesOf(shown))
		}
		named = append(named, shown[at])
	}
	return named, nil
}

func namesOf(shown []shownZone) []string {
	names := make([]string, len(shown))
	for i, z := range shown {
		names[i] = z.Name
	}
	return names
}

// zonesShown lists the zones with the instances that they are of, as their marks
// and the ledger tell.
func zonesShown(ctx context.Context, e *cli.Env, all bool) ([]shownZone, error) {
	c, h, err := e.Reach()
	if err != nil {
		return nil, err
	}
	inv := inventory.Look(ctx, h, inventory.Want{Parts: []inventory.Part{inventory.Zones, inventory.Configs, inventory.Pools}})
	zones, err := inv.Zones()
	if err != nil {
		return nil, err
	}
	var view ledger.View
	if book, err := e.Ledger(ctx); err == nil {
		view, _ = book.Read(ctx) // without a ledger the zones are listed without names
	}
	var shown []shownZone
	for _, z := range zones {
		owner := inv.Owner(cli.Prefixes(c), z)
		if !all && !owner.Ours() {
			continue
		}
		s := shownZone{Name: z.Name, State: string(z.State), Brand: z.Brand, Zonepath: z.Path, UUID: z.UUID}
		if owner.Role == naming.RoleInstance && owner.Instance != uuid.Nil { // a spare is named like an instance's
			s.Instance = owner.Instance.String()
			if r, known, err := record.Load(view, s.Instance); err == nil && known {
				s.Instance = r.Name
			}
		}
		shown = append(shown, s)
	}
	return shown, nil
}

func completeZones(ctx context.Context, e *cli.Env) []string {
	shown, err := zonesShown(ctx, e, false)
	if err != nil {
		return nil
	}
	return append(namesOf(shown), e.CompleteInstances(ctx)...)
}

// printRunZone prints the zone of an instance's run as it is.
func printRunZone(ctx context.Context, e *cli.Env, r record.Record) error {
	shown, err := zonesShown(ctx, e, false)
	if err != nil {
		return err
	}
	for _, z := range shown {
		if z.Name == r.Incarnation.Zone {
			return zoneList().PrintOne(e.Streams.Out, e.Output, z)
		}
	}
	return &cli.NotFoundError{What: "zone " + r.Incarnation.Zone, List: "sledctl zone list"}
}

// shownAddress is an instance's control address as it is printed.
type shownAddress struct {
	Address  string `json:"address"`
	Instance string `json:"instance"`
	Zone     string `json:"zone"`
	Gateway  string `json:"gateway"`
}

func printRunAddress(_ context.Context, e *cli.Env, r record.Record) error {
	a := shownAddress{Address: r.Spec.Address.Mode, Instance: r.Name, Zone: r.Incarnation.Zone}
	if r.Spec.Address.Mode == record.Static {
		a.Address = r.Spec.Address.Prefix.Addr().String()
	}
	if r.Spec.Address.Gateway.IsValid() {
		a.Gateway = r.Spec.Address.Gateway.String()
	}
	type column = terminal.Column[shownAddress]
	list := terminal.List[shownAddress]{Kind: "Address", Name: func(a shownAddress) string { return a.Address }, Columns: []column{
		{Name: "address", Value: func(a shownAddress) string { return a.Address }},
		{Name: "instance", Value: func(a shownAddress) string { return a.Instance }},
		{Name: "zone", Value: func(a shownAddress) string { return a.Zone }},
		{Name: "gateway", Value: func(a shownAddress) string { return a.Gateway }},
	}}
	return list.PrintOne(e.Streams.Out, e.Output, a)
}

func newHalt(env *cli.Env) *cobra.Command {
	var m cli.Mutation
	cmd := &cobra.Command{
		Use:   "halt ZONE|INSTANCE",
		Short: "Halt a sledctl zone without shutting it down",
		Long: `Halt a sledctl zone without shutting it down: its VM ends at once. The instance stays wanted; instance ensure rebuilds
it. Halting a halted zone does nothing.`,
		Example: `  sledctl zone halt web1
  sledctl zone halt propolis_instance_6f9619ff-8b86-d011-b42d-00c04fc964ff`,
		Args: cobra.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			return runRemoval(ctx, env, m, args[0], false, true)
		}),
	}
	m.Add(cmd, false)
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, func(ctx context.Context) []string { return completeZones(ctx, env) })
	return cmd
}

func newDelete(env *cli.Env) *cobra.Command {
	var m cli.Mutation
	var mustExist bool
	cmd := &cobra.Command{
		Use: "delete ZONE|INSTANCE", Aliases: []string{"rm"}, Short: "Delete a zone that no instance needs",
		Long: `Delete a zone that no instance needs, with its datasets. sledctl deletes only its own zones. For a zone that an instance needs,
use instance stop or instance delete.`,
		Example: `  sledctl zone delete propolis_instance_6f9619ff-8b86-d011-b42d-00c04fc964ff`,
		Args:    cobra.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			return runRemoval(ctx, env, m, args[0], true, mustExist)
		}),
	}
	m.Add(cmd, false)
	env.AddOutput(cmd)
	cmd.Flags().BoolVar(&mustExist, "must-exist", false, "exit 4 if it does not exist")
	cli.CompleteArgs(cmd, func(ctx context.Context) []string { return completeZones(ctx, env) })
	return cmd
}

func runRemoval(ctx context.Context, e *cli.Env, m cli.Mutation, name string, whole, mustExist bool) error {
	if err := zone.ValidateName(name); err != nil {
		return err
	}
	word := name
	name, err := e.ZoneNamed(ctx, word)
	if err != nil {
		return err
	}
	c, env, err := e.Operation()
	if err != nil {
		return err
	}
	there, report, err := cli.ReapSettings(c).Zone(ctx, env, name, whole, m.Dry())
	switch {
	case err != nil:
		return failure.WithReport(err, report)
	case !there && mustExist:
		return e.NoZone(ctx, word, nil)
	case m.Dry():
		return e.PrintPlan(m, report)
	}
	return nil
}

func newExec(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "exec ZONE|INSTANCE -- COMMAND [ARG ...]",
		Short: "Run a command in a sledctl zone",
		Long: `Run a command in a sledctl zone that is running, without a terminal, and exit with the command's exit code. Each word
reaches the command as it is: sledctl quotes it for the zone's shell.`,
		Example: `  sledctl zone exec web1 -- svcs -x`,
		Args:    cobra.MinimumNArgs(2),
		RunE:    env.Run(func(ctx context.Context, args []string) error { return runExec(ctx, env, args[0], args[1:]) }),
	}
	cmd.Flags().SetInterspersed(false)
	cli.CompleteArgs(cmd, func(ctx context.Context) []string { return completeZones(ctx, env) })
	return cmd
}

func runExec(ctx context.Context, e *cli.Env, name string, argv []string) error {
	if argv[0] == "--" {
		argv = argv[1:]
	}
	shown, err := zonesShown(ctx, e, false)
	if err != nil {
		return err
	}
	word := name
	if name, err = e.ZoneNamed(ctx, word); err != nil {
		return err
	}
	if !slices.Contains(namesOf(shown), name) || len(argv) == 0 {
		return cmp.Or(e.StateFile(ctx), e.NoZone(ctx, word, namesOf(shown)))
	}
	h, err := e.Host()
	if err != nil {
		return err
	}
	result, err := h.Run(ctx, host.Command{Program: argv[0], Args: argv[1:], Zone: name})
	if err != nil {
		return err
	}
	if result.Unknown {
		return &host.CommandError{Command: host.Command{Program: argv[0], Zone: name}, Result: result}
	}
	if _, err := e.Streams.Out.Write(result.Stdout); err != nil {
		return err
	}
	if _, err := e.Streams.Err.Write(result.Stderr); err != nil {
		return err
	}
	if result.Exit != 0 {
		return cli.ExitStatus(result.Exit)
	}
	return nil
}
