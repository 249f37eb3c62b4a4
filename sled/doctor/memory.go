package doctor

import (
	"fmt"

	"github.com/sledctl/sledctl/illumos/system"
)

// memoryChecks ask whether guests get their memory.
func memoryChecks() []Check {
	const group = "memory"
	return []Check{
		{ID: "reservoir", Group: group, About: "the VMM reservoir has room for the largest instance", Asks: []Question{askReservoir, askRecords, askKernel}, Judge: judgeReservoir},
		{ID: "swap", Group: group, About: "virtual memory is left for zones and their servers", Asks: []Question{askSwap}, Judge: judgeSwap},
	}
}

// size is a size as it can be configured, in words if it is none.
func size(n uint64) string {
	if n%(1<<30) == 0 {
		return fmt.Sprintf("%dG", n>>30)
	}
	return fmt.Sprintf("%dM", n>>20)
}

// judgeReservoir compares the reservoir with the largest instance. A published server
// always takes guests' memory from it; others do if it is larger than 512 MiB.
func judgeReservoir(s Seen) Finding {
	if s.Kernel.Distribution == system.SmartOS {
		return fine("sledctl runs no VMs on SmartOS")
	}
	r, needs, who := s.Reservoir, s.Settings.Memory, "an instance"
	if s.Records.Instance != "" {
		needs, who = s.Records.Largest, s.Records.Instance
	}
	set := fmt.Sprintf("set instance.reservoir to auto, or to %s or more", size(needs))
	switch has := r.Size(); {
	case s.Settings.Reservoir > 0 && has != s.Settings.Reservoir:
		return fails("the reservoir is %s, and instance.reservoir is %s", size(has), size(s.Settings.Reservoir)).then("sledctl bootstrap")
	case has == 0 && s.Settings.Image:
		return fails("the reservoir is 0, and the server of an image takes all memory of guests from it; %s needs %s", who, size(needs)).byHand(set).then("sledctl bootstrap")
	case has == 0 && r.Transient > 0:
		return fine("0; the servers here take the memory of guests from outside of it (%s)", size(r.Transient))
	case has == 0:
		return warns("the reservoir is 0: a published server takes all memory of guests from it, one that you build does not").byHand(set).then("sledctl bootstrap")
	case has < needs:
		return fails("the reservoir is %s, and %s needs %s", size(has), who, size(needs)).byHand(set).then("sledctl bootstrap")
	default:
		return fine("%s, %s of it free; %s needs %s", size(has), size(r.Free), who, size(needs))
	}
}

// What virtual memory must be left.
//
// Guess zone-needs-256-mib: a zone and its server need less than 256 MiB of virtual memory next to
// the memory of the guest.
// Check: `swap -s` before and after `sledctl instance ensure`
const (
	leastSwap = 512 << 20
	someSwap  = 2 << 30
)

func judgeSwap(s Seen) Finding {
	switch free := s.Swap.Available; {
	case free < leastSwap:
		return fails("%s of virtual memory are left", size(free)).byHand("stop what uses memory, or add swap").then("swap -l")
	case free < someSwap:
		return warns("%s of virtual memory are left", size(free)).byHand("stop what uses memory, or add swap").then("swap -l")
	default:
		return fine("%s of virtual memory are left", size(free))
	}
}
