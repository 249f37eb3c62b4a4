// Package capacity says what a sled can hold: for those who place VMs on many sleds.
package capacity

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/processor"
	"github.com/sledctl/sledctl/illumos/reservoir"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/status"
)

// Seen is what the capacity is made from. What could not be looked at is nil, and in Unknown.
type Seen struct {
	Time       time.Time
	Keeper     record.Keeper
	Processors int
	Memory     *reservoir.State
	Reservoir  bool // sledctl places no VM beyond it
	// Working are the pools as status has them, and ZonePools those that VMs can be made on.
	Working   []status.Pool
	ZonePools []string
	Records   []record.Record
	Unknown   []string
}

// Settings are what a look needs.
type Settings struct {
	Host      host.Host
	Status    func(context.Context) (api.Status, error)
	ZonePools func(context.Context, host.Host) ([]string, error)
	Reservoir bool
}

// Look looks at the sled. The error is that of the records: without them, nobody knows what is
// on the sled.
func (s Settings) Look(ctx context.Context, view ledger.View) (api.Capacity, error) {
	keeper, _, err := record.KeeperOf(view)
	if err != nil {
		return api.Capacity{}, err
	}
	seen := Seen{Time: time.Now().UTC(), Keeper: keeper.Keeper, Reservoir: s.Reservoir}
	if seen.Records, err = record.All(view); err != nil {
		return api.Capacity{}, err
	}
	unknown := func(what string, err error) bool {
		if err != nil {
			seen.Unknown = append(seen.Unknown, fmt.Sprintf("%s: %v", what, err))
		}
		return err != nil
	}
	if n, err := processor.Online(ctx, s.Host); !unknown("processors", err) {
		seen.Processors = n
	}
	if m, err := reservoir.Query(ctx, s.Host); !unknown("memory", err) {
		seen.Memory = &m
	}
	if now, err := s.Status(ctx); !unknown("pools", err) {
		seen.Working = now.Pools
	}
	if pools, err := s.ZonePools(ctx, s.Host); !unknown("pools for zones", err) {
		seen.ZonePools = pools
	}
	return Of(seen), nil
}

// Of makes the capacity from what was seen. It is pure.
func Of(seen Seen) api.Capacity {
	c := api.Capacity{
		Time: seen.Time, Keeper: seen.Keeper, CPUs: seen.Processors, Memory: memory(seen.Memory, seen.Reservoir),
		Pools: []api.CapacityPool{}, Instances: kept(seen.Records), Unknown: append([]string{}, seen.Unknown...),
	}
	for _, p := range seen.Working {
		c.Pools = append(c.Pools, api.CapacityPool{
			Name: p.Name, State: p.State, Size: p.Size, Free: p.Free, Zones: p.Works() && slices.Contains(seen.ZonePools, p.Name),
		})
	}
	slices.SortFunc(c.Pools, func(a, b api.CapacityPool) int { return strings.Compare(a.Name, b.Name) })
	return c
}

// memory is what guests can have: the reservoir, or, where none is set aside, what the kernel
// allows. What others take next to the reservoir is not free.
func memory(m *reservoir.State, set bool) api.CapacityMemory {
	switch {
	case m == nil:
		return api.CapacityMemory{Reservoir: set}
	case set:
		return api.CapacityMemory{Reservoir: true, Total: m.Size(), Free: m.Free}
	}
	return api.CapacityMemory{Total: m.Limit, Free: m.Limit - min(m.Limit, m.Allocated+m.Transient)}
}

// kept counts what each keeper has.
func kept(records []record.Record) []api.CapacityKept {
	all := []api.CapacityKept{}
	for _, k := range record.Keepers() {
		one := api.CapacityKept{Keeper: k}
		for _, r := range records {
			if r.KeptBy() != k {
				continue
			}
			one.Instances++
			if r.Wanted == record.WantedRunning || len(r.Incarnations()) > 0 || r.VMM != nil {
				one.Up, one.CPUs, one.Memory = one.Up+1, one.CPUs+r.Spec.CPUs, one.Memory+r.Spec.Memory
			}
		}
		if one.Instances > 0 {
			all = append(all, one)
		}
	}
	return all
}
