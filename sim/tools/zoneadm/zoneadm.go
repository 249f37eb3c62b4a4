// Package zoneadm is the command zoneadm, the daemon zoneadmd that it calls, and
// what the brands do when it asks them.
package zoneadm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/tools/zonecfg"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zones"
)

// Run is zoneadm(8) (usr/src/cmd/zoneadm/zoneadm.c). What changes a zone is
// done in several transactions: the checks, then the zone's lock, then the work
// and the time that it takes.
//
// Guess parts-of-zones-refused: zones with a shared stack, `-R`, archives, manifests of other sleds
// and `apply` are refused.
// Check: nothing: sledctl uses none of them
func Run(tx *world.Tx, c cli.Call) cli.Reply {
	z := &zoneadm{tx: tx, call: c}
	options, operands := plain(c.Args, "z:")
	for _, o := range options {
		z.name, z.named = o.Value, true
	}
	cli.Simulated(len(operands) > 0)
	if z.named && !z.findTarget() {
		z.errf("zoneadm: %s: %s", z.name, zonecfg.NoZone)
		return z.reply(1)
	}
	return z.dispatch(operands[0], operands[1:])
}

// plain splits a command line whose options are all simulated.
func plain(args []string, spec string) ([]cli.Option, []string) {
	options, operands := cli.Getopt(args, spec, nil)
	for _, o := range options {
		cli.Simulated(o.Bad == "")
	}
	return options, operands
}

// must refuses a command whose work the simulated sled's files or datasets fail.
func must(err error) {
	if err != nil {
		panic(world.Unsimulated{What: err.Error()})
	}
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

// say is zerror: a message about the zone.
func (z *zoneadm) say(format string, args ...any) {
	z.errf("zoneadm: zone '"+z.name+"': "+format, args...)
}

// relay prints what zoneadmd has to say, one line each (zerror in libzonecfg.c).
func (z *zoneadm) relay(lines ...string) {
	for _, line := range lines {
		z.errf("zone '%s': %s", z.name, line)
	}
}

// findTarget finds the zone and its brand as main() does. The number of a zone
// that the kernel knows passes for a zone that has no brand: that is refused.
func (z *zoneadm) findTarget() bool {
	z.zone = z.tx.FindZone(z.name)
	switch {
	case z.call.Zone != world.GlobalZone:
		return z.name == z.call.Zone
	case z.zone != nil:
		known := false
		z.brand, known = brandOf(z.tx, z.zone.Config.Brand)
		cli.Simulated(known)
		return true
	}
	_, err := strconv.Atoi(z.name)
	cli.Simulated(err != nil)
	return z.name == world.GlobalZone
}

func (z *zoneadm) dispatch(command string, args []string) cli.Reply {
	if command == "list" {
		return z.list(args)
	}
	do, known := map[string]func(*zoneadm, []string) cli.Reply{
		"install": (*zoneadm).install, "clone": (*zoneadm).clone, "uninstall": (*zoneadm).uninstall, "mark": (*zoneadm).mark,
		"boot": (*zoneadm).boot, "ready": (*zoneadm).ready, "reboot": (*zoneadm).reboot, "halt": (*zoneadm).halt,
		"shutdown": (*zoneadm).shutdown, "mount": (*zoneadm).mount, "unmount": (*zoneadm).unmount, "sysboot": (*zoneadm).sysboot,
	}[command]
	cli.Simulated(known && z.named)
	return do(z, args)
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
func (z *zoneadm) setState(state string) { must(zones.SetZoneState(z.tx, z.zone, state)) }

// then is the command in its next transaction. The zone may be gone.
func (z *zoneadm) then(do func(z *zoneadm) cli.Reply) func(*world.Tx) cli.Reply {
	return func(tx *world.Tx) cli.Reply {
		next := &zoneadm{tx: tx, call: z.call, name: z.name, named: z.named, zone: tx.FindZone(z.name), brand: z.brand}
		if next.zone == nil {
			next.errf("zoneadm: %s: %s", z.name, zonecfg.NoZone)
			return next.reply(1)
		}
		return do(next)
	}
}

// next continues the command as n says, but with another thing to do.
func (z *zoneadm) next(n cli.Next, do func(z *zoneadm) cli.Reply) cli.Reply {
	so := z.reply(0)
	n.Do = z.then(do)
	so.Next = &n
	return so
}

// locked takes the zone's lock, holds it until the command ends, and continues.
// The state was looked at before: another command may have changed it while
// this one waited (usr/src/cmd/zoneadm/zoneadm.c, install_func).
func (z *zoneadm) locked(do func(z *zoneadm) cli.Reply) cli.Reply {
	return z.next(cli.Next{Lock: z.name}, do)
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
	for command, form := range map[string]string{
		"install":   "install [-x nodataset] [brand-specific args]\n\tInstall the configuration on to the system.",
		"clone":     "clone [-m method] [-s <ZFS snapshot>] [brand-specific args] zonename\n\tClone the installation of another zone.",
		"uninstall": "uninstall [-F] [brand-specific args]\n\tUninstall the configuration from the system.",
	} {
		if f.Exit == hookUsage && slices.Contains(z.call.Args, command) {
			z.errf("usage:\t%s", form)
		}
	}
	return max(f.Exit, 1), true
}
