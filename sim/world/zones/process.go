package zones

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
)

// Spawn is what a program does that a shell of a zone executes: one that keeps
// running becomes a process, in the contract of the service whose method the
// shell runs (env tells). ok is false if this is not a program that the
// simulated sled has. A program that ends, or that cannot start, leaves no process.
func Spawn(tx *world.Tx, zone string, argv []string, env map[string]string) (p *world.Process, stderr string, exit int, ok bool) {
	if len(argv) == 0 || path.Base(argv[0]) != "propolis-server" {
		return nil, "", 127, false
	}
	server, stderr, exit := parsePropolis(argv[1:])
	if server == nil {
		return nil, stderr, exit, true
	}
	if text := checkPropolis(tx, zone, server); text != "" {
		return nil, text, 1, true
	}
	p = &world.Process{
		PID: int(tx.Count("pid")) + 1000, Zone: zone, FMRI: env["SMF_FMRI"], Argv: slices.Clone(argv),
		Listen: server.listen.String(), Started: tx.Now.Add(tx.Latency(world.StepPropolis) * 9 / 10),
	}
	tx.State.Processes = append(tx.State.Processes, p)
	return p, "", 0, true
}

// propolis is the command line of a propolis-server.
type propolis struct {
	bootrom string
	listen  netip.AddrPort
	vnc     netip.AddrPort
	metric  string
}

const propolisUsage = "Usage: propolis-server run [OPTIONS] <BOOTROM_PATH> <PROPOLIS_ADDR> [VNC_ADDR]\n\nFor more information, try '--help'.\n"

// parsePropolis reads a command line as bin/propolis-server/src/main.rs of
// oxidecomputer/propolis declares it: run BOOTROM IP:PORT [VNC_IP:PORT], with
// --bootrom-version, --metric-addr and --log-level. Nil: refused; the words are
// those of clap, which exits with 2.
func parsePropolis(args []string) (server *propolis, stderr string, exit int) {
	bad := func(format string, a ...any) (*propolis, string, int) {
		return nil, "error: " + fmt.Sprintf(format, a...) + "\n\n" + propolisUsage, 2
	}
	if len(args) == 0 {
		return bad("'propolis-server' requires a subcommand but one was not provided\n  [subcommands: run, help]")
	}
	if args[0] != "run" {
		return bad("unrecognized subcommand '%s'", args[0])
	}
	server = &propolis{metric: "disable"}
	var operands []string
	for args = args[1:]; len(args) > 0; args = args[1:] {
		if !strings.HasPrefix(args[0], "-") || args[0] == "-" {
			operands = append(operands, args[0])
			continue
		}
		name, value, has := strings.Cut(args[0], "=")
		if name != "--bootrom-version" && name != "--metric-addr" && name != "--log-level" {
			return bad("unexpected argument '%s' found", name)
		}
		if !has {
			if len(args) < 2 {
				return bad("a value is required for '%s <%s>' but none was supplied", name, strings.ToUpper(strings.ReplaceAll(name[2:], "-", "_")))
			}
			value, args = args[1], args[1:]
		}
		if name == "--metric-addr" {
			server.metric = value
			if _, err := netip.ParseAddrPort(value); err != nil && value != "disable" && value != "dns" {
				return bad("invalid value '%s' for '--metric-addr <METRIC_ADDR>': invalid socket address syntax", value)
			}
		}
	}
	switch {
	case len(operands) < 2:
		return bad("the following required arguments were not provided:\n  %s", strings.Join([]string{"<BOOTROM_PATH>", "<PROPOLIS_ADDR>"}[len(operands):], "\n  "))
	case len(operands) > 3:
		return bad("unexpected argument '%s' found", operands[3])
	}
	server.bootrom = operands[0]
	var err error
	if server.listen, err = netip.ParseAddrPort(operands[1]); err != nil {
		return bad("invalid value '%s' for '<PROPOLIS_ADDR>': invalid socket address syntax", operands[1])
	}
	if len(operands) == 3 {
		if server.vnc, err = netip.ParseAddrPort(operands[2]); err != nil {
			return bad("invalid value '%s' for '[VNC_ADDR]': invalid socket address syntax", operands[2])
		}
	}
	return server, "", 0
}

// checkPropolis is what a server looks at before it listens: the devices that
// carry the vmm and viona interfaces, and its addresses.
//
// Guess words-of-clap-and-anyhow: what clap and anyhow print when propolis-server refuses its
// command line, an address, or devices that are missing.
// Check: start it by hand, wrongly
func checkPropolis(tx *world.Tx, zone string, server *propolis) string {
	for _, device := range []string{"/dev/vmmctl", "/dev/viona"} {
		if !hasDevice(tx, zone, device) {
			return fmt.Sprintf("Error: checking version of %s\n\nCaused by:\n    No such file or directory (os error 2)\n", device)
		}
	}
	if server.metric == "dns" && (server.listen.Addr().Is4() || server.listen.Addr().IsLoopback()) {
		return "Error: cannot use metric address from DNS: the server does not listen on a non-localhost IPv6 address\n"
	}
	for _, listen := range []netip.AddrPort{server.vnc, server.listen} {
		if !listen.IsValid() {
			continue
		}
		if text := bind(tx, zone, listen); text != "" {
			return "Error: " + text + "\n"
		}
	}
	return ""
}

// bind says why a process of a zone cannot listen on an address; "" if it can.
func bind(tx *world.Tx, zone string, listen netip.AddrPort) string {
	if !listen.Addr().IsUnspecified() && !hasAddress(tx, zone, listen.Addr()) {
		return "Cannot assign requested address (os error 126)"
	}
	for _, p := range tx.State.Processes {
		other, err := netip.ParseAddrPort(p.Listen)
		if p.Zone != zone || err != nil || other.Port() != listen.Port() {
			continue
		}
		if other.Addr() == listen.Addr() || other.Addr().IsUnspecified() || listen.Addr().IsUnspecified() {
			return "Address already in use (os error 125)"
		}
	}
	return ""
}

func hasAddress(tx *world.Tx, zone string, address netip.Addr) bool {
	stack := tx.State.Stacks[zone]
	if stack == nil {
		return false
	}
	return slices.ContainsFunc(stack.Addresses, func(a *world.Address) bool {
		own, _, _ := strings.Cut(a.Address, "/")
		own, _, _ = strings.Cut(own, "%")
		parsed, err := netip.ParseAddr(own)
		state := world.At(a.Timeline, tx.Now).State
		return err == nil && parsed == address.WithZone("") && (state == "ok" || state == "tentative")
	})
}

// hasDevice says whether a zone was given a device; the global zone has all.
func hasDevice(tx *world.Tx, zone, device string) bool {
	if zone == world.GlobalZone {
		return true
	}
	z := tx.FindZone(zone)
	if z == nil || z.Kernel == nil {
		return false
	}
	return slices.ContainsFunc(z.Kernel.Config.Resources, func(r world.Resource) bool {
		return r.Type == "device" && slices.ContainsFunc(r.Properties, func(p world.Property) bool {
			return p.Name == "match" && slices.ContainsFunc(p.Values, func(pattern string) bool {
				fits, err := path.Match(pattern, device)
				return err == nil && fits
			})
		})
	})
}

// IsUnderlay tells whether an address can be listened on by a stand-in server:
// on Linux all of 127.0.0.0/8 is there without being configured.
func IsUnderlay(a netip.Addr) bool { return a.Is4() && a.As4()[0] == 127 && a.As4()[1] == 77 }

// Listener finds the process of this sled that a connection from elsewhere
// reaches. Without one the error is that of connect(2): a host that does not exist
// cannot be reached, one that is there refuses.
func Listener(tx *world.Tx, to netip.AddrPort) (pid int, err error) {
	zone, ok := network.AddressOwner(tx, to.Addr())
	if !ok || to.Addr().IsLoopback() && !IsUnderlay(to.Addr()) {
		return 0, syscall.EHOSTUNREACH
	}
	return ListenerIn(tx, zone, to)
}

// ListenerIn finds it among the processes of a zone.
func ListenerIn(tx *world.Tx, zone string, to netip.AddrPort) (pid int, err error) {
	for _, p := range tx.State.Processes {
		if p.Zone != zone || p.Started.After(tx.Now) {
			continue
		}
		own, err := netip.ParseAddrPort(p.Listen)
		if err != nil || own.Port() != to.Port() {
			continue
		}
		if own.Addr().WithZone("") == to.Addr().WithZone("") || own.Addr().IsUnspecified() {
			return p.PID, nil
		}
	}
	return 0, syscall.ECONNREFUSED
}
