package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"sync"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/illumos/opte"
	"github.com/sledctl/sledctl/sled/instance/ports"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/vpc"
)

// A VM has the place in the network that it was registered with: sledctl changes no address of
// it while the VM exists. So what would attach something that the VM does not have is
// refused, and so is what would detach something that it has; the rest needs nothing.

// errAsRegistered is why something cannot be attached.
const errAsRegistered = "a VM keeps the %s that it was registered with: none is attached or detached later"

// known wants a VM that is there. Of any other the sled agent says but that it
// failed (omicron sled-agent/src/instance_manager.rs).
func (s *server) known(c call) (VM, *api.Error) {
	v, err := s.find(c)
	if err != nil && err.Code == api.CodeNoSuchInstance || err == nil && v.State.Final() {
		return v, api.Internal(errors.New("there is no such VM"))
	}
	return v, err
}

// attach refuses to attach what a body describes.
func attach[B any](things string) func(*server, call) (any, *api.Error) {
	return func(s *server, c call) (any, *api.Error) {
		var body B
		if err := c.decode(&body); err != nil {
			return nil, err
		}
		if _, err := s.known(c); err != nil {
			return nil, err
		}
		if empty, ok := any(body).(interface{ Empty() bool }); ok && empty.Empty() {
			return nil, nil
		}
		return nil, api.BadRequest(fmt.Sprintf(errAsRegistered, things))
	}
}

// externalIP attaches an external address, or detaches one, where that changes nothing; else it is refused.
func externalIP(attach bool) func(*server, call) (any, *api.Error) {
	return func(s *server, c call) (any, *api.Error) {
		var body api.ExternalIP
		if err := c.decode(&body); err != nil {
			return nil, err
		}
		v, refused := s.known(c)
		if refused != nil {
			return nil, refused
		}
		r, err := s.work.record(c.Context(), v.Instance)
		if err != nil {
			return nil, api.Internal(err)
		}
		has := slices.ContainsFunc(r.Spec.NICs, func(n record.NIC) bool {
			return n.Ephemeral == body.Value.String() || slices.Contains(n.Floating, body.Value.String())
		})
		if has != attach {
			return nil, api.BadRequest(fmt.Sprintf(errAsRegistered, "external addresses"))
		}
		return nil, nil
	}
}

// detachSubnets succeeds: no subnet is attached.
func (s *server) detachSubnets(c call) (any, *api.Error) {
	_, err := s.known(c)
	return nil, err
}

// detachSubnet succeeds: the subnet is not attached.
func (s *server) detachSubnet(c call) (any, *api.Error) {
	if _, err := netip.ParsePrefix(c.params["subnet"]); err != nil {
		return nil, api.BadRequest(fmt.Sprintf("bad parameter in URL path: %q is not a subnet", c.params["subnet"]))
	}
	return s.detachSubnets(c)
}

// multicast joins a group, which cannot be, or leaves one, which has been done:
// either method takes either (omicron sled-agent/src/http_entrypoints.rs).
func (s *server) multicast(c call) (any, *api.Error) {
	var body api.Multicast
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	if _, err := s.known(c); err != nil {
		return nil, err
	}
	if body.Join != nil {
		return nil, api.BadRequest(fmt.Sprintf(errAsRegistered, "multicast groups"))
	}
	return nil, nil
}

// snapshot has Propolis take one of a disk on Crucible.
func (s *server) snapshot(c call) (any, *api.Error) {
	disk, err := c.uuid("disk_id")
	if err != nil {
		return nil, err
	}
	var body api.Snapshot
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	v, err := s.known(c)
	if err != nil {
		return nil, err
	}
	if err := s.work.Snapshot(c.Context(), v, disk, body.ID); err != nil {
		return nil, err
	}
	return body, nil
}

// withVMs adds the endpoints of VMs in their networks, and of their disks.
func withVMs(all []endpoint) []endpoint {
	first, groups, subnets := api.Version{Major: 1}, api.Version{Major: 7}, api.Version{Major: 18}
	vm := "/vmms/{propolis_id}"
	return append(all,
		endpoint{method: http.MethodPut, path: vm + "/external-ip", id: "vmm_put_external_ip", summary: "Attach an external address, which a VM has or does not get",
			since: first, body: api.ExternalIP{}, serve: externalIP(true)},
		endpoint{method: http.MethodDelete, path: vm + "/external-ip", id: "vmm_delete_external_ip", summary: "Detach an external address, which a VM keeps if it has it", since: first,
			body: api.ExternalIP{}, serve: externalIP(false)},
		endpoint{method: http.MethodPut, path: vm + "/multicast-group", id: "vmm_join_multicast_group", summary: "Join a multicast group, in which no VM is here", since: groups,
			body: api.Multicast{}, serve: (*server).multicast},
		endpoint{method: http.MethodDelete, path: vm + "/multicast-group", id: "vmm_leave_multicast_group", summary: "Leave a multicast group", since: groups,
			body: api.Multicast{}, serve: (*server).multicast},
		endpoint{method: http.MethodPut, path: vm + "/attached-subnets", id: "vmm_put_attached_subnets", summary: "Attach exactly these subnets, which can be none", since: subnets,
			body: api.Subnets{}, serve: attach[api.Subnets]("attached subnets")},
		endpoint{method: http.MethodPost, path: vm + "/attached-subnets", id: "vmm_post_attached_subnet", summary: "Attach a subnet, which no VM has here", since: subnets,
			body: api.Subnet{}, serve: attach[api.Subnet]("attached subnets")},
		endpoint{method: http.MethodDelete, path: vm + "/attached-subnets", id: "vmm_delete_attached_subnets", summary: "Detach all subnets", since: subnets,
			serve: (*server).detachSubnets},
		endpoint{method: http.MethodDelete, path: vm + "/attached-subnets/{subnet}", id: "vmm_delete_attached_subnet", summary: "Detach a subnet", since: subnets,
			serve: (*server).detachSubnet},
		endpoint{method: http.MethodPost, path: vm + "/disks/{disk_id}/snapshot", id: "vmm_issue_disk_snapshot_request", summary: "Have Propolis take a snapshot of a Crucible disk",
			since: first, body: api.Snapshot{}, reply: api.Snapshot{}, serve: (*server).snapshot},
	)
}

// What a control plane has decided for VPCs as a whole: the rules and routes of the NICs of its VMs, and where
// addresses are.

// errNoVPCs is a sled without OPTE.
const errNoVPCs = "this sled has no VPCs (OPTE): set network.opte_address"

// withVPCs adds their endpoints.
func withVPCs(all []endpoint) []endpoint {
	first := api.Version{Major: 1}
	return append(all,
		endpoint{method: http.MethodPut, path: "/vpc/{vpc_id}/firewall/rules", id: "vpc_firewall_rules_put", summary: "Give all NICs of VMs in a VPC these firewall rules", since: first,
			body: api.VPCFirewall{}, serve: (*server).putFirewall},
		endpoint{method: http.MethodGet, path: "/v2p", id: "list_v2p", summary: "Where addresses of VPCs are", since: first, reply: []api.Mapping{}, serve: (*server).mappings},
		endpoint{method: http.MethodPut, path: "/v2p", id: "set_v2p", summary: "Say where an address of a VPC is", since: first, body: api.Mapping{}, serve: mapped(vpc.Set)},
		endpoint{method: http.MethodDelete, path: "/v2p", id: "del_v2p", summary: "Forget where an address of a VPC is", since: first, body: api.Mapping{}, serve: mapped(vpc.Clear)},
		endpoint{method: http.MethodGet, path: "/vpc-routes", id: "list_vpc_routes", summary: "The versions of the routes of VPCs with VMs here", since: first, reply: []api.RouterState{},
			serve: (*server).routers},
		endpoint{method: http.MethodPut, path: "/vpc-routes", id: "set_vpc_routes", summary: "Give the NICs of VMs in VPCs these routes", since: first, body: []api.RouteSet{},
			serve: (*server).putRoutes},
		endpoint{method: http.MethodPut, path: "/eip-gateways", id: "set_eip_gateways", summary: "Take note of gateways: each external address leaves through any of them", since: first,
			body: api.Gateways{}, serve: gateways},
	)
}

// inVPCs wants a sled with OPTE.
func (s *server) inVPCs() *api.Error {
	if s.flat || !s.work.instances.OPTE.Address.IsValid() {
		return api.BadRequest(errNoVPCs)
	}
	return nil
}

func (s *server) putFirewall(c call) (any, *api.Error) {
	if _, refused := c.uuid("vpc_id"); refused != nil {
		return nil, refused
	}
	var body api.VPCFirewall
	if refused := c.decode(&body); refused != nil {
		return nil, refused
	}
	if refused := s.inVPCs(); refused != nil {
		return nil, refused
	}
	return nil, ofPorts(s.work.changeNICs(c.Context(), "vpc firewall", body.For))
}

// mappings lists them. A sled without OPTE has none.
func (s *server) mappings(c call) (any, *api.Error) {
	all := []api.Mapping{}
	if s.inVPCs() != nil {
		return all, nil
	}
	seen, err := opte.Mappings(c.Context(), s.work.env.Host)
	if err != nil {
		return nil, api.Internal(err)
	}
	for _, m := range seen {
		all = append(all, api.MappingOf(m))
	}
	return all, nil
}

// mapped does with a mapping what do does.
func mapped(do func(context.Context, operation.Env, opte.Mapping) (operation.Report, error)) func(*server, call) (any, *api.Error) {
	return func(s *server, c call) (any, *api.Error) {
		var body api.Mapping
		if refused := c.decode(&body); refused != nil {
			return nil, refused
		}
		m, err := body.Mapping()
		if err != nil {
			return nil, api.BadRequest(err.Error())
		}
		if refused := s.inVPCs(); refused != nil {
			return nil, refused
		}
		_, err = do(c.Context(), s.work.env, m)
		return nil, ofPorts(err)
	}
}

// routers are those of the control plane's VMs.
func (s *server) routers(c call) (any, *api.Error) {
	ids, err := s.work.routers(c.Context())
	if err != nil {
		return nil, api.Internal(err)
	}
	return s.routes.Known(ids), nil
}

// putRoutes gives routes to VMs. Those of VPCs without VMs here are passed over (vpc_routes_ensure of omicron
// illumos-utils/src/opte/port_manager.rs).
func (s *server) putRoutes(c call) (any, *api.Error) {
	var body []api.RouteSet
	if refused := c.decode(&body); refused != nil {
		return nil, refused
	}
	ids, err := s.work.routers(c.Context())
	if err != nil {
		return nil, api.Internal(err)
	}
	known := map[api.RouterID]bool{}
	for _, id := range ids {
		known[id] = true
	}
	return nil, ofPorts(s.routes.Put(body, known, func(sets []api.RouteSet) error {
		return s.work.changeNICs(c.Context(), "vpc routes", func(n record.NIC) (record.NIC, error) {
			var err error
			for _, set := range sets {
				if n, err = set.For(n); err != nil {
					return n, err
				}
			}
			return n, nil
		})
	}))
}

// gateways takes note, and no more: a control plane sends no routes to a sled that does not (omicron
// nexus/src/app/background/tasks/vpc_routes.rs).
func gateways(_ *server, c call) (any, *api.Error) {
	var body api.Gateways
	return nil, c.decode(&body)
}

// ofPorts is the answer where rules, routes or mappings were not taken over.
func ofPorts(err error) *api.Error {
	if bad, ok := errors.AsType[*opte.InvalidError](err); ok {
		return api.BadRequest(bad.Error())
	}
	if err != nil {
		return answer(err)
	}
	return nil
}

// changesAtOnce bounds how many VMs are changed side by side.
const changesAtOnce = 8

// changeNICs changes the NICs of all VMs of the control plane that are in VPCs. It goes on if who asked goes
// away: a VM that comes up is waited for.
func (w *work) changeNICs(ctx context.Context, verb string, change func(record.NIC) (record.NIC, error)) error {
	all, err := w.inVPCs(ctx)
	if err != nil {
		return err
	}
	errs := make([]error, len(all))
	done := make(chan struct{})
	w.group.Go(func() {
		defer close(done)
		var changing sync.WaitGroup
		places := make(chan struct{}, changesAtOnce)
		for i, r := range all {
			places <- struct{}{}
			changing.Go(func() {
				defer func() { <-places }()
				errs[i] = ports.Change(w.ctx, w.env, verb, r.ID, change)
			})
		}
		changing.Wait()
	})
	select {
	case <-done:
		return errors.Join(errs...)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// inVPCs are the records of the control plane's VMs with ports.
func (w *work) inVPCs(ctx context.Context) (found []record.Record, err error) {
	view, err := w.view(ctx)
	if err != nil {
		return nil, err
	}
	all, err := record.All(view)
	for _, r := range all {
		if r.VMM != nil && slices.ContainsFunc(r.Spec.NICs, func(n record.NIC) bool { return n.OPTE }) {
			found = append(found, r)
		}
	}
	return found, err
}

func (w *work) routers(ctx context.Context) (ids []api.RouterID, err error) {
	all, err := w.inVPCs(ctx)
	seen := map[api.RouterID]bool{}
	for _, r := range all {
		for _, n := range r.Spec.NICs {
			for _, id := range api.RoutersOf(n) {
				if n.OPTE && !seen[id] {
					seen[id] = true
					ids = append(ids, id)
				}
			}
		}
	}
	return ids, err
}
