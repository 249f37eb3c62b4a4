// Package zoneadm is the command zoneadm, the daemon zoneadmd that it calls, and
// what the brands do when it asks them.
package zoneadm

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/tools/zonecfg"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zones"
)

// Run is zoneadm(8) (usr/src/cmd/zoneadm/zoneadm.c). What changes a zone is
// done in several transactions: the checks, then the zone's lock, then the work
// and the time that it takes.
func Run(tx *world.Tx, c cli.Call) cli.Reply {
	z := &zoneadm{tx: tx, call: c}
	options, operands := cli.Getopt(c.Args, "?u:z:R:", nil)
	target, id := "", ""
	for _, o := range options {
		switch {
		case o.Letter == '?' || o.Bad != "":
			if o.Bad != "" {
				z.err.WriteString(cli.Complaint("zoneadm", o))
			}
			z.usage(&z.out, true)
			return z.reply(2)
		case o.Letter == 'u':
			id = o.Value
		case o.Letter == 'z':
			target = o.Value
			z.name, z.named = target, true
		case o.Letter == 'R':
			return z.alternateRoot(o.Value)
		}
	}
	if len(operands) == 0 {
		z.usage(&z.err, false)
		return z.reply(2)
	}
	if id != "" {
		if _, err := uuid.Parse(id); err != nil || len(id) != 36 {
			return z.refuse("illegal UUID value specified")
		}
		for _, other := range tx.State.Zones {
			if strings.EqualFold(other.UUID, id) { // else -z counts
				z.name, z.named = other.Name, true
			}
		}
	}
	if r := z.findTarget(); r != nil {
		return *r
	}
	return z.dispatch(operands[0], operands[1:])
}

// zoneadm is one transaction of an invocation.
type zoneadm struct {
	streams
	tx    *world.Tx
	call  cli.Call
	name  string // of the zone; empty and not named: none was given
	named bool
	zone  *world.Zone // nil for the global zone
	brand *brand
}

// at is the invocation in its next transaction. The zone may be gone.
func (z *zoneadm) at(tx *world.Tx) *zoneadm {
	return &zoneadm{tx: tx, call: z.call, name: z.name, named: z.named, zone: tx.FindZone(z.name), brand: z.brand}
}

// say is zerror: a message about the zone.
func (z *zoneadm) say(format string, args ...any) {
	z.err.WriteString("zoneadm: ")
	if z.named {
		z.err.WriteString("zone '" + z.name + "': ")
	}
	z.errf(format, args...)
}

// refuse is say, and the end.
func (z *zoneadm) refuse(format string, args ...any) cli.Reply {
	z.say(format, args...)
	return z.reply(1)
}

// relay prints what zoneadmd has to say, one line each (zerror in libzonecfg.c).
func (z *zoneadm) relay(lines []string) {
	for _, line := range lines {
		z.errf("zone '%s': %s", z.name, line)
	}
}

// alternateRoot is -R, which installers use.
func (z *zoneadm) alternateRoot(dir string) cli.Reply {
	if !strings.HasPrefix(dir, "/") {
		return z.refuse("root path must be absolute.")
	}
	// Guess: the simulated sled has no alternate roots.
	return z.refuse("root path must be a directory.")
}

// findTarget finds the zone and its brand as main() does. The number of a zone
// that the kernel knows passes for a zone, but has no brand.
func (z *zoneadm) findTarget() *cli.Reply {
	if !z.named {
		return nil
	}
	inside := z.call.Zone != world.GlobalZone
	z.zone = z.tx.FindZone(z.name)
	switch {
	case inside && z.name != z.call.Zone, !inside && z.zone == nil && z.name != world.GlobalZone && !z.isActiveID():
		z.errf("zoneadm: %s: %s", z.name, zonecfg.NoZone)
		r := z.reply(1)
		return &r
	case z.name == world.GlobalZone || inside:
		return nil
	}
	known := false
	if z.zone != nil {
		z.brand, known = brandOf(z.tx, z.zone.Config.Brand)
	}
	if !known {
		r := z.refuse("missing or invalid brand")
		return &r
	}
	return nil
}

func (z *zoneadm) isActiveID() bool {
	id, err := strconv.Atoi(z.name)
	if err != nil {
		return false
	}
	for _, other := range z.tx.KernelZones() {
		if other.Kernel.ID == id {
			return true
		}
	}
	return id == 0
}

func (z *zoneadm) dispatch(command string, args []string) cli.Reply {
	switch command {
	case "help":
		return z.help(args)
	case "list":
		return z.list(args)
	case "verify":
		return z.verifyCommand(args)
	case "install":
		return z.install(args)
	case "clone":
		return z.clone(args)
	case "uninstall":
		return z.uninstall(args)
	case "boot":
		return z.boot(args)
	case "ready":
		return z.ready(args)
	case "reboot":
		return z.reboot(args)
	case "halt":
		return z.halt(args)
	case "shutdown":
		return z.shutdown(args)
	case "mark":
		return z.mark(args)
	case "mount":
		return z.mount(args)
	case "unmount":
		return z.unmount(args)
	case "attach", "detach", "move": // of zones that go to another sled or place, which no zone here does
		return cli.NotSimulated("zoneadm", "subcommand %q", command)
	case "sysboot":
		return z.sysboot(args)
	case "apply":
		if z.name != world.GlobalZone {
			z.usage(&z.err, false)
			return z.reply(2)
		}
		return z.reply(0)
	}
	z.usage(&z.err, false)
	return z.reply(2)
}

// hook prepares a hook of the zone's brand.
func (z *zoneadm) hook() *hook {
	return &hook{tx: z.tx, brand: z.brand, zone: z.name, path: z.zone.Path()}
}

// took adds what a hook printed and gives its exit code.
func (z *zoneadm) took(h *hook, code int) int {
	z.out.WriteString(h.out.String())
	z.err.WriteString(h.err.String())
	return code
}

// brandVerify is invoke_brand_handler: the brand's verify_adm hook.
func (z *zoneadm) brandVerify(command string) bool {
	if z.brand.verify == nil {
		return true
	}
	h := z.hook()
	return z.took(h, z.brand.verify(h, command)) == hookOK
}

// setState sets the state of the index.
func (z *zoneadm) setState(state string) bool {
	if err := zones.SetZoneState(z.tx, z.zone, state); err != nil {
		z.errf("zoneadm: %s: could not set state: Problem updating index file", z.name)
		return false
	}
	return true
}

// locked goes on with the zone's lock, which is held until the command ends.
// The state was looked at before: another command may have changed it while
// this one waited (usr/src/cmd/zoneadm/zoneadm.c, install_func).
func (z *zoneadm) locked(so cli.Reply, do func(z *zoneadm) cli.Reply) cli.Reply {
	so.Next = &cli.Next{Lock: z.name, Do: func(tx *world.Tx) cli.Reply {
		next := z.at(tx)
		if next.zone == nil {
			next.errf("zoneadm: %s: could not get zone path: %s", z.name, zonecfg.NoZone)
			return next.reply(1)
		}
		return do(next)
	}}
	return so
}

// subUsage is for wrong options of a subcommand.
func (z *zoneadm) subUsage(command string) cli.Reply {
	z.printSubUsage(command)
	return z.reply(2)
}

// asked tells what the options of a subcommand come to, if they are not plain:
// the usage was asked for, which is fine, or they are wrong.
func (z *zoneadm) asked(command string, args []string, options []cli.Option) *cli.Reply {
	for _, o := range options {
		if o.Bad == "" && o.Letter != '?' {
			continue
		}
		if o.Bad != "" {
			z.err.WriteString(cli.Complaint(args[0], o)) // getopt(3C) takes it for the program
		}
		z.printSubUsage(command)
		r := z.reply(2)
		if o.Bad == "" {
			r.Exit = 0
		}
		return &r
	}
	return nil
}

// hookFault is a failure of a brand's hook that a fault has in store.
func (z *zoneadm) hookFault() (code int, hit bool) {
	f := z.tx.TakeFault(cli.Words(z.call), world.FaultHook)
	if f == nil {
		return 0, false
	}
	if f.Text != "" {
		fmt.Fprintln(&z.err, strings.TrimSuffix(f.Text, "\n"))
	}
	return max(f.Exit, 1), true
}
