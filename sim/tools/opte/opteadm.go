// Package opte is opteadm, which administers the driver xde: ports in the networks of VPCs.
// Its arguments, texts and exit codes are those of oxidecomputer/opte at 21df7210: the command
// bin/opteadm/src/bin/opteadm.rs, the driver xde/src/xde.rs, and lib/oxide-vpc between them. What
// clap refuses of a command line is not simulated, nor are multicast and what a port does with packets.
package opte

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
)

// version is opte_pkg_version: the major version, API_VERSION of crates/opte-api/src/lib.rs,
// and the number of commits.
const version = "0.41.503"

// adm is one run of opteadm.
type adm struct {
	tx *world.Tx
	words
	stdin []byte
}

// Opteadm runs opteadm. The driver is part of Helios; its device is in no zone.
func Opteadm(tx *world.Tx, c cli.Call) cli.Reply {
	cli.Simulated(len(c.Args) > 0 && c.Zone == world.GlobalZone)
	if c.Args[0] == "--version" {
		return cli.Reply{Stdout: "opteadm " + version + "\n"}
	}
	run := map[string]func(*adm) cli.Reply{
		"list-ports": (*adm).listPorts, "create-xde": (*adm).createXDE, "delete-xde": (*adm).deleteXDE,
		"set-xde-underlay": (*adm).setUnderlay, "clear-xde-underlay": (*adm).clearUnderlay,
		"set-fw-rules": (*adm).setRules, "add-router-entry": (*adm).addRoute, "del-router-entry": (*adm).deleteRoute, "dump-layer": (*adm).dumpLayer,
		"set-v2p": (*adm).setV2P, "clear-v2p": (*adm).clearV2P, "dump-v2p": (*adm).dumpV2P,
		"set-v2b": (*adm).setV2B, "clear-v2b": (*adm).clearV2B, "dump-v2b": (*adm).dumpV2B,
	}[c.Args[0]]
	cli.Simulated(run != nil)
	a := &adm{tx: tx, words: split(c.Args[1:]), stdin: c.Stdin}
	if tx.State.Mode != world.Helios {
		return died("OPTE driver is not attached")
	}
	reply := run(a)
	cli.Simulated(len(a.options) == 0) // each is read once
	return reply
}

// died is how main ends that returns an anyhow::Error.
func died(format string, args ...any) cli.Reply {
	return cli.Reply{Stderr: "Error: " + fmt.Sprintf(format, args...) + "\n", Exit: 1}
}

// refused is Error::CommandError: the command and what the driver said, as Debug shows both.
func refused(command, why string) cli.Reply { return died("command %s failed: %s", command, why) }

// system is OpteError::System.
func system(errno int, message string) string {
	return fmt.Sprintf("System { errno: %d, msg: %q }", errno, message)
}

func portNotFound(name string) string { return fmt.Sprintf("PortNotFound(%q)", name) }

// The numbers of errors that the driver gives (usr/src/uts/common/sys/errno.h).
const (
	noEntry = 2
	busy    = 16
	exists  = 17
	invalid = 22
)

// words are a command line as clap splits it: options may stand between operands.
type words struct {
	options  map[string][]string
	operands []string
}

// split knows options that have a value: --long VALUE, --long=VALUE, -p VALUE and -pVALUE. A
// value that begins with a hyphen is refused.
func split(args []string) words {
	w := words{options: map[string][]string{}}
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		if !strings.HasPrefix(word, "-") {
			w.operands = append(w.operands, word)
			continue
		}
		name, value, has := strings.Cut(word, "=")
		if strings.HasPrefix(word, "-p") {
			name, value, has = "-p", strings.TrimPrefix(word[2:], "="), len(word) > 2
		}
		if !has {
			cli.Simulated(len(args) > 0)
			value, args = args[0], args[1:]
		}
		cli.Simulated(!strings.HasPrefix(value, "-"))
		w.options[name] = append(w.options[name], value)
	}
	return w
}

// maybe is the value of an option that may come once.
func (w words) maybe(name string) (string, bool) {
	values := w.options[name]
	cli.Simulated(len(values) <= 1)
	delete(w.options, name)
	return strings.Join(values, ""), len(values) > 0
}

// one is the value of an option that must come once.
func (w words) one(name string) string {
	value, has := w.maybe(name)
	cli.Simulated(has)
	return value
}

// exactly are the operands, of which there must be so many.
func (w words) exactly(n int) []string {
	cli.Simulated(len(w.operands) == n)
	return w.operands
}

// setUnderlay is set_xde_underlay. The links are looked up first.
func (a *adm) setUnderlay() cli.Reply {
	links := a.exactly(2)
	cli.Simulated(links[0] != links[1])
	for _, name := range links {
		i := slices.IndexFunc(a.tx.State.Links, func(l *world.Link) bool { return l.Name == name && l.Zone == "" })
		cli.Simulated(i >= 0 && slices.Contains([]string{"phys", "etherstub", "vnic"}, a.tx.State.Links[i].Class))
	}
	if a.tx.OPTE().Underlay != nil {
		return refused("SetXdeUnderlay", system(exists, "underlay already initialized"))
	}
	a.tx.KeepOPTE().Underlay = links
	return cli.Reply{}
}

// clearUnderlay is clear_xde_underlay.
func (a *adm) clearUnderlay() cli.Reply {
	a.exactly(0)
	o := a.tx.OPTE()
	switch {
	case o.Underlay == nil:
		return refused("ClearXdeUnderlay", system(noEntry, "underlay not yet initialized"))
	case len(o.Ports) > 0:
		return refused("ClearXdeUnderlay", system(busy, "underlay in use by attached ports"))
	}
	o.Underlay = nil
	return cli.Reply{}
}
