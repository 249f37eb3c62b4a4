package system

import (
	"path"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
)

// Bhyvectl is bhyvectl --destroy --vm=NAME (usr/src/cmd/bhyvectl): the kernel's VM, which
// is a device, is gone, and its memory free. VMs of the simulated Propolis are no devices.
func Bhyvectl(tx *world.Tx, c cli.Call) cli.Reply {
	given, operands := cli.Options(c.Args, "dv:", map[string]byte{"destroy": 'd', "vm": 'v'})
	name := given.One('v')
	cli.Simulated(len(operands) == 0 && given.Has('d') && name != "" && path.Base(name) == name)
	cli.Simulated(tx.Files.Remove("/dev/vmm/"+name) == nil)
	return cli.Reply{}
}
