package system

import (
	"slices"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
)

// Zonename prints the name of the zone that it runs in; with -t its IP type.
// Other options are ignored (usr/src/cmd/zonename/zonename.c).
func Zonename(tx *world.Tx, c cli.Call) cli.Reply {
	if !slices.Contains(c.Args, "-t") {
		return cli.Reply{Stdout: c.Zone + "\n"}
	}
	if z := tx.FindZone(c.Zone); z != nil && z.Kernel != nil && z.Kernel.Config.IPType == "exclusive" {
		return cli.Reply{Stdout: "exclusive\n"}
	}
	return cli.Reply{Stdout: "shared\n"}
}
