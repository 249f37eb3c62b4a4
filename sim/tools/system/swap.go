package system

import (
	"fmt"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
)

// Swap is swap(8) with -s: the virtual memory, all that guests have taken among what is
// used (doswap in usr/src/cmd/swap/swap.c).
//
// Guess reservoir-counts-as-used: the reservoir counts as used in `swap -s`, since its memory is
// locked.
// Check: `swap -s` before and after `rsrvrctl -s 4096`
func Swap(tx *world.Tx, c cli.Call) cli.Reply {
	cli.Simulated(len(c.Args) == 1 && c.Args[0] == "-s" && c.Zone == world.GlobalZone)
	const all, system = world.MemoryMiB << 10, 2 << 20 // in KiB
	r := tx.QueryReservoir()
	used := system + (r.Free+r.Allocated+r.Transient)>>10
	if tx.TakeFault(cli.Words(c), world.FaultLowSwap) != nil {
		used = all - 300<<10
	}
	return cli.Reply{Stdout: fmt.Sprintf("total: %dk bytes allocated + %dk reserved = %dk used, %dk available\n", used-used/4, used/4, used, all-min(used, all))}
}
