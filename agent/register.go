package agent

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/ports"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/localdisk"
)

// register makes a VM known, so that it can be run. A known VM stays
// as it is: the body is not read (omicron
// sled-agent/src/instance_manager.rs).
func (s *server) register(c call) (any, *api.Error) {
	id, refused := c.uuid("propolis_id")
	if refused != nil {
		return nil, refused
	}
	data, refused := c.read()
	if refused != nil {
		return nil, refused
	}
	body, refused := api.ParseRegister(c.version, data)
	if refused != nil {
		return nil, refused
	}
	if v, known := s.table.Get(id); known {
		switch {
		case v.Instance != body.Instance.String():
			return nil, api.Internal(fmt.Errorf("VM %s is of instance %s", id, v.Instance))
		case v.State.Final():
			return nil, api.StatusOnly(http.StatusGone, api.CodeNoSuchInstance, nil)
		}
		s.read(v)
		return v.wire(), nil
	}
	r, refused := s.registration(id, c.version, body)
	if refused != nil {
		return nil, refused
	}
	v, refused := s.work.Register(c.Context(), id, r)
	if refused != nil {
		return nil, refused
	}
	// Routes that came since are for those that were recorded then.
	if err := ports.Change(c.Context(), s.work.env, "vpc routes", v.Instance, s.routes.For); err != nil {
		return nil, answer(err)
	}
	return v.wire(), nil
}

// registration is a body as instances have it: what a sled of sledctl does not
// have is refused, not passed over.
func (s *server) registration(id uuid.UUID, v api.Version, body api.Register) (instance.Registration, *api.Error) {
	r := instance.Registration{
		Instance: body.Instance.String(), VM: id.String(), Keeper: record.Nexus, Silo: body.Metadata.Silo.String(), Project: body.Metadata.Project.String(),
		Wanted: instance.Wanted{Ref: body.Instance.String()},
	}
	if body.Migration != nil {
		r.Migration = body.Migration.String()
	}
	at := netip.MustParseAddrPort(body.Address) // as was parsed
	switch {
	case !api.ValidHostname(body.Local.Hostname):
		return r, api.Internal(fmt.Errorf("the hostname %q is none", body.Local.Hostname))
	case body.Migration != nil && body.Runtime.State != api.Migrating:
		return r, api.BadRequest(fmt.Sprintf("vmm_runtime: state %q: a VM that arrives by a migration is registered as migrating", body.Runtime.State))
	case body.Migration == nil && body.Runtime.State == api.Migrating:
		return r, api.BadRequest("migration_id: a VM that is registered as migrating has one")
	case body.Migration == nil && body.Runtime.State != api.Starting:
		return r, api.BadRequest(fmt.Sprintf("vmm_runtime: state %q: a VM is registered as starting, or migrating", body.Runtime.State))
	case body.Runtime.Gen >= 1<<epochBits:
		return r, api.BadRequest(fmt.Sprintf("vmm_runtime: gen %d: want one below %d, which this sled's are above", body.Runtime.Gen, uint64(1)<<epochBits))
	case at.Port() != s.work.instances.Propolis.Port:
		return r, api.BadRequest(fmt.Sprintf("propolis_addr %s: on this sled, Propolis servers listen on port %d", at, s.work.instances.Propolis.Port))
	case len(body.Local.NICs) > 0 && !s.flat && !s.work.instances.OPTE.Address.IsValid():
		return r, api.BadRequest("nics: this sled has no VPCs, no firewall and no external addresses (OPTE); set network.opte_address to make them ports in VPCs, or agent.flat_network to put them on its guest link as they are")
	}
	bits := 64
	if at.Addr().Is4() {
		bits = 24
	}
	if underlay := s.work.instances.Underlay; underlay.IsValid() {
		bits = underlay.Bits()
	}
	r.Wanted.Address = &record.Address{Mode: record.Static, Prefix: netip.PrefixFrom(at.Addr(), bits)}
	machine, refused := machineOf(v, body)
	if refused != nil {
		return r, refused
	}
	r.Wanted.Machine = &machine
	var err *api.Error
	r.Wanted.NICs, err = nicsOf(machine, body.Local, !s.flat)
	if err == nil {
		err = s.giveRoutes(r.Wanted.NICs)
	}
	if err == nil {
		err = checkZvols(machine, body.Local.Zvols)
	}
	return r, err
}

// giveRoutes gives NICs the routes that were sent for their VPCs.
func (s *server) giveRoutes(nics []record.NIC) *api.Error {
	for i, n := range nics {
		if !n.OPTE {
			continue
		}
		n, err := s.routes.For(n)
		if err == nil {
			nics[i], err = n.Normal()
		}
		if err != nil {
			return api.Internal(err)
		}
	}
	return nil
}

// machineOf is the spec of a body, which may have in it what its version knows
// (omicron sled-agent/types/versions): 29 brought sockets and SMBIOS tables, 44
// the write cache of NVMe disks, and wants it of each.
func machineOf(v api.Version, body api.Register) (spec.Document, *api.Error) {
	d, err := spec.Parse(body.NamedSpec(), spec.ParseOptions{})
	if err != nil {
		return d, api.BadRequest("vmm_spec: " + err.Error())
	}
	most := spec.Latest
	switch {
	case v.Less(api.Version{Major: 29}):
		most = spec.Oldest
	case v.Less(api.Version{Major: 44}):
		most = 5
	default:
		for key, part := range d.Spec.Components {
			if disk, ok := part.(spec.NVMeDisk); ok && disk.WriteCache == nil {
				return d, api.BadRequest(fmt.Sprintf("vmm_spec: components: %s: missing field `has_write_cache`", key))
			}
		}
	}
	if needs := d.Spec.Needs(); needs > most {
		_, err := d.Spec.At(most)
		return d, api.BadRequest(fmt.Sprintf("vmm_spec: version %s has not all of it: %v", v, err))
	}
	return d, nil
}

// nicsOf are the NICs in the order of the machine's, each by the id that is the
// key of its backend: ports in VPCs, or as they are.
func nicsOf(d spec.Document, local api.Local, ports bool) ([]record.NIC, *api.Error) {
	networks, nics := d.Spec.Networks(), local.NICs
	if ports && len(nics) > 0 {
		if err := local.CheckPorts(); err != nil {
			return nil, api.BadRequest(err.Error())
		}
	}
	if len(networks) != len(nics) {
		return nil, api.BadRequest(fmt.Sprintf("nics: there are %d, and the spec has %d", len(nics), len(networks)))
	}
	all := make([]record.NIC, len(networks))
	for i, key := range networks {
		found := false
		for _, n := range nics {
			if n.ID.String() == spec.Key(key) {
				all[i], found = record.NIC{MAC: n.MAC, OPTE: ports}, true
				if !ports {
					continue
				}
				var err error
				if all[i].Port, err = local.PortOf(n); err == nil {
					all[i], err = all[i].Normal()
				}
				if err != nil {
					return nil, api.BadRequest(fmt.Sprintf("nics: %s: %v", n.Name, err))
				}
			}
		}
		if !found {
			return nil, api.BadRequest(fmt.Sprintf("nics: none has the id %s, which is the key of a backend of the spec", key))
		}
	}
	return all, nil
}

// checkZvols wants each volume that a VM is given to be a disk of its machine:
// its disks are what a zone is given.
func checkZvols(d spec.Document, zvols []api.Zvol) *api.Error {
	has := map[string]bool{}
	for _, key := range d.Spec.Files() {
		has[d.Spec.Components[key].(spec.FileStorage).Path] = true
	}
	for _, z := range zvols {
		disk := localdisk.Record{ID: z.Dataset, Pool: "oxp_" + z.Pool.String(), Encrypted: z.Type == "local_storage_encrypted"}
		if !disk.Encrypted && z.Type != "local_storage_unencrypted" {
			return api.BadRequest(fmt.Sprintf("delegated_zvols: unknown variant `%s`", z.Type))
		}
		if device := disk.Device(); !has[device] {
			return api.BadRequest(fmt.Sprintf("delegated_zvols: %s is no disk of the spec", device))
		}
	}
	return nil
}

// registerInstance makes a VM known that a keeper other than the operator wants on the sled, by
// an instance document. The same again changes nothing.
func (s *server) registerInstance(c call) (any, *api.Error) {
	id, refused := c.uuid("instance_id")
	if refused != nil {
		return nil, refused
	}
	asks, refused := c.asks()
	if refused != nil {
		return nil, refused
	}
	if asks != record.Fleet { // the control plane has an API of its own, and the operator PUT /instances/{instance}
		return nil, api.BadRequest(fmt.Sprintf("header %q: want %s", api.KeeperHeader, record.Fleet))
	}
	var body struct {
		api.PutRegistration
		Document json.RawMessage `json:"document"`
	}
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	if body.PropolisID == uuid.Nil || body.Document == nil {
		return nil, api.BadRequest("propolis_id, generation, document: want all of them")
	}
	if v, known := s.table.Get(body.PropolisID); known && v.State.Final() {
		return nil, api.StatusOnly(http.StatusGone, api.CodeNoSuchInstance, nil)
	}
	wanted, err := s.work.document(c.Context(), body.Document)
	if err == nil {
		err = sameID(id.String(), wanted.Ref)
	}
	if err == nil && wanted.PropolisID != "" && wanted.PropolisID != body.PropolisID.String() {
		err = &record.InputError{Field: "propolis_id", Value: wanted.PropolisID, Want: body.PropolisID.String() + ", as the registration says"}
	}
	if err != nil {
		return nil, failed(err)
	}
	r := instance.Registration{
		Instance: id.String(), VM: body.PropolisID.String(), Keeper: asks, Generation: body.Generation,
		Wanted: instance.Wanted{Ref: id.String()}.Over(wanted),
	}
	if body.Migration != nil {
		r.Migration, r.Shared = body.Migration.String(), body.Shared
	}
	v, refused := s.work.Register(c.Context(), body.PropolisID, r)
	if refused != nil {
		return nil, refused
	}
	return v.shown(), nil
}

// keeps refuses a request about a VM that another one keeps than who asks. Below /vmms, who does
// not say it is the control plane, or the operator: neither changes what a fleet keeps.
func (s *server) keeps(c call, v VM) *api.Error {
	asks, refused := c.asks()
	if refused != nil {
		return refused
	}
	r, err := s.work.record(c.Context(), v.Instance)
	if _, gone := errors.AsType[*record.NotFoundError](err); gone {
		return nil
	}
	if err == nil && (asks != "" || r.KeptBy() == record.Fleet) {
		err = r.CheckKeeper(cmp.Or(asks, record.Nexus))
	}
	if err != nil {
		return answer(err)
	}
	return nil
}
