package cli

import (
	"runtime/debug"
	"slices"
)

// By how many percent the heap has grown when the collector begins: as the Go runtime
// would have it, for a command, and for an agent.
const usual, late, early = 100, 300, 50

// CollectLate has the garbage collector begin when the heap is four times what lives, not
// twice, unless GOGC asks for something else: most commands are over by then.
func CollectLate() { collect(late, usual) }

// CollectEarly has it begin when the heap has grown by a half, unless GOGC asks for something
// else: an agent rests most of the time, next to VMs that could use the memory.
func CollectEarly() { collect(early, usual, late) }

// collect sets the percentage unless it is none of those that it may replace.
func collect(percent int, instead ...int) {
	if was := debug.SetGCPercent(percent); !slices.Contains(instead, was) {
		debug.SetGCPercent(was)
	}
}
