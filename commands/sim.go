package commands

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

func newSim(env *Env) *cobra.Command {
	cmd := group("sim", "The simulated sled: a machine to try everything on", `
The simulated sled answers illumos' commands as the real ones do, in a directory of its own. --host sim:DIR says which;
without, it is made on first use. What its Propolis servers are asked and answer is appended to the file that SLEDCTL_SIM_EXCHANGES names, one JSON object
per line.`)
	cmd.AddCommand(newSimInit(env), newSimShow(env), newSimShell(env), newSimReboot(env), newSimDisk(env), newSimFault(env), newSimConnect(env), newSimNAPI(env), newSimNexus(env))
	return cmd
}

// simulatedSled is the sled that --host names, which must be a simulated one,
// or the one whose shell we are in.
func (e *Env) simulatedSled() (*sim.Sled, string, error) {
	dir, ok := e.simDir()
	if ok {
		_, err := e.Host()
		return e.sled, dir, err
	}
	dir = variable(e.environ, sim.DirVariable)
	if dir == "" {
		return nil, "", &usageError{text: "--host " + e.hostName() + " is not a simulated sled", hint: "--host sim or --host sim:DIR"}
	}
	sled, err := sim.Open(dir)
	if err != nil {
		return nil, "", &refusedError{err: err, hint: sim.DirVariable + " names the sled of a sledctl sim shell"}
	}
	e.sled = sled
	return sled, dir, nil
}

// simConfig is the configuration that a fresh simulated sled of a mode is given,
// as an operator would write it: an etherstub, an underlay on it, and the disks.
func simConfig(mode world.Mode) string {
	underlay := loopbackUnderlay
	if mode == world.Helios {
		underlay = rackUnderlay
	}
	return "# The configuration of this simulated sled.\n\n[network]\n" + simLinks + underlay + simStorage
}

const (
	simLinks = `etherstub = "propolis_stub0"   # control VNICs lie over it
gz_vnic = "propolis_gz0"       # the global zone's own
guest_link = "net0"
`
	simStorage = `
[storage]
slots = "gimlet"               # its disks are in an Oxide sled's slots, whatever system runs on it
key = "development"            # no secret at all: for a sled whose disks hold nothing

[nics]
url = "http://127.77.255.1:8081" # sledctl sim napi init puts a NAPI there
cn_uuid = "564d2cec-64ee-4aca-9e27-d71c02af3b6a"
`
)

// An underlay is one of loopback addresses: what runs in the shell of sim shell
// listens on them really, and nothing that is sent to one can leave the machine.
// Zones that are installed from images take none but IPv6.
const (
	loopbackUnderlay = `gz_address = "127.77.0.1/16"
underlay = "127.77.0.0/16"     # control addresses are taken from here; in sim shell they are real
`
	rackUnderlay = `gz_address = "fd00:1122:3344:101::1/64"
underlay = "fd00:1122:3344:101::/64"    # control addresses are taken from here
gateway = "fd00:1122:3344:101::1"       # the zone image's own service wants one
`
)

// ensureSim opens the simulated sled in a directory, and makes one, with a
// configuration, in a directory that is empty or absent.
func ensureSim(dir string) (*sim.Sled, error) {
	return sim.Ensure(dir, configured(sim.Options{Seed: 1}))
}

// initSim makes a simulated sled with a configuration.
func initSim(dir string, o sim.Options) (*sim.Sled, error) {
	sled, err := sim.Init(dir, configured(o))
	if errors.Is(err, fs.ErrExist) {
		return nil, &existsError{what: "a simulated sled in " + dir, hint: "rm -r " + host.Quote(dir) + " removes it"}
	}
	return sled, err
}

// configured has the sled begin with a configuration: whoever builds a RAM
// disk's image puts it there.
func configured(o sim.Options) sim.Options {
	o.Files = map[string]string{configFile: simConfig(o.Mode)}
	return o
}

func newSimInit(env *Env) *cobra.Command {
	var o sim.Options
	mode := string(world.OmniOS)
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Make a fresh simulated sled",
		Example: `  sledctl --host sim:/tmp/sled sim init --latency helios2021
  sledctl --host sim:/tmp/sled bootstrap`,
		Args: cobra.NoArgs,
		RunE: env.run(func(context.Context, []string) error {
			dir, ok := env.simDir()
			if !ok {
				return &usageError{text: "--host " + env.hostName() + " is not a simulated sled", hint: "--host sim:DIR"}
			}
			o.Mode = world.Mode(mode)
			for flag, n := range map[string]*int{"m2": &o.M2, "u2": &o.U2, "links": &o.Links} {
				switch {
				case *n < 0:
					return &usageError{text: fmt.Sprintf("--%s %d: want a number from 0", flag, *n)}
				case *n == 0:
					*n = -1 // in Options, 0 is the usual number
				}
			}
			if err := o.Check(); err != nil {
				return &usageError{text: err.Error()}
			}
			sled, err := initSim(dir, o)
			if err != nil {
				return err
			}
			sled.Close()
			env.progress.say("a fresh simulated sled is in %s", dir)
			return nil
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&mode, "mode", mode, "distribution: omnios, helios or smartos")
	flags.StringVar(&o.Latency, "latency", "none", "how long commands take: none, helios2021 or helios")
	flags.IntVar(&o.M2, "m2", 2, "M.2 disks")
	flags.IntVar(&o.U2, "u2", 4, "U.2 disks")
	flags.IntVar(&o.Links, "links", 2, "physical links")
	flags.BoolVar(&o.Ramdisk, "ramdisk", false, "the root lies on a RAM disk, which a reboot makes anew, as on helios")
	flags.StringVar(&o.Build, "server-build", "development", "build of propolis-server: development or omicron-build")
	flags.BoolVar(&o.Installed, "installed", false, "with --mode helios: the root lies on a pool, which a reboot leaves as it is, as on a workstation")
	flags.BoolVar(&o.Blank, "blank", false, "disks without pools")
	flags.Uint64Var(&o.Seed, "seed", 1, "of every number that the sled draws")
	env.complete(cmd, "mode", func() []string { return []string{string(world.OmniOS), string(world.Helios), string(world.SmartOS)} })
	env.complete(cmd, "latency", func() []string { return []string{"none", "helios2021", "helios"} })
	return cmd
}

func newSimShow(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show the simulated sled: zones, links, disks, datasets, addresses, services",
		Long: `Show the simulated sled: zones, links, disks, pools, datasets, addresses, services. With -o json, counters, times and what is drawn anew
for each thing are left out: two sleds on which the same things are print the same bytes.`,
		Example: `  sledctl sim show
  sledctl sim show -o json > before`,
		Args: cobra.NoArgs,
		RunE: env.run(func(ctx context.Context, _ []string) error { return runSimShow(ctx, env) }),
	}
	env.addOutput(cmd)
	return cmd
}

// shownThing is one thing on the simulated sled.
type shownThing struct{ kind, name, state, detail string }

func runSimShow(ctx context.Context, e *Env) error {
	sled, _, err := e.simulatedSled()
	if err != nil {
		return err
	}
	if e.output.Format == terminal.FormatJSON {
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
	return list.Print(e.Streams.Out, e.output, things(s))
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
		all = append(all, shownThing{"link", l.Name, l.Class, strings.TrimSpace(detail + " " + prefixed("in zone ", l.Zone))})
	}
	for _, d := range s.Disks {
		all = append(all, shownThing{"disk", d.Name, d.State, strings.TrimSpace(d.Kind + " " + d.Serial + " " + prefixed("with ", d.Pool))})
	}
	for _, p := range s.Pools {
		all = append(all, shownThing{"pool", p.Name, p.Health, strings.Join(p.Vdevs, " ")})
	}
	for _, d := range s.Datasets {
		all = append(all, shownThing{"dataset", d.Name, d.Type, strings.TrimSpace(d.Mounted + " " + prefixed("from ", d.Origin))})
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

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

func newSimReboot(env *Env) *cobra.Command {
	return &cobra.Command{
		Use:   "reboot",
		Short: "Power-cycle the simulated sled: what was not persistent is gone",
		Long: `Power-cycle the simulated sled. What was not persistent is gone: processes, what was made with -t, the keys of encrypted datasets,
/var/run. The root of a sled made with --mode helios is a RAM disk: of it nothing is left but its configuration, and pools are not imported until somebody does.`,
		Example: `  sledctl sim reboot`,
		Args:    cobra.NoArgs,
		RunE: env.run(func(ctx context.Context, _ []string) error {
			sled, _, err := env.simulatedSled()
			if err != nil {
				return err
			}
			return sled.Reboot(ctx)
		}),
	}
}

func newSimFault(env *Env) *cobra.Command {
	cmd := group("fault", "Disturbances of the simulated sled: arm, list, clear", "")
	cmd.AddCommand(newSimFaultAdd(env), newSimFaultList(env), newSimFaultClear(env))
	return cmd
}

func newSimFaultAdd(env *Env) *cobra.Command {
	var f world.Fault
	cmd := &cobra.Command{
		Use:   "add NAME --match WORDS",
		Short: "Arm a fault, so that something goes wrong the next time",
		Long: `Arm a fault. Most hit the next command whose words are those of --match, in their order, others between them or not; a word may be a
pattern, as propolis_*. Those of services match the zone and the service.

What befalls a command:

    fail             ends with --exit and --stderr, and does nothing
    busy             ends with the words of a thing in use
    half             does its first part, then ends as fail
    hang             does not go on until the fault is cleared, or for --delay
    missed           does not notice what it waits for
    killed           is killed half-way, as an installation that leaves its zone incomplete; a clone with --stderr mounted
                     while its hook works in the mounted zone (see slow-clone)
    kill             its caller is killed before it does anything
    kill-during      its caller is killed, and it goes on
    kill-after       its caller is killed when it has ended
    lose-disk        the disk named by --stderr is gone from then on
    fail-disk        the disk named by --stderr has I/O errors from then on

What befalls zones:

    hook             the brand's hook fails with --exit: 253, 254 or 255
    slow-clone       the clone's hook works --delay longer in the zone that it has mounted
    boot             the zone gets ready, and then does not boot
    down             a halt stops half-way, and leaves the zone down
    shutdown-timeout the zone does not shut down by itself
    list-race        a listing loses the zone named by --stderr

What befalls links and addresses:

    mtu-ignored      the mtu of create-vnic is not applied
    slow-dad         an address stays tentative for --delay
    no-lease         no DHCP server answers
    slow-link        show-linkprop looks at a link, and holds it, --delay longer (--match "show-linkprop LINK")

What befalls services (--match "ZONE FMRI"):

    maintenance      its start method fails for good
    slow-door        the zone's repository answers --delay later
    slow-milestone   the zone's services start --delay later
    slow-method      the service is in transition for --delay longer

What befalls Propolis (--match "propolis ZONE METHOD PATH…", the path in words, as "propolis PUT instance state"):

    fail             the request fails inside (500): --stderr is why, in the service's log
    crash            the server dies of the request, and its machine with it
    drop             the connection is broken off; that of a console while it is open, too
    slow-create      making the machine takes --delay longer
    slow-stop        stopping it takes --delay longer (--match "propolis stop")

What befalls a migration, on either side (--match "propolis ZONE migrate STAGE", as RamPush, Pause, Device, Finish):

    slow-migrate     the stage takes --delay longer
    fail, drop       the migration fails in it

What befalls NAPI (--match "napi METHOD PATH", the path without its query; see sim napi):

    napi-down        breaks the connection off without an answer
    napi-restart     the same; it is starting for --delay, and of the era --stderr then, if that is set
    napi-era         is of the era --stderr from then on
    napi-fail        answers with the status --exit and the message --stderr
    napi-empty       answers 200, with nothing
    napi-html        answers 200, with a proxy's page
    napi-truncated   leaves out the second half of the answer
    napi-object      answers with an object instead of a list
    napi-foreign     lists a record of another sled, too
    napi-twice       lists one record twice
    napi-ownerless   lists a record of nobody
    napi-touch       somebody changes the record once it was read
    napi-race        somebody changes the record between the check of a write and the write

What befalls the control plane (--match "nexus METHOD PATH", as "nexus POST /vmms/*/doorbell"; see sim nexus):

    nexus-down       breaks the connection off without an answer
    nexus-fail       answers with the status --exit and the message --stderr
    nexus-html       something else answers: 200, with a page
    nexus-talk       what answers is not HTTP
    nexus-slow       answers --delay later
    nexus-lost       answers as if it had heard, and does nothing`,
		Example: `  sledctl sim fault add fail --match "zoneadm clone" --times 1 --stderr "cannot create" --exit 1
  sledctl sim fault add busy --match "dladm delete-vnic" --times 3
  sledctl sim fault add killed --match "zoneadm install"
  sledctl sim fault add lose-disk --match "zfs create" --stderr c11t0d0
  sledctl sim fault add slow-milestone --match "*" --delay 30s
  sledctl sim fault add crash --match "propolis PUT instance state"
  sledctl sim fault add napi-foreign --match "GET /nics"`,
		Args: cobra.ExactArgs(1),
		RunE: env.run(func(ctx context.Context, args []string) error {
			f.Name = args[0]
			return runSimFaultAdd(ctx, env, f)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.Match, "match", "", "which commands: words of the command line, in order")
	flags.IntVar(&f.Times, "times", 1, "how often; 0 is always")
	flags.IntVar(&f.Skip, "skip", 0, "matches to let pass first")
	flags.StringVar(&f.Text, "stderr", "", "what the command says; or the disk, or the zone")
	flags.IntVar(&f.Exit, "exit", 1, "its exit code")
	flags.DurationVar(&f.Delay, "delay", 0, "how long it takes more")
	completeArgs(cmd, func(context.Context) []string { return world.FaultNames() })
	return cmd
}

func runSimFaultAdd(ctx context.Context, e *Env, f world.Fault) error {
	known := world.FaultNames()
	found := false
	for _, name := range known {
		found = found || name == f.Name
	}
	if !found {
		hint := "one of " + orWords(known)
		if near := terminal.Nearest(f.Name, known); near != "" {
			hint = "did you mean: " + near
		}
		return &usageError{text: fmt.Sprintf("unknown fault %q", f.Name), hint: hint}
	}
	if world.Delays(f.Name) && f.Delay <= 0 {
		return &usageError{text: "--delay is missing: how much longer it takes", hint: "--delay 10s"}
	}
	if f.Match == "" {
		return &usageError{text: "--match is missing", hint: `--match "zoneadm clone"`}
	}
	sled, _, err := e.simulatedSled()
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

func newSimFaultList(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List the armed faults", Example: `  sledctl sim fault list`, Args: cobra.NoArgs,
		RunE: env.run(func(ctx context.Context, _ []string) error { return runSimFaultList(ctx, env) }),
	}
	env.addOutput(cmd)
	return cmd
}

func runSimFaultList(ctx context.Context, e *Env) error {
	sled, _, err := e.simulatedSled()
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
	return list.Print(e.Streams.Out, e.output, faults)
}

func newSimFaultClear(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "clear", Short: "Disarm all faults", Example: `  sledctl sim fault clear`, Args: cobra.NoArgs,
		RunE: env.run(func(ctx context.Context, _ []string) error {
			sled, _, err := env.simulatedSled()
			if err != nil {
				return err
			}
			return sled.World().Update(ctx, func(tx *world.Tx) error { tx.State.Faults = nil; return nil })
		}),
	}
}
