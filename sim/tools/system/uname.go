// Package system holds the small commands of the simulated sled: about its
// hardware, processes, files, mounts and memory.
package system

import (
	"cmp"
	"fmt"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
)

// Uname is uname(1) with -v or -n. Real kernels name their distribution and the commit of the
// gate, e.g. "omnios-r151046-7b3f3d5b6d", "helios-2.0.23000" or
// "joyent_20240111T000000Z".
func Uname(tx *world.Tx, c cli.Call) cli.Reply {
	cli.Simulated(len(c.Args) == 1 && (c.Args[0] == "-v" || c.Args[0] == "-n"))
	if c.Args[0] == "-n" {
		name := c.Zone // a zone is called as it is until somebody configures it
		if name == world.GlobalZone {
			name = fmt.Sprintf("sled%d", tx.State.Seed)
		}
		return cli.Reply{Stdout: name + "\n"}
	}
	kernels := map[world.Mode]string{world.OmniOS: "omnios-r151058-5151515151", world.Helios: "helios-3.0.26000", world.SmartOS: "joyent_20261105T000000Z"}
	kernel := tx.Fact(world.FactKernel, kernels[tx.State.Mode])
	if tx.TakeFault(cli.Words(c), world.FaultOldKernel) != nil {
		old := map[world.Mode]string{world.OmniOS: "omnios-r151046-7b3f3d5b6d", world.Helios: "helios-2.0.22000", world.SmartOS: "joyent_20220101T000000Z"}
		kernel = old[tx.State.Mode]
	}
	return cli.Reply{Stdout: kernel + "\n"}
}

// Zonename prints the name of the zone that it runs in
// (usr/src/cmd/zonename/zonename.c).
func Zonename(tx *world.Tx, c cli.Call) cli.Reply {
	cli.Simulated(len(c.Args) == 0)
	zone := c.Zone
	if f := tx.TakeFault(cli.Words(c), world.FaultInZone); f != nil {
		zone = cmp.Or(f.Text, "web")
	}
	return cli.Reply{Stdout: zone + "\n"}
}
