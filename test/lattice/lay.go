package lattice

import (
	"context"
	"fmt"

	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/hosttest"
)

// Options are those of the simulated sled of a row.
func (r Row) Options() sim.Options {
	o := sim.Options{Seed: 1, Links: 4, Latency: r.Is(Latencies), Image: []string{configFile, secretsFile, secretsProgram}}
	switch r.Is(Mode) {
	case OmniOS:
		o.Mode = world.OmniOS
	case Helios:
		o.Mode, o.Installed = world.Helios, true
	case RAMDisk:
		o.Mode = world.Helios
	default:
		r.missing(Mode)
	}
	switch r.Is(Server) {
	case Development:
	case OmicronBuild:
		o.Build = world.OmicronBuild
	default:
		r.missing(Server)
	}
	const noDisks = -1
	switch r.Is(Disks) {
	case TwoM2s:
		o.M2, o.U2 = 2, 2
	case OneM2:
		o.M2, o.U2 = 1, 1
	case LoneM2:
		o.M2, o.U2 = 1, noDisks
	case RpoolOnly:
		o.M2, o.U2 = noDisks, noDisks
	default:
		r.missing(Disks)
	}
	return o
}

// missing is a value that is in the table and that nothing is laid out for.
func (r Row) missing(dimension string) {
	panic(fmt.Sprintf("lattice: nothing is laid out for %s=%s", dimension, r.Is(dimension)))
}

// Lay lays out the sled of a row in memory: its configuration, its links, its
// secrets, what its machines have for disks, and its neighbours.
func Lay(ctx context.Context, r Row) (*sim.Sled, error) {
	s := sim.New(r.Options(), hosttest.Files)
	s.World().Checked(func(what string) { panic("a transaction did not note what it changed: " + what) })
	return s, r.LayOn(ctx, s)
}

// LayOn is Lay on a fresh sled, which may lie in a directory.
func (r Row) LayOn(ctx context.Context, s *sim.Sled) error {
	pool, err := r.Pool(ctx, s)
	if err != nil {
		return err
	}
	for _, step := range r.steps(pool) {
		if err := step.take(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// Booted is what the sled's system does by itself when it boots, where its root
// does not remember it: its links, and what its neighbours are.
func (r Row) Booted(ctx context.Context, s *sim.Sled) error {
	if r.Is(Mode) != RAMDisk {
		return nil
	}
	for _, step := range r.bootSteps() {
		if err := step.take(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// Script is the layout as lines of a shell whose SLEDCTL_HOST names a directory:
// first the sled, then what is laid out on it. The function host runs a command of
// the sled.
func (r Row) Script() []string {
	lines := []string{"sledctl sim init" + r.initFlags() + " >/dev/null || exit"}
	for _, step := range r.steps(r.PoolName()) {
		lines = append(lines, step.shell())
	}
	return lines
}

// BootScript is Booted as lines of such a shell.
func (r Row) BootScript() (lines []string) {
	if r.Is(Mode) != RAMDisk {
		return nil
	}
	for _, step := range r.bootSteps() {
		lines = append(lines, step.shell())
	}
	return lines
}

func (r Row) initFlags() string {
	o := r.Options()
	flags := fmt.Sprintf(" --mode %s --latency %s --m2 %d --u2 %d --links %d --seed %d", o.Mode, o.Latency, max(o.M2, 0), max(o.U2, 0), o.Links, o.Seed)
	if o.Build != "" {
		flags += " --server-build " + o.Build
	}
	if o.Installed {
		flags += " --installed"
	}
	return flags
}

// steps lay out all of a row.
func (r Row) steps(pool string) []step {
	steps := append([]step{{file: configFile, text: r.Config(), mode: 0o600}}, r.secretSteps()...)
	return append(append(steps, r.bootSteps()...), r.diskSteps(pool)...)
}

const (
	configFile     = "/etc/sledctl/config.toml"
	secretsFile    = "/etc/sledctl/secrets"
	secretsProgram = "/usr/bin/sled-secrets"
)

// secret is that of epoch 0.
const secret = "5ec7e70000000000000000000000000000000000000000000000000000000000"

func (r Row) secretSteps() []step {
	switch r.Is(Keys) {
	case Development:
		return nil
	case KeyFile:
		return []step{{file: secretsFile, text: "0 " + secret + "\n", mode: 0o600}}
	case KeyCommand:
		return []step{{file: secretsProgram, text: "#!/bin/sh\ncase $1 in\nlatest) echo 0 ;;\n0) echo " + secret + " ;;\n*) exit 1 ;;\nesac\n", mode: 0o755}}
	}
	r.missing(Keys)
	return nil
}

// Config is the configuration of the sled, as its operator writes it.
func (r Row) Config() string {
	return "[network]\n" + r.configLink() + r.configAddresses() + r.configMTU() + r.configVPCs() +
		"[storage]\n" + r.configStorage() + "[propolis]\n" + fmt.Sprintf("packaging = %q\n", r.Is(Packaging)) +
		"[instance]\n" + r.configSpares() + r.configReservoir()
}

func (r Row) configLink() string {
	const stub = "etherstub = \"propolis_stub0\"\n"
	switch r.Is(Link) {
	case Etherstub:
		return stub + "guest_link = \"net1\"\n"
	case Physical:
		if r.Is(MTU) == Wide {
			return "control_link = \"net2\"\nguest_link = \"net2\"\n"
		}
		return "guest_link = \"net2\"\n" // the control link is that of the default route
	case Aggregation:
		return "control_link = \"aggr0\"\nguest_link = \"aggr0\"\n"
	case VLAN: // over a VLAN link there are no VNICs: those of guests have a tag instead
		return "control_link = \"net2\"\nguest_link = \"net2\"\n"
	}
	r.missing(Link)
	return ""
}

func (r Row) configAddresses() string {
	switch r.Is(Addresses) {
	case IPv4:
		return "gz_vnic = \"propolis_gz0\"\ngz_address = \"10.77.0.1/16\"\nunderlay = \"10.77.0.0/16\"\n"
	case IPv6:
		return "gz_vnic = \"propolis_gz0\"\ngz_address = \"fd00:77:0:1::1/64\"\nunderlay = \"fd00:77:0:1::/64\"\ngateway = \"fd00:77:0:1::1\"\n"
	case DHCP:
		return ""
	}
	r.missing(Addresses)
	return ""
}

func (r Row) configMTU() string {
	if r.Is(Mode) != OmniOS { // the service in the zone image sets it
		return ""
	}
	return "mtu = " + r.Is(MTU) + "\n"
}

// configVPCs has ports lie over links that nothing else does.
func (r Row) configVPCs() string {
	if r.Is(NICs) != InVPC {
		return ""
	}
	return "opte_links = [\"net0\", \"net1\"]\nopte_address = \"fd00:77:0:2::1\"\n"
}

func (r Row) configStorage() string {
	text := "slots = \"gimlet\"\n"
	if r.Is(Disks) == RpoolOnly {
		text = "slots = \"none\"\n"
	}
	switch r.Is(Keys) {
	case Development:
		text += "key = \"development\"\n"
	case KeyFile:
		text += "key = \"file:" + secretsFile + "\"\n"
	case KeyCommand:
		text += "key = \"command:sled-secrets\"\n"
	default:
		r.missing(Keys)
	}
	if dir := r.Ledger(); dir != "" {
		text += "[paths]\nledger = \"" + dir + "\"\n"
	}
	return text
}

// Ledger is paths.ledger.
func (r Row) Ledger() string {
	if r.Is(Disks) == RpoolOnly {
		return "/var/sledctl"
	}
	return ""
}

func (r Row) configReservoir() string {
	switch r.Is(Reservoir) {
	case None:
		return ""
	case Enough:
		return "reservoir = \"" + enough + "\"\n"
	case TooLittle:
		return "reservoir = \"1G\"\n"
	}
	r.missing(Reservoir)
	return ""
}

func (r Row) configSpares() string {
	switch r.Is(Spares) {
	case None:
		return ""
	case Booted:
		return "spares = 1\nspares_booted = 1\n"
	}
	return "spares = 1\n"
}

const enough = "64G" // for all machines of a row

// Enlarged is the row with a reservoir that is large enough.
func (r Row) Enlarged() Row { return r.With(map[string]string{Reservoir: Enough}) }

// Spareless is the row without spares.
func (r Row) Spareless() Row { return r.With(map[string]string{Spares: None}) }

// BootsWithMore reports whether the first machine has what a zone gets only as it boots.
func (r Row) BootsWithMore() bool {
	return !r.Has(VMDisks, None, Crucible) || r.Is(CPUs) == Capped || r.Is(NICs) == InVPC
}

// bootSteps lay out what a root on a RAM disk does not remember.
func (r Row) bootSteps() (steps []step) {
	if r.Is(MTU) == Wide {
		for _, l := range []string{"net1", "net2", "net3"} {
			steps = append(steps, step{line: "dladm set-linkprop -p mtu=9000 " + l})
		}
	}
	switch r.Is(Link) {
	case Aggregation:
		steps = append(steps, step{line: "dladm create-aggr -L active -l net2 -l net3 aggr0"})
	case VLAN:
		steps = append(steps, step{line: "dladm create-vlan -l net2 -v 7 vlan7"})
	}
	return append(steps, r.neighbours().steps...)
}
