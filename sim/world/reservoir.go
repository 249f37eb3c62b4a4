package world

import (
	"cmp"
	"errors"
)

// The VMM reservoir: memory that the kernel has set aside for guests
// (usr/src/uts/intel/io/vmm/vmm_reservoir.c).

// MemoryMiB is the memory of the sled: 1 TiB, of which firmware has taken some.
const MemoryMiB = 1048064

// reservoirLimit is the most that the reservoir and guests next to it may have: all of the
// memory but 120 % of what the kernel keeps from being locked, which is a twenty-fifth of
// what is available at boot and 4 MiB (pages_pp_maximum).
//
// Guess reservoir-limit-by-locking: the kernel lets the reservoir have all of the memory but 120 %
// of pages_pp_maximum, which is 4 % of the memory and 4 MiB: 95 % of a large sled.
// Check: `rsrvrctl -q; prtconf -m`
// State: settled by usr/src/uts/intel/io/vmm/vmm_reservoir.c:333-348 and
// usr/src/uts/common/vm/vm_page.c (init_pages_pp_maximum)
//
// Guess all-memory-available-at-boot: what is available when the kernel computes pages_pp_maximum is
// all of the memory.
// Check: `echo pages_pp_maximum/E | mdb -k; prtconf -m`
const (
	physmem        = MemoryMiB << 20 / pageSize
	pagesPPMaximum = physmem/25 + 4<<20/pageSize
	reservoirLimit = (physmem*10 - pagesPPMaximum*12) * pageSize / 10
	pageSize       = 4 << 10
)

// UsualProcessors is how many a sled has: two threads of each of 64 cores.
const UsualProcessors = 128

// Processors is how many the sled has, all on-line.
func (tx *Tx) Processors() int { return cmp.Or(tx.State.Processors, UsualProcessors) }

// Reservoir is what the kernel reports about it, in bytes.
type Reservoir struct{ Free, Allocated, Transient, Limit uint64 }

// ErrReservoirSpace is ENOSPC: more than the limit, or less than guests have
// taken.
var ErrReservoirSpace = errors.New("no space left on device")

// QueryReservoir is VMM_RESV_QUERY.
func (tx *Tx) QueryReservoir() Reservoir {
	r := Reservoir{Limit: reservoirLimit}
	for _, p := range tx.State.Processes {
		if p.VM == nil || p.VM.Memory == 0 || gone(At(p.VM.Timeline, tx.Now).State) {
			continue
		}
		if p.VM.Reserved {
			r.Allocated += p.VM.Memory
		} else {
			r.Transient += p.VM.Memory
		}
	}
	r.Free = tx.State.Reservoir - r.Allocated
	return r
}

// gone says whether a machine in this state has given its memory back.
func gone(state string) bool { return state == "Destroyed" || state == "Failed" }

// SetReservoir is VMM_RESV_SET_TARGET.
func (tx *Tx) SetReservoir(target uint64) error {
	r := tx.QueryReservoir()
	if target < r.Allocated || target > r.Free+r.Allocated && target+r.Transient > r.Limit {
		return ErrReservoirSpace
	}
	tx.State.Reservoir = target
	return nil
}

// reservoirThreshold is the size from which a propolis-server takes guests'
// memory from the reservoir (oxidecomputer/propolis,
// bin/propolis-server/src/lib/config.rs, reservoir_decide).
const reservoirThreshold = 512 << 20

// The builds of propolis-server. Oxide publishes omicron-build, which always takes
// guests' memory from the reservoir (oxidecomputer/propolis,
// .github/buildomat/jobs/image.sh; bin/propolis-server/src/lib/config.rs).
const (
	DevelopmentBuild = "development"
	OmicronBuild     = "omicron-build"
)

// TakeMemory gives a machine its memory: from the reservoir if the server's build
// says so or if the reservoir is worth that name, else from the rest. The error is
// the kernel's (vmmr_alloc).
func (tx *Tx) TakeMemory(vm *VM, bytes uint64) error {
	r := tx.QueryReservoir()
	vm.Reserved = tx.State.Build == OmicronBuild || r.Free+r.Allocated >= reservoirThreshold
	if vm.Reserved && bytes > r.Free || !vm.Reserved && r.Free+r.Allocated+r.Transient+bytes > r.Limit {
		return ErrReservoirSpace
	}
	vm.Memory = bytes
	return nil
}
