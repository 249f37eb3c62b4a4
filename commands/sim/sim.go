// Package sim is sledctl sim.
package sim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
	"github.com/sledctl/sledctl/sled/failure"
)

// New is the command sim.
func New(env *cli.Env) *cobra.Command {
	cmd := cli.Group("sim", "Run and disturb a simulated sled", `
The simulated sled answers illumos' commands as a real sled does. It is kept in a directory, which --host sim:DIR names; without, sledctl
creates one on first use. sledctl appends what its Propolis servers are asked and answer to the file that SLEDCTL_SIM_EXCHANGES names, one
JSON object per line.`)
	cmd.AddCommand(newInit(env), newShow(env), newShell(env), newReboot(env), newDisk(env), newFault(env), newConnect(env), newNAPI(env), newNexus(env))
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
		return nil, "", &cli.UsageError{Text: "--host " + e.HostName() + " is not a simulated sled", Advice: "--host sim or --host sim:DIR"}
	}
	sled, err := sim.Open(dir)
	if err != nil {
		return nil, "", &failure.RefusedError{Err: err, Advice: sim.DirVariable + " names the sled of a sledctl sim shell"}
	}
	e.Sled = sled
	return sled, dir, nil
}

// initSim makes a simulated sled with a configuration.
func initSim(dir string, o sim.Options) (*sim.Sled, error) {
	sled, err := sim.Init(dir, cli.Configured(o))
	if errors.Is(err, fs.ErrExist) {
		return nil, &cli.ExistsError{What: "a simulated sled in " + dir, Advice: "rm -r " + host.Quote(dir) + " removes it"}
	}
	return sled, err
}

func newInit(env *cli.Env) *cobra.Command {
	var o sim.Options
	mode := string(world.OmniOS)
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Create a new simulated sled",
		Example: `  sledctl --host sim:/tmp/sled sim init --latency helios2021
  sledctl --host sim:/tmp/sled bootstrap`,
		Args: cobra.NoArgs,
		RunE: env.Run(func(context.Context, []string) error {
			dir, ok := env.SimDir()
			if !ok {
				return &cli.UsageError{Text: "--host " + env.HostName() + " is not a simulated sled", Advice: "--host sim:DIR"}
			}
			o.Mode = world.Mode(mode)
			for flag, n := range map[string]*int{"m2": &o.M2, "u2": &o.U2, "links": &o.Links} {
				switch {
				case *n < 0:
					return &cli.UsageError{Text: fmt.Sprintf("--%s %d: want a number from 0", flag, *n)}
				case *n == 0:
					*n = -1 // in Options, 0 is the usual number
				}
			}
			if err := o.Check(); err != nil {
				return &cli.UsageError{Text: err.Error()}
			}
			sled, err := initSim(dir, o)
			if err != nil {
				return err
			}
			sled.Close()
			env.Progress.Say("a fresh simulated sled is in %s", dir)
			return nil
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&mode, "mode", mode, "distribution: omnios, helios or smartos")
	flags.StringVar(&o.Latency, "latency", "none", "time that commands take: none, helios2021 or helios")
	flags.IntVar(&o.M2, "m2", 2, "M.2 disks")
	flags.IntVar(&o.U2, "u2", 4, "U.2 disks")
	flags.IntVar(&o.Links, "links", 2, "physical links")
	flags.BoolVar(&o.Ramdisk, "ramdisk", false, "root on a RAM disk, which a reboot empties, as on helios")
	flags.BoolVar(&o.Installed, "installed", false, "with --mode helios: root on a pool, which a reboot keeps")
	flags.StringVar(&o.Build, "server-build", "development", "build of propolis-server: development or omicron-build")
	flags.BoolVar(&o.Blank, "blank", false, "disks without pools")
	flags.Uint64Var(&o.Seed, "seed", 1, "seed of the sled's random numbers")
	env.Complete(cmd, "mode", func() []string { return []string{string(world.OmniOS), string(world.Helios), string(world.SmartOS)} })
	env.Complete(cmd, "latency", func() []string { return []string{"none", "helios2021", "helios"} })
	return cmd
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

func newFault(env *cli.Env) *cobra.Command {
	cmd := cli.Group("fault", "Arm, list and clear faults of the simulated sled", "")
	cmd.AddCommand(newFaultAdd(env), newFaultList(env), newFaultClear(env))
	return cmd
}

func newFaultAdd(env *cli.Env) *cobra.Command {
	var f world.Fault
	cmd := &cobra.Command{
		Use:   "add NAME --match WORDS",
		Short: "Arm a fault of the simulated sled",
		Long: `Arm a fault of the simulated sled. Most faults hit the next command that contains the words in --match in their order; a word may be a
pattern, e.g. propolis_*. Faults of services match the zone and the service.

Faults of a command:

    fail             ends with --exit and --stderr, and does nothing
    busy             fails as if the object were in use
    half             does its first part, then fails as with fail
    hang             stops until the fault is cleared, or for --delay
    missed           misses the event that it waits for
    killed           is killed halfway: an installation leaves its zone incomplete; a clone with --stderr mounted dies while its hook works
    kill             its caller is killed before the command does anything
    kill-during      its caller is killed, and the command continues
    kill-after       its caller is killed when the command has ended
    lose-disk        the disk named by --stderr is missing from then on
    fail-disk        the disk named by --stderr has I/O errors from then on

Faults of zones:

    hook             the brand's hook fails with --exit: 253, 254 or 255
    slow-clone       the clone's hook works --delay longer in the mounted zone
    boot             the zone gets ready, and then does not boot
    down             a halt stops halfway, and leaves the zone down
    shutdown-timeout the zone does not shut down by itself
    list-race        a listing loses the zone named by --stderr

Faults of links and addresses:

    mtu-ignored      the mtu of create-vnic is not applied
    slow-dad         an address stays tentative for --delay
    no-lease         no DHCP server answers
    slow-link        show-linkprop holds a link --delay longer (--match "show-linkprop LINK")

Faults of services (--match "ZONE FMRI"):

    maintenance      its start method fails for good
    slow-door        the zone's repository answers --delay later
    slow-milestone   the zone's services start --delay later
    slow-method      the service is in transition for --delay longer

Faults of Propolis (--match "propolis ZONE METHOD PATH…", the path in words, e.g. "propolis PUT instance state"):

    fail             the request fails with 500; --stderr is the reason in the service's log
    crash            the request crashes the server, and its VM with it
    drop             the connection breaks, also an open console
    slow-create      creating the VM takes --delay longer
    slow-stop        stopping the VM takes --delay longer (--match "propolis stop")

Faults of a migration, on either side (--match "propolis ZONE migrate STAGE", e.g. RamPush, Pause, Device, Finish):

    slow-migrate     the stage takes --delay longer
    fail, drop       the migration fails in the stage

Faults of NAPI (--match "napi METHOD PATH", the path without its query; see sim napi):

    napi-down        closes the connection without an answer
    napi-restart     the same, while it starts for --delay; then it has the era --stderr
    napi-era         has the era --stderr from then on
    napi-fail        answers with the status --exit and the message --stderr
    napi-empty       answers 200, with nothing
    napi-html        answers 200, with a proxy's page
    napi-truncated   leaves out the second half of the answer
    napi-object      answers with an object instead of a list
    napi-foreign     also lists a record of another sled
    napi-twice       lists one record twice
    napi-ownerless   lists a record without an owner
    napi-touch       another client changes the record after it is read
    napi-race        another client changes the record between check and write

Faults of the control plane (--match "nexus METHOD PATH", e.g. "nexus POST /vmms/*/doorbell"; see sim nexus):

    nexus-down       closes the connection without an answer
    nexus-fail       answers with the status --exit and the message --stderr
    nexus-html       another program answers: 200, with a page
    nexus-talk       the answer is not HTTP
    nexus-slow       answers --delay later
    nexus-lost       answers as if it had accepted, and does nothing`,
		Example: `  sledctl sim fault add fail --match "zoneadm clone" --times 1 --stderr "cannot create" --exit 1
  sledctl sim fault add busy --match "dladm delete-vnic" --times 3
  sledctl sim fault add lose-disk --match "zfs create" --stderr c11t0d0
  sledctl sim fault add crash --match "propolis PUT instance state"`,
		Args: cobra.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			f.Name = args[0]
			return runFaultAdd(ctx, env, f)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.Match, "match", "", "commands to hit: words of the command line, in order")
	flags.IntVar(&f.Times, "times", 1, "number of times (0: always)")
	flags.IntVar(&f.Skip, "skip", 0, "number of matches to let pass first")
	flags.StringVar(&f.Text, "stderr", "", "text that the command prints; or the disk, or the zone")
	flags.IntVar(&f.Exit, "exit", 1, "exit code of the command")
	flags.DurationVar(&f.Delay, "delay", 0, "time that the command takes in addition")
	cli.CompleteArgs(cmd, func(context.Context) []string { return world.FaultNames() })
	return cmd
}

func runFaultAdd(ctx context.Context, e *cli.Env, f world.Fault) error {
	known := world.FaultNames()
	found := false
	for _, name := range known {
		found = found || name == f.Name
	}
	if !found {
		hint := "one of " + cli.OrWords(known)
		if near := terminal.Nearest(f.Name, known); near != "" {
			hint = "did you mean: " + near
		}
		return &cli.UsageError{Text: fmt.Sprintf("unknown fault %q", f.Name), Advice: hint}
	}
	if world.Delays(f.Name) && f.Delay <= 0 {
		return &cli.UsageError{Text: "--delay is missing: how much longer it takes", Advice: "--delay 10s"}
	}
	if f.Match == "" {
		return &cli.UsageError{Text: "--match is missing", Advice: `--match "zoneadm clone"`}
	}
	sled, _, err := simulatedSled(e)
	if err != nil {
		return err
	}
	return sled.World().Update(ctx, func(tx *world.Tx) error {
		if (f.Name == world.FaultLoseDisk || f.Name == world.FaultFailDisk) && zfs.FindDisk(tx, f.Text) == nil {
			return unknownDisk(tx, f.Text)
		}
		tx.Arm(f)
		return nil
	})
}

func newFaultList(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List the armed faults", Example: `  sledctl sim fault list`, Args: cobra.NoArgs,
		RunE: env.Run(func(ctx context.Context, _ []string) error { return runFaultList(ctx, env) }),
	}
	env.AddOutput(cmd)
	return cmd
}

func runFaultList(ctx context.Context, e *cli.Env) error {
	sled, _, err := simulatedSled(e)
	if err != nil {
		return err
	}
	var faults []world.Fault
	err = sled.World().View(ctx, func(tx *world.Tx) error {
		for _, f := range tx.State.Faults {
			faults = append(faults, *f)
		}
		return nil
	})
	if err != nil {
		return err
	}
	type column = terminal.Column[world.Fault]
	list := terminal.List[world.Fault]{Kind: "Fault", Name: func(f world.Fault) string { return f.Name }, Columns: []column{
		{Name: "name", Value: func(f world.Fault) string { return f.Name }},
		{Name: "match", Value: func(f world.Fault) string { return f.Match }},
		{Name: "times", Value: func(f world.Fault) string { return strconv.Itoa(f.Times) }, Right: true},
		{Name: "skip", Value: func(f world.Fault) string { return strconv.Itoa(f.Skip) }, Right: true},
		{Name: "delay", Value: func(f world.Fault) string { return f.Delay.Round(time.Millisecond).String() }, Right: true},
		{Name: "stderr", Value: func(f world.Fault) string { return f.Text }},
	}}
	return list.Print(e.Streams.Out, e.Output, faults)
}

func newFaultClear(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "clear", Short: "Disarm all faults", Example: `  sledctl sim fault clear`, Args: cobra.NoArgs,
		RunE: env.Run(func(ctx context.Context, _ []string) error {
			sled, _, err := simulatedSled(env)
			if err != nil {
				return err
			}
			return sled.World().Update(ctx, func(tx *world.Tx) error { tx.State.Faults = nil; return nil })
		}),
	}
}
