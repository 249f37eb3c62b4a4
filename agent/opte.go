package agent

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"

	"github.com/sledctl/sledctl/agent/api"
)

// What the control plane asks of a VM's place in the network is done by OPTE,
// which a sled of sledctl does not have. So what would attach something is
// refused, and what would detach something succeeds at once: nothing of the kind
// exists.

// errNoOPTE is why something cannot be attached.
const errNoOPTE = "this sled has no OPTE: VMs have no %s"

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
		return nil, api.BadRequest(fmt.Sprintf(errNoOPTE, things))
	}
}

// detach succeeds: nothing is attached.
func detach[B any](s *server, c call) (any, *api.Error) {
	var body B
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	_, err := s.known(c)
	return nil, err
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
		return nil, api.BadRequest(fmt.Sprintf(errNoOPTE, "multicast groups"))
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
		endpoint{method: http.MethodPut, path: vm + "/external-ip", id: "vmm_put_external_ip", summary: "Attach an external address, which no VM has here",
			since: first, body: api.ExternalIP{}, serve: attach[api.ExternalIP]("external addresses")},
		endpoint{method: http.MethodDelete, path: vm + "/external-ip", id: "vmm_delete_external_ip", summary: "Detach an external address", since: first,
			body: api.ExternalIP{}, serve: detach[api.ExternalIP]},
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
