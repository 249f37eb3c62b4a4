package instance

import (
	"context"
	"fmt"
	"strconv"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/processor"
	"github.com/sledctl/sledctl/illumos/reservoir"
	"github.com/sledctl/sledctl/propolis/packaging"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/record"
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

// manyCPUs is up to how many virtual CPUs the host is not asked for its processors: each
// sled has as many.
const manyCPUs = 4

// observeProcessors asks the host for its processors, where a VM wants many; else it is 0.
func observeProcessors(ctx context.Context, wanted int, h host.Host) (int, error) {
	if wanted <= manyCPUs {
		return 0, nil
	}
	return processor.Online(ctx, h)
}

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

// fits reports whether there are processors and memory for a new life. The memory of the
// instance's present one is given back first.
func fits(spec record.Spec, seen Observed, old record.Record, booted bool) error {
	if seen.Processors > 0 && spec.CPUs > seen.Processors {
		return &TooManyCPUsError{CPUs: spec.CPUs, Online: seen.Processors}
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
