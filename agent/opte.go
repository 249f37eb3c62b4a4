package agent

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// A VM has the place in the network that it was registered with: sledctl changes none of
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
