// Package memory sets aside the memory that guests get: the VMM reservoir
// has the size that is configured, or is left alone where none is.
package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/reservoir"
)

// Settings are its configuration: one of the three, or none, which leaves the reservoir
// as it is.
type Settings struct {
	Auto      bool   // what the host can spare
	Percent   int    // of the host's memory, 1 to 99
	Reservoir uint64 // bytes, whole MiB
}

// Seen is what a size is decided by.
type Seen struct {
	Reservoir reservoir.State
	Memory    uint64 // of the host, in bytes; 0: not asked for
}

const (
	// hostShare is what the host keeps for itself where the size is automatic, and
	// pageShare what the kernel needs to describe each page of memory. Of the rest, which
	// is sparePart permille, VMs get the reservoir: what omicron's sled agent does on a
	// machine of its own (sled-agent/src/vmm_reservoir.rs).
	hostShare = 6 << 30
	pageSize  = 4 << 10
	pageShare = 120
	sparePart = 863
	// grain is what sizes are rounded down to, as there.
	grain = 2 << 20
	// perGiB is how long the kernel takes to free memory: 100 GiB in 13 s on a PC
	// (omicron#5121).
	perGiB = 130 * time.Millisecond
)

// SizeError is a size that the reservoir cannot get.
type SizeError struct {
	Wanted uint64
	State  reservoir.State
}

// Error shows what stands against it.
func (e *SizeError) Error() string {
	if e.Wanted < e.State.Allocated {
		return fmt.Sprintf("the VMM reservoir cannot shrink to %d MiB: guests have taken %d MiB of it", e.Wanted>>20, e.State.Allocated>>20)
	}
	return fmt.Sprintf("the VMM reservoir cannot grow to %d MiB: the kernel allows %d MiB, of which guests outside it have taken %d MiB",
		e.Wanted>>20, e.State.Limit>>20, e.State.Transient>>20)
}

func (*SizeError) Kind() fault.Kind { return fault.Refused }

// Unwrap says that it is refused.
func (e *SizeError) Unwrap() error { return host.ErrRefused }

// Hint says what would be right.
func (e *SizeError) Hint() string {
	if e.Wanted < e.State.Allocated {
		return fmt.Sprintf("stop instances first, or set instance.reservoir to %dM or more", e.State.Allocated>>20)
	}
	return fmt.Sprintf("set instance.reservoir to auto, or to %dM or less", (e.State.Limit-e.State.Transient)>>20)
}

// NothingToSpareError is a host whose memory is its own.
type NothingToSpareError struct{ Memory uint64 }

// Error shows what it has.
func (e *NothingToSpareError) Error() string {
	return fmt.Sprintf("the sled has %d MiB of memory: of the %d MiB that it keeps for itself, nothing is left for VMs", e.Memory>>20, uint64(hostShare)>>20)
}

func (*NothingToSpareError) Kind() fault.Kind { return fault.Refused }

// Unwrap says that it is refused.
func (*NothingToSpareError) Unwrap() error { return host.ErrRefused }

// Hint says what would be right.
func (*NothingToSpareError) Hint() string { return "set instance.reservoir to a size, e.g. 2G" }

// Ensure gives the reservoir its size. Errors: *SizeError, *NothingToSpareError, before
// anything is changed.
func (s Settings) Ensure(ctx context.Context, env operation.Env, dryRun bool) (operation.Report, error) {
	return operation.Run(ctx, env, operation.Request[Seen]{
		Verb: "bootstrap memory", Subject: "sled", DryRun: dryRun,
		Look: s.look,
		Decide: func(_ ledger.View, seen Seen, _ operation.Stamp) (operation.Decision, error) {
			return s.decide(seen)
		},
	})
}

func (s Settings) look(ctx context.Context, h host.Host) (seen Seen, err error) {
	if s.Auto || s.Percent > 0 {
		if seen.Memory, err = reservoir.Memory(ctx, h); err != nil {
			return seen, err
		}
	}
	seen.Reservoir, err = reservoir.Query(ctx, h)
	return seen, err
}

// wanted is the size that the reservoir is to have.
func (s Settings) wanted(seen Seen) (uint64, error) {
	switch {
	case s.Percent > 0:
		return seen.Memory / 100 * uint64(s.Percent) / grain * grain, nil
	case !s.Auto:
		return s.Reservoir, nil
	}
	own := hostShare + seen.Memory/pageSize*pageShare
	if seen.Memory <= own {
		return 0, &NothingToSpareError{Memory: seen.Memory}
	}
	r := seen.Reservoir
	spare := min((seen.Memory-own)/1000*sparePart, r.Limit-min(r.Limit, r.Transient))
	return max(spare/grain*grain, r.Allocated), nil
}

// decide is pure.
func (s Settings) decide(seen Seen) (operation.Decision, error) {
	d := operation.Decision{Plan: plan.Plan{Policy: plan.Stop}}
	has := seen.Reservoir
	wanted, err := s.wanted(seen)
	if err != nil || wanted == 0 || wanted == has.Size() {
		return d, err
	}
	if wanted < has.Allocated || wanted+has.Transient > has.Limit {
		return d, &SizeError{Wanted: wanted, State: has}
	}
	d.Plan.Actions = []plan.Action{{
		ID: "reservoir.set", Object: "reservoir", Change: plan.Modify,
		Why:  s.why(seen, wanted),
		Step: reservoir.Set{Size: wanted, Old: has.Size()},
	}}
	d.Intent.Changes = []operation.Object{{Kind: "reservoir", Name: "reservoir", Old: fmt.Sprint(has.Size())}}
	return d, nil
}

// Did tells the size that the reservoir was given, and how long that took; empty: none.
func Did(report operation.Report) string {
	for _, a := range report.Outcome.Done {
		if set, ok := a.Step.(reservoir.Set); ok {
			return fmt.Sprintf("the VMM reservoir has %d MiB, which took %.1f s", set.Size>>20, report.Elapsed.Seconds())
		}
	}
	return ""
}

// why shows both sizes, where the new one comes from, and how long it takes where
// that is worth a word.
func (s Settings) why(seen Seen, wanted uint64) string {
	said := fmt.Sprintf("is %d MiB, wanted %d MiB", seen.Reservoir.Size()>>20, wanted>>20)
	switch {
	case s.Auto:
		said += fmt.Sprintf(" (auto) of the sled's %d MiB", seen.Memory>>20)
	case s.Percent > 0:
		said += fmt.Sprintf(" (%d%%) of the sled's %d MiB", s.Percent, seen.Memory>>20)
	}
	grows := time.Duration((max(wanted, seen.Reservoir.Size())-seen.Reservoir.Size())>>30) * perGiB
	if grows >= 5*time.Second {
		said += fmt.Sprintf("; takes about %v", grows.Round(time.Second))
	}
	return said
}
