package zoneadm

import (
	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
)

// This file has mark and sysboot.

// mark sets the state of the index. What is used wrongly gets no message.
func (z *zoneadm) mark(args []string) cli.Reply {
	options, operands := cli.Getopt(args, "F", nil)
	if len(operands) != 1 || len(options) > 0 && options[0].Bad != "" {
		return z.reply(2)
	}
	state := operands[0]
	switch state {
	case world.ZoneIncomplete:
	case world.ZoneConfigured, world.ZoneInstalled:
		if len(options) == 0 {
			return z.reply(2)
		}
	default:
		return z.reply(2)
	}
	if !z.sane(zoneCheck{command: "mark", exclusive: true}) || !z.brandVerify("mark") {
		return z.reply(1)
	}
	return z.locked(z.reply(0), func(z *zoneadm) cli.Reply {
		if !z.setState(state) {
			return z.reply(25) // Z_UPDATING_INDEX
		}
		return z.reply(0)
	})
}

// sysboot is what svc:/system/zones calls for zones that it does not boot.
func (z *zoneadm) sysboot([]string) cli.Reply {
	if !z.sane(zoneCheck{command: "sysboot", exclusive: true}) {
		return z.reply(1)
	}
	if z.brand.sysboot == nil {
		return z.reply(0)
	}
	h := z.hook()
	if z.took(h, z.brand.sysboot(h)) != hookOK {
		return z.reply(40) // Z_BRAND_ERROR
	}
	return z.reply(0)
}
