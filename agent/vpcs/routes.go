// Package vpcs is what an agent remembers of the networks of VPCs, as long as it runs: the routes that the
// control plane has sent, for VMs that are registered later. A VM's own routes are in its record.
//
// A sled agent forgets them with its end, too: it then lists each router without a version, and is sent all
// again (PortManager::new and vpc_routes_list of omicron illumos-utils/src/opte/port_manager.rs; vpc_routes of
// nexus/src/app/background/tasks).
package vpcs

import (
	"sync"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// Routes are those that were sent. The zero value has none.
type Routes struct {
	applying sync.Mutex // by one request at a time
	mu       sync.Mutex
	sets     map[api.RouterID]set
}

type set struct {
	api.RouteSet
	settled bool // all VMs have them
}

// Known are the routers of NICs, with the version of their routes that all VMs have.
func (r *Routes) Known(ids []api.RouterID) []api.RouterState {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := []api.RouterState{}
	for _, id := range ids {
		state := api.RouterState{ID: id}
		if s := r.sets[id]; s.settled {
			state.Version = s.Version
		}
		all = append(all, state)
	}
	return all
}

// For is a NIC with the routes that were sent for it.
func (r *Routes) For(n record.NIC) (record.NIC, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range api.RoutersOf(n) {
		if s, sent := r.sets[id]; sent {
			var err error
			if n, err = s.For(n); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// Put takes routes over, but for those of unknown routers and those that are no newer, and has apply give
// them to the VMs that exist. Where that fails, they are to be sent again.
func (r *Routes) Put(sets []api.RouteSet, known map[api.RouterID]bool, apply func([]api.RouteSet) error) error {
	r.applying.Lock()
	defer r.applying.Unlock()
	taken := r.take(sets, known)
	if len(taken) == 0 {
		return nil
	}
	if err := apply(taken); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range taken {
		r.sets[s.ID] = set{s, true}
	}
	return nil
}

func (r *Routes) take(sets []api.RouteSet, known map[api.RouterID]bool) (taken []api.RouteSet) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.sets {
		if !known[id] { // its last VM has gone
			delete(r.sets, id)
		}
	}
	for _, s := range sets {
		old, sent := r.sets[s.ID]
		if !known[s.ID] || sent && old.settled && old.Version != nil && s.Version != nil && !old.Version.ReplacedBy(*s.Version) {
			continue
		}
		if r.sets == nil {
			r.sets = map[api.RouterID]set{}
		}
		r.sets[s.ID] = set{s, false}
		taken = append(taken, s)
	}
	return taken
}
