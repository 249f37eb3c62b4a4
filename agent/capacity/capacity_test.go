package capacity

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/illumos/reservoir"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/status"
)

// Where memory is set aside, VMs get no other; else what the kernel allows, and nobody has taken.
func TestTheMemoryOfGuests(t *testing.T) {
	state := &reservoir.State{Free: 4, Allocated: 2, Transient: 3, Limit: 20}
	for _, c := range []struct {
		state *reservoir.State
		set   bool
		want  api.CapacityMemory
	}{
		{state, true, api.CapacityMemory{Reservoir: true, Total: 6, Free: 4}},
		{state, false, api.CapacityMemory{Total: 20, Free: 15}},
		{&reservoir.State{Transient: 3, Limit: 2}, false, api.CapacityMemory{Total: 2}},
		{nil, true, api.CapacityMemory{Reservoir: true}},
	} {
		if got := Of(Seen{Memory: c.state, Reservoir: c.set}).Memory; got != c.want {
			t.Errorf("%+v, set aside %v: %+v, want %+v", c.state, c.set, got, c.want)
		}
	}
}

// A pool that does not work holds no zones, and what is stopped takes nothing.
func TestWhatASledHolds(t *testing.T) {
	spec := record.Spec{CPUs: 2, Memory: 5}
	got := Of(Seen{
		Working:   []status.Pool{{Name: "b", State: "ready", Size: 9, Free: 4}, {Name: "a", State: "absent"}},
		ZonePools: []string{"a", "b"},
		Records: []record.Record{
			{Spec: spec, Wanted: record.WantedRunning}, {Spec: spec, Wanted: record.WantedStopped},
			{Spec: spec, Wanted: record.WantedStopped, Keeper: record.Fleet, VMM: &record.VMM{}},
		},
	})
	want := api.Capacity{
		Pools: []api.CapacityPool{{Name: "a", State: "absent"}, {Name: "b", State: "ready", Size: 9, Free: 4, Zones: true}},
		Instances: []api.CapacityKept{
			{Keeper: record.Operator, Instances: 2, Up: 1, CPUs: 2, Memory: 5}, {Keeper: record.Fleet, Instances: 1, Up: 1, CPUs: 2, Memory: 5},
		},
		Unknown: []string{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
