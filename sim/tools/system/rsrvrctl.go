package system

import (
	"fmt"
	"strconv"
	"time"

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
		return setReservoir(tx, size<<20)
	}
	r := tx.QueryReservoir()
	return cli.Reply{Stdout: fmt.Sprintf("Free MiB:\t%d\nAllocated MiB:\t%d\nTransient Allocated MiB:\t%d\nSize limit MiB:\t%d\n",
		r.Free>>20, r.Allocated>>20, r.Transient>>20, r.Limit>>20)}
}

// setReservoir takes the longer the more memory the kernel must free (omicron#5121); until
// then, none of it is in the reservoir.
func setReservoir(tx *world.Tx, size uint64) cli.Reply {
	refused := cli.Reply{Stderr: fmt.Sprintf("rsrvrctl: Could not set reservoir size to %d bytes: No space left on device\n", size), Exit: 1}
	before := tx.State.Reservoir
	if err := tx.SetReservoir(size); err != nil {
		return refused
	}
	takes := time.Duration((max(size, before)-before)>>30) * tx.Latency(world.StepReservoir)
	if takes == 0 {
		return cli.Reply{}
	}
	tx.State.Reservoir = before
	return cli.Reply{Next: &cli.Next{After: takes, Do: func(tx *world.Tx) cli.Reply {
		if err := tx.SetReservoir(size); err != nil {
			return refused
		}
		return cli.Reply{}
	}}}
}
