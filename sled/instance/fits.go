package instance

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/processor"
	"github.com/sledctl/sledctl/illumos/reservoir"
	"github.com/sledctl/sledctl/illumos/system"
	"github.com/sledctl/sledctl/propolis/packaging"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/zfs"
)

// InsufficientMemoryError is memory that the VMM reservoir does not have: Propolis takes a
// guest's memory from it when the VM is made, which would fail.
type InsufficientMemoryError struct {
	Memory uint64
	State  reservoir.State
}

// Error shows what there is.
func (e *InsufficientMemoryError) Error() string {
	return fmt.Sprintf(
		"memory is %d MiB, and of the VMM reservoir's %d MiB %d MiB are free", e.Memory>>20, e.State.Size()>>20,
		e.State.Free>>20,
	)
}

func (*InsufficientMemoryError) Kind() fault.Kind { return fault.Refused }

// Unwrap says that it is refused.
func (e *InsufficientMemoryError) Unwrap() error { return host.ErrRefused }

// Hint says how to get the memory.
func (e *InsufficientMemoryError) Hint() string {
	return "stop another instance, or ask for less memory; to enlarge the reservoir, set instance.reservoir and run: sledctl bootstrap"
}

// observeReservoir asks the reservoir, where one is configured.
func observeReservoir(ctx context.Context, configured bool, h host.Host) (*reservoir.State, error) {
	if !configured {
		return nil, nil
	}
	state, err := reservoir.Query(ctx, h)
	return &state, err
}

// manyCPUs is up to how many virtual CPUs, and up to which cap, the host is not asked for its
// processors: each sled has as many.
const manyCPUs = 4

// observeProcessors asks the host for its processors, where a VM wants many or a high cap that
// it did not have; else it is 0.
func observeProcessors(ctx context.Context, had, wanted record.Spec, h host.Host) (int, error) {
	if wanted.CPUs <= manyCPUs && (wanted.CPUCap == had.CPUCap || !above(wanted.CPUCap, manyCPUs)) {
		return 0, nil
	}
	return processor.Online(ctx, h)
}

// above reports whether a cap is more than so many processors.
func above(limit record.CPUCap, processors int) bool { return int(limit) > 100*processors }

// TooManyCPUsError is a VM with more virtual CPUs than the host has processors, for
// which no machine can be made.
type TooManyCPUsError struct{ CPUs, Online int }

// Error shows both.
func (e *TooManyCPUsError) Error() string {
	return fmt.Sprintf("cpus is %d, and the sled has %d processors on-line", e.CPUs, e.Online)
}

func (*TooManyCPUsError) Kind() fault.Kind { return fault.Refused }

// Unwrap says that it is refused.
func (*TooManyCPUsError) Unwrap() error { return host.ErrRefused }

// Hint says what would be right.
func (e *TooManyCPUsError) Hint() string { return fmt.Sprintf("ask for %d CPUs or fewer", e.Online) }

// HighCapError is a cap above the processors of the host, which would bound nothing.
type HighCapError struct {
	Cap    record.CPUCap
	Online int
}

// Error shows both.
func (e *HighCapError) Error() string {
	return fmt.Sprintf("cpu-cap is %v, and the sled has %d processors on-line", e.Cap, e.Online)
}

func (*HighCapError) Kind() fault.Kind { return fault.Refused }

// Unwrap says that it is refused.
func (*HighCapError) Unwrap() error { return host.ErrRefused }

// Hint says what would be right.
func (e *HighCapError) Hint() string {
	return fmt.Sprintf("ask for a cap of %d or less, or with --cpu-cap 0 for none", e.Online)
}

// fits reports whether there are processors and memory for a new life. The memory of the
// instance's present one is given back first. A cap that it has stays, also where processors
// were taken off-line since.
func fits(spec record.Spec, seen Observed, old record.Record, booted bool) error {
	if seen.Processors > 0 && spec.CPUs > seen.Processors {
		return &TooManyCPUsError{CPUs: spec.CPUs, Online: seen.Processors}
	}
	if seen.Processors > 0 && spec.CPUCap != old.Spec.CPUCap && above(spec.CPUCap, seen.Processors) {
		return &HighCapError{Cap: spec.CPUCap, Online: seen.Processors}
	}
	room := seen.Room
	if room == nil {
		return nil
	}
	free := room.Free
	if booted && old.Incarnation != nil && old.Incarnation.Ensured {
		free += old.Spec.Memory
	}
	if spec.Memory > free {
		return &InsufficientMemoryError{Memory: spec.Memory, State: *room}
	}
	return nil
}

// A pool of which less than leastRoom per cent is free, or a sled on which less than
// leastMemory bytes of virtual memory are left, keeps no spares: what a VM needs comes first.
const (
	leastRoom   = 10
	leastMemory = 2 << 30
)

// ObserveSpareMemory asks for the virtual memory that is left.
func ObserveSpareMemory(ctx context.Context, h host.Host) (*system.Swap, error) {
	left, err := system.QuerySwap(ctx, h)
	if err != nil {
		return nil, err
	}
	return &left, nil
}

// shortage is why no spares are kept on a pool now; empty: they are. Memory that could not
// be asked for is not short.
func shortage(pools []zfs.Pool, pool string, memory *system.Swap) string {
	switch {
	case slices.ContainsFunc(pools, func(p zfs.Pool) bool { return p.Name == pool && crowded(p) }):
		return fmt.Sprintf("less than %d %% of its pool is free", leastRoom)
	case memory != nil && memory.Available < leastMemory:
		return fmt.Sprintf("less than %d GiB of virtual memory is left", leastMemory>>30)
	}
	return ""
}

// crowded reports whether a pool has no room for what nobody uses yet.
func crowded(p zfs.Pool) bool { return p.Size > 0 && room(p) < leastRoom }

// ShortOfSpares lists the pools with spares that are to be given up, for lack of space or of
// memory.
func (s Settings) ShortOfSpares(ctx context.Context, h host.Host, view ledger.View) ([]string, error) {
	recorded, err := record.Spares(view)
	if err != nil || len(recorded) == 0 {
		return nil, err
	}
	memory, err := ObserveSpareMemory(ctx, h)
	if err != nil {
		return nil, err
	}
	pools, err := inventory.Look(ctx, h, inventory.Want{Parts: []inventory.Part{inventory.Pools}}).Pools()
	var short []string
	for _, spare := range recorded {
		if err == nil && shortage(pools, spare.Pool, memory) != "" && !slices.Contains(short, spare.Pool) {
			short = append(short, spare.Pool)
		}
	}
	return short, err
}

// freeRoom removes the spares of a pool that has no room, for a VM that can take none of them.
func (c chooser) freeRoom(pool string) (freed GivenUp, err error) {
	pools, err := c.inv.Pools()
	if err != nil || !slices.ContainsFunc(pools, func(p zfs.Pool) bool { return p.Name == pool && crowded(p) }) {
		return freed, err
	}
	recorded, err := record.Spares(c.view)
	for _, spare := range recorded {
		if err == nil && spare.Pool == pool && !c.leaving["zone "+spare.Zone] && c.spareDoubt(spare) == "" {
			err = freed.add(spare, c.inv, shortage(pools, pool, nil))
		}
	}
	return freed, err
}

// suits refuses what cannot be brought up this way.
func suits(k layout.Packaging, s Settings, inv *inventory.Inventory, a record.Address) error {
	if link, there := inv.Link(s.ControlLink); there && link.MTU != 0 && k.MTU > link.MTU {
		return &NarrowLinkError{Link: link.Name, Is: link.MTU, Needed: k.MTU}
	}
	if !k.ByItself {
		return nil
	}
	if s.MTU != 0 && s.MTU != k.MTU {
		return &record.InputError{
			Field: "network.mtu", Value: strconv.Itoa(s.MTU),
			Want: fmt.Sprintf("%d or 0: the service in the zone image sets it", k.MTU),
		}
	}
	if a.Mode != record.Static || !a.Prefix.Addr().Is6() || a.Prefix.Bits() != packaging.PrefixLength || !layout.GatewayOf(s.Blueprint(), a).IsValid() {
		want := fmt.Sprintf(
			"an IPv6 address, e.g. fd00::5/%d, with a gateway, which the service in the zone image wants "+
				"(network.underlay and network.gateway give both)",
			packaging.PrefixLength,
		)
		return &record.InputError{Field: "address", Value: a.String(), Want: want}
	}
	return nil
}

// NarrowLinkError is a control link over which VNICs cannot have the MTU that
// they must have.
type NarrowLinkError struct {
	Link       string
	Is, Needed int
}

// Error shows both.
func (e *NarrowLinkError) Error() string {
	return fmt.Sprintf("the control link %s has an MTU of %d, and control VNICs need %d", e.Link, e.Is, e.Needed)
}

func (*NarrowLinkError) Kind() fault.Kind { return fault.Refused }

// Hint says what would be right.
func (e *NarrowLinkError) Hint() string {
	return "to give the sled its own control network, set network.etherstub; or run: " +
		"dladm set-linkprop -p mtu=" + strconv.Itoa(e.Needed) + " " + e.Link
}

// unfit says how bad it would be to put one more zone on a pool: it does not
// take part in full health, or it is as good as full.
func unfit(p zfs.Pool) int {
	switch {
	case p.Health != "ONLINE":
		return 2
	case room(p) < leastRoom:
		return 1
	}
	return 0
}

// lacksRoom is 1 for a pool without room that also has no spare, whose room a zone could
// take.
func (c chooser) lacksRoom(p zfs.Pool) int {
	spares, err := record.Spares(c.view)
	ready := err == nil && slices.ContainsFunc(spares, func(s record.Spare) bool {
		return s.Pool == p.Name && s.Unfit == "" && !c.leaving["zone "+s.Zone]
	})
	if crowded(p) && !ready {
		return 1
	}
	return 0
}

// room is what is free of a pool, in whole per cent: pools that differ by the
// size of a clone are the same.
func room(p zfs.Pool) uint64 {
	if p.Size == 0 {
		return 0
	}
	return uint64(float64(p.Free) / float64(p.Size) * 100)
}
