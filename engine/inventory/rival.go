package inventory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/smf"
	"github.com/sledctl/sledctl/zfs"
)

// Rival is the part that shows whether another program works on this sled that takes
// sledctl's objects for its own: every operation that changes something asks.
const Rival Part = "other owners"

// owner is a service that keeps zones, links and pools of its own.
type owner struct {
	service string
	does    string // why the two cannot share a sled
	// owns says whether one of these pools is the owner's; nil: all are.
	owns func([]zfs.Pool) bool
}

// owners are those that are known.
//
// Guess vmadmd-and-pool-zones: vmadmd is svc:/system/smartdc/vmadmd, and the pool of a SmartOS
// machine is called zones.
// Check: `svcs vmadmd; zpool list` there
func owners() []owner {
	return []owner{
		// When it starts it removes every zone and VNIC under its prefixes, of which
		// one was ours, and it uses the same pools (oxidecomputer/omicron,
		// sled-agent/src/sled_agent.rs, cleanup).
		{service: "svc:/oxide/sled-agent", does: "it uses the same pools, and removes zones and VNICs that it does not know"},
		// It manages each zone that it finds, and keeps them on the pool zones
		// (TritonDataCenter/smartos-live, src/vm: VM.js, vmadmd.js).
		{service: "svc:/system/smartdc/vmadmd", does: "it keeps its VMs on the pool zones, on which these would lie", owns: holdsZones},
	}
}

// smartPool is the pool of a SmartOS machine.
const smartPool = "zones"

func holdsZones(pools []zfs.Pool) bool { return slices.Contains(ZonePools(pools), smartPool) }

// RivalError is a sled that somebody else works on.
type RivalError struct{ Service, State, Does string }

// Error names the other.
func (e *RivalError) Error() string {
	return fmt.Sprintf("%s is %s, and cannot share a sled with sledctl: %s", e.Service, e.State, e.Does)
}

func (*RivalError) Kind() fault.Kind { return fault.Refused }

// Hint says how to disable it.
func (e *RivalError) Hint() string { return "to disable it, run: svcadm disable " + e.Service }

// OtherService is a service of another owner that may be at work: it is not disabled.
type OtherService struct {
	FMRI, State string
	Does        string // why it and sledctl cannot share a sled
	// Blocks is set if what it keeps is what sledctl would use.
	Blocks bool
}

// OtherServices lists the services of other owners that may be at work.
func OtherServices(ctx context.Context, h host.Host) ([]OtherService, error) {
	known := owners()
	var services []string
	for _, o := range known {
		services = append(services, o.service)
	}
	states, err := smf.Find(ctx, h, services...)
	if err != nil {
		return nil, err
	}
	var all []OtherService
	for _, fmri := range slices.Sorted(maps.Keys(states)) {
		i := slices.IndexFunc(known, func(o owner) bool { return strings.HasPrefix(fmri, o.service+":") })
		if i < 0 || states[fmri] == smf.Disabled {
			continue
		}
		other := OtherService{FMRI: fmri, State: states[fmri], Does: known[i].does, Blocks: true}
		if known[i].owns != nil {
			pools, err := zfs.Pools(ctx, h)
			if err != nil {
				return nil, err
			}
			other.Blocks = known[i].owns(pools)
		}
		all = append(all, other)
	}
	return all, nil
}

// lookRival fails if a service of another owner is there that sledctl cannot share the
// sled with.
func lookRival(ctx context.Context, h host.Host) error {
	others, err := OtherServices(ctx, h)
	if err != nil {
		return err
	}
	for _, o := range others {
		if o.Blocks {
			return &RivalError{Service: o.FMRI, State: o.State, Does: o.Does}
		}
	}
	return nil
}
