package system

import (
	"fmt"
	"strconv"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
)

// Rsrvrctl is rsrvrctl, which sizes the VMM reservoir in MiB
// (usr/src/cmd/rsrvrctl/rsrvrctl.c), with -q or -s.
func Rsrvrctl(tx *world.Tx, c cli.Call) cli.Reply {
	given, operands := cli.Options(c.Args, "s:q", nil)
	cli.Simulated(len(operands) == 0 && given.Has('q') != given.Has('s'))
	if given.Has('s') {
		size, err := strconv.ParseUint(given.One('s'), 10, 44)
		cli.Simulated(err == nil)
		if err := tx.SetReservoir(size << 20); err != nil {
			return cli.Reply{Stderr: fmt.Sprintf("rsrvrctl: Could not set reservoir size to %d bytes: No space left on device\n", size<<20), Exit: 1}
		}
		return cli.Reply{}
	}
	r := tx.QueryReservoir()
	return cli.Reply{Stdout: fmt.Sprintf("Free MiB:\t%d\nAllocated MiB:\t%d\nTransient Allocated MiB:\t%d\nSize limit MiB:\t%d\n",
		r.Free>>20, r.Allocated>>20, r.Transient>>20, r.Limit>>20)}
}
