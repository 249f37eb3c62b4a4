// Package sim is sledctl sim.
package sim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sled/failure"
)

// New is the command sim.
func New(env *cli.Env) *cobra.Command {
	cmd := cli.Group("sim", "Run and disturb a simulated sled", `
The simulated sled answers illumos' commands as a real sled does. It is kept in a directory, which --host sim:DIR names; without, sledctl
creates one on first use. sledctl appends what its Propolis servers are asked and answer to the file that SLEDCTL_SIM_EXCHANGES names, one
JSON object per line.`)
	cmd.AddCommand(newInit(env), newImport(env), newDrill(env), newShow(env), newShell(env), newReboot(env), newDisk(env), newFault(env), newConnect(env), newNAPI(env), newNexus(env), newWeb(env))
	return cmd
}

// simulatedSled is the sled that --host names, which must be a simulated one,
// or the one whose shell we are in.
func simulatedSled(e *cli.Env) (*sim.Sled, string, error) {
	dir, ok := e.SimDir()
	if ok {
		_, err := e.Host()
		return e.Sled, dir, err
	}
	dir = cli.Variable(e.Environ, sim.DirVariable)
	if dir == "" {
		return nil, "", &cli.UsageError{Text: "--host " + e.HostName() + " is not a simulated sled", Advice: "give --host sim or --host sim:DIR"}
	}
	sled, err := sim.Open(dir)
	if err != nil {
		return nil, "", &failure.RefusedError{Err: err, Advice: "run it in a sledctl sim shell, which sets " + sim.DirVariable}
	}
	e.Sled = sled
	return sled, dir, nil
}

// initSim makes a simulated sled with a configuration.
func initSim(dir string, o sim.Options) (*sim.Sled, error) { return createSim(dir, cli.Configured(o)) }

// createSim makes a simulated sled.
func createSim(dir string, o sim.Options) (*sim.Sled, error) {
	sled, err := sim.Init(dir, o)
	if errors.Is(err, fs.ErrExist) {
		return nil, &cli.ExistsError{What: "a simulated sled in " + dir, Advice: "to remove it, run: rm -r " + host.Quote(dir)}
	}
	return sled, err
}

func newInit(env *cli.Env) *cobra.Command {
	var o sim.Options
	mode, size := string(world.OmniOS), 0
	var cmd *cobra.Command
	cmd = &cobra.Command{
		Use:   "init",
		Short: "Create a new simulated sled",
		Example: `  sledctl --host sim:/tmp/sled sim init --latency helios2021
  sledctl --host sim:/tmp/sled bootstrap
  sledctl --host sim:/tmp/large sim init --size 100`,
		Args: cobra.NoArgs,
		RunE: env.Run(func(ctx context.Context, _ []string) error {
			dir, ok := env.SimDir()
			if !ok {
				return &cli.UsageError{Text: "--host " + env.HostName() + " is not a simulated sled", Advice: "give --host sim:DIR"}
			}
			o.Mode = world.Mode(mode)
			if o.Mode == world.SmartOS { // its one pool is there without them
				for flag, n := range map[string]*int{"m2": &o.M2, "u2": &o.U2} {
					if !cmd.Flags().Changed(flag) {
						*n = 0
					}
				}
			}
			for flag, n := range map[string]*int{"m2": &o.M2, "u2": &o.U2, "links": &o.Links} {
				switch {
				case *n < 0:
					return &cli.UsageError{Text: fmt.Sprintf("--%s %d: want a number from 0", flag, *n)}
				case *n == 0:
					*n = -1 // in Options, 0 is the usual number
				}
			}
			if o.Processors == 0 {
				return &cli.UsageError{Text: "--processors 0: want a number from 1"}
			}
			if err := o.Check(); err != nil {
				return &cli.UsageError{Text: err.Error()}
			}
			if err := checkSize(size, o); err != nil {
				return err
			}
			return runInit(ctx, env, dir, o, size)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&mode, "mode", mode, "distribution: omnios, helios or smartos")
	flags.StringVar(&o.Latency, "latency", "none", "time that commands take: none, helios2021 or helios")
	flags.IntVar(&o.M2, "m2", 2, "M.2 disks; --mode smartos has none unless told")
	flags.IntVar(&o.U2, "u2", 4, "U.2 disks; --mode smartos has none unless told")
	flags.IntVar(&o.Links, "links", 2, "physical links")
	flags.BoolVar(&o.Ramdisk, "ramdisk", false, "root on a RAM disk, which a reboot empties, as on helios")
	flags.BoolVar(&o.Installed, "installed", false, "with --mode helios: root on a pool, which a reboot keeps")
	flags.StringVar(&o.Build, "server-build", "development", "build of propolis-server: development or omicron-build")
	flags.IntVar(&o.Processors, "processors", 128, "processors, all on-line")
	flags.BoolVar(&o.Methods, "smf-programs", false, "run SMF methods of the global zone as programs")
	flags.BoolVar(&o.Blank, "blank", false, "disks without pools")
	flags.Uint64Var(&o.Seed, "seed", 1, "seed of the sled's random numbers")
	flags.IntVar(&size, "size", 0, "VMs that run: prepares the sled, then creates vm1, vm2, …")
	env.Complete(cmd, "mode", func() []string { return []string{string(world.OmniOS), string(world.Helios), string(world.SmartOS)} })
	env.Complete(cmd, "server-build", func() []string { return []string{"development", "omicron-build"} })
	env.Complete(cmd, "latency", func() []string { return []string{"none", "helios2021", "helios"} })
	return cmd
}

func runInit(ctx context.Context, e *cli.Env, dir string, o sim.Options, size int) error {
	quick := o
	if size > 0 {
		quick.Latency = "none" // until all are up
	}
	sled, err := initSim(dir, quick)
	if err != nil {
		return err
	}
	sled.Close()
	if size > 0 {
		if err := populate(ctx, e, size, o); err != nil {
			return err
		}
		e.Progress.Say("a simulated sled with %d running VMs is in %s", size, dir)
		return nil
	}
	e.Progress.Say("a fresh simulated sled is in %s", dir)
	return nil
}

func newShow(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show all objects of the simulated sled",
		Long: `Show all objects of the simulated sled: zones, links, disks, pools, datasets, addresses, services. With -o json, sledctl leaves out
counters, times and random ids: two sleds with the same objects print the same bytes.`,
		Example: `  sledctl sim show
  sledctl sim show -o json > before`,
		Args: cobra.NoArgs,
		RunE: env.Run(func(ctx context.Context, _ []string) error { return runShow(ctx, env) }),
	}
	env.AddOutput(cmd)
	return cmd
}

// shownThing is one thing on the simulated sled.
type shownThing struct{ kind, name, state, detail string }

func runShow(ctx context.Context, e *cli.Env) error {
	sled, _, err := simulatedSled(e)
	if err != nil {
		return err
	}
	if e.Output.Format == terminal.FormatJSON {
		data, err := sim.Comparable(ctx, sled.World())
		if err != nil {
			return err
		}
		_, err = e.Streams.Out.Write(append(data, '\n'))
		return err
	}
	s, err := sled.Snapshot(ctx)
	if err != nil {
		return err
	}
	type column = terminal.Column[shownThing]
	list := terminal.List[shownThing]{Kind: "Thing", Name: func(t shownThing) string { return t.name }, Columns: []column{
		{Name: "kind", Value: func(t shownThing) string { return t.kind }},
		{Name: "name", Value: func(t shownThing) string { return t.name }},
		{Name: "state", Value: func(t shownThing) string { return t.state }},
		{Name: "detail", Value: func(t shownThing) string { return t.detail }},
	}}
	return list.Print(e.Streams.Out, e.Output, things(s))
}

func things(s *sim.Snapshot) []shownThing {
	var all []shownThing
	for _, z := range s.Zones {
		all = append(all, shownThing{"zone", z.Name, z.State, z.Config.Brand})
	}
	for _, l := range s.Links {
		detail := l.MAC
		if l.Over != "" {
			detail += " over " + l.Over
		}
		all = append(all, shownThing{"link", l.Name, l.Class, strings.TrimSpace(detail + " " + cli.Prefixed("in zone ", l.Zone))})
	}
	for _, d := range s.Disks {
		all = append(all, shownThing{"disk", d.Name, d.State, strings.TrimSpace(d.Kind + " " + d.Serial + " " + cli.Prefixed("with ", d.Pool))})
	}
	for _, p := range s.Pools {
		all = append(all, shownThing{"pool", p.Name, p.Health, strings.Join(p.Vdevs, " ")})
	}
	for _, d := range s.Datasets {
		all = append(all, shownThing{"dataset", d.Name, d.Type, strings.TrimSpace(d.Mounted + " " + cli.Prefixed("from ", d.Origin))})
	}
	for _, z := range s.Stacks {
		for _, a := range z.Addresses {
			all = append(all, shownThing{"address", a.Object, a.State, a.Address + " in " + z.Zone})
		}
	}
	for _, v := range s.Services {
		all = append(all, shownThing{"service", v.FMRI, v.State, "in " + v.Zone})
	}
	for _, p := range s.Servers {
		all = append(all, shownThing{"server", p.Listen, p.VM, "in " + p.Zone})
	}
	return all
}

func newReboot(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "reboot",
		Short: "Power-cycle the simulated sled",
		Long: `Power-cycle the simulated sled. What was not persistent is lost: processes, what was created with -t, the keys of encrypted
datasets, /var/run. The root of a sled made with --mode helios is a RAM disk: only the configuration survives, and pools stay exported
until they are imported.`,
		Example: `  sledctl sim reboot`,
		Args:    cobra.NoArgs,
		RunE: env.Run(func(ctx context.Context, _ []string) error {
			sled, _, err := simulatedSled(env)
			if err != nil {
				return err
			}
			return sled.Reboot(ctx)
		}),
	}
}
