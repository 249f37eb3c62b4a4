package system

import (
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
)

// Psrinfo is psrinfo(8) without options (usr/src/cmd/psrinfo/psrinfo.c, print_normal and
// timestr).
func Psrinfo(tx *world.Tx, c cli.Call) cli.Reply {
	cli.Simulated(len(c.Args) == 0 && c.Zone == world.GlobalZone)
	var out strings.Builder
	for id := range tx.Processors() {
		fmt.Fprintf(&out, "%d\t%-8s  since %s\n", id, "on-line", tx.State.Booted.Format("01/02/2006 15:04:05"))
	}
	return cli.Reply{Stdout: out.String()}
}
