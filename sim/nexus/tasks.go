package nexus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/sim/world"
)

// The control plane's background tasks, once each: what its sleds' disks are to hold, VMs that have failed, where addresses
// of the VPC are, its firewall and its routes (omicron nexus/src/app/background/tasks).

func sorted[V any](all map[string]V) []string { return slices.Sorted(maps.Keys(all)) }

// Reconcile does all of them. If one sled refuses, the others are told all the same.
func (p Plane) Reconcile(ctx context.Context) error {
	n, err := p.kept(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, sled := range serving(&n) {
		errs = append(errs, p.configure(ctx, &n, sled))
	}
	for _, name := range sorted(n.Instances) {
		do := p.again
		if n.Instances[name].Removing {
			do = p.remove
		}
		errs = append(errs, do(ctx, *n.Instances[name]))
	}
	if n, err = p.kept(ctx); err != nil {
		return err
	}
	for _, sled := range serving(&n) {
		errs = append(errs, p.map2physical(ctx, &n, sled), p.rules(ctx, &n, sled), p.route(ctx, &n, sled))
	}
	return errors.Join(errs...)
}

// configure sends a sled its configuration, if it has none (omicron blueprint_execution): its disks, and the datasets of
// its pools.
func (p Plane) configure(ctx context.Context, n *world.Nexus, sled string) error {
	has, err := ask[inventory](ctx, p, at(n, sled), http.MethodGet, "/inventory", nil)
	if err != nil || has.Config != nil {
		return err
	}
	disks, datasets := object{}, object{}
	for _, z := range has.Zpools {
		external := slices.ContainsFunc(has.Datasets, func(d struct {
			Name string `json:"name"`
		}) bool {
			return strings.HasPrefix(d.Name, "oxp_"+z.ID)
		})
		if !external {
			continue
		}
		for _, kind := range []string{"debug", "local_storage", "local_storage_unencrypted"} {
			id := uuid.NewString()
			datasets[id] = object{"id": id, "name": object{"pool_name": "oxp_" + z.ID, "kind": kind}, "compression": object{"type": "off"}}
		}
		for _, d := range has.Disks {
			if d.Variant == "U2" && len(disks) == 0 { // which pool is on which disk, the inventory does not say
				id := uuid.NewString()
				disks[id] = object{"id": id, "identity": d.Identity, "pool_id": z.ID}
			}
		}
	}
	return p.tell(ctx, at(n, sled), http.MethodPut, "/omicron-config", object{"generation": 2, "disks": disks, "datasets": datasets, "zones": object{}, "measurements": []any{}})
}

// again makes the VM of an instance again, if it has failed: what is left of it is removed first. One with a local disk stays
// where that is. What a sled did not finish is asked for again.
func (p Plane) again(ctx context.Context, i world.NexusInstance) error {
	if i.VM == "" {
		return p.bring(ctx, i)
	}
	n, err := p.kept(ctx)
	if err != nil {
		return err
	}
	v, check := p.get(ctx, at(&n, i.Sled), i.VM)
	if check == checkOK || check == checkGone {
		if err := p.take(ctx, i.VM, "sweep", at(&n, i.Sled), v, check); err != nil {
			return err
		}
	}
	var state string
	if err := p.view(ctx, func(_ *world.Tx, n *world.Nexus) error { state = n.VMs[i.VM].State; return nil }); err != nil {
		return err
	}
	if state == "starting" {
		return p.run(ctx, at(&n, i.Sled), i.VM)
	}
	if !ended(state) {
		return nil
	}
	if err := p.tell(ctx, at(&n, i.Sled), http.MethodDelete, "/vmms/"+i.VM, nil); err != nil {
		return err
	}
	if i.Disk == "" {
		delete(n.Instances, i.Name)
		if i.Sled, _, err = p.choose(ctx, &n, i); err != nil {
			return err
		}
	}
	return p.start(ctx, i)
}

// map2physical compares where a sled takes addresses to be with where they are (v2p_mappings.rs).
func (p Plane) map2physical(ctx context.Context, n *world.Nexus, sled string) error {
	type mapping struct {
		Physical string `json:"physical_host_ip"`
		IP       string `json:"virtual_ip"`
		MAC      string `json:"virtual_mac"`
		VNI      int    `json:"vni"`
	}
	is, err := ask[[]mapping](ctx, p, at(n, sled), http.MethodGet, "/v2p", nil)
	if err != nil {
		return err
	}
	var wanted []mapping
	for _, i := range n.Instances {
		wanted = append(wanted, mapping{network(n, i.Sled) + "1", i.IP, i.MAC, vni})
	}
	for _, m := range is {
		if !slices.ContainsFunc(wanted, func(w mapping) bool { return w.IP == m.IP && w.VNI == m.VNI }) {
			err = errors.Join(err, p.tell(ctx, at(n, sled), http.MethodDelete, "/v2p", m))
		}
	}
	for _, m := range wanted {
		if !slices.Contains(is, m) {
			err = errors.Join(err, p.tell(ctx, at(n, sled), http.MethodPut, "/v2p", m))
		}
	}
	return err
}

func (p Plane) rules(ctx context.Context, n *world.Nexus, sled string) error {
	return p.tell(ctx, at(n, sled), http.MethodPut, "/vpc/"+vpcID+"/firewall/rules", object{"vni": vni, "rules": firewall(n.Instances)})
}

// route sends routes to a sled that does not have them, once it has taken note of gateways (vpc_routes.rs).
func (p Plane) route(ctx context.Context, n *world.Nexus, sled string) error {
	type state struct {
		ID struct {
			Kind object `json:"kind"`
			VNI  int    `json:"vni"`
		} `json:"id"`
		Version object `json:"version"`
	}
	knows, err := ask[[]state](ctx, p, at(n, sled), http.MethodGet, "/vpc-routes", nil)
	if err == nil {
		err = p.tell(ctx, at(n, sled), http.MethodPut, "/eip-gateways", object{"mappings": object{}})
	}
	if err != nil {
		return err
	}
	sets := []any{}
	for _, s := range knows {
		switch {
		case s.ID.Kind["type"] != "system":
			sets = append(sets, object{"id": s.ID, "version": nil, "routes": []any{}})
		case s.Version == nil:
			sets = append(sets, object{"id": s.ID, "version": object{"router_id": router, "version": 1}, "routes": []any{
				object{"dest": subnet, "target": object{"type": "vpc_subnet", "value": subnet}},
				object{"dest": "0.0.0.0/0", "target": object{"type": "internet_gateway", "value": object{"type": "instance", "value": gateway}}},
			}})
		}
	}
	return p.tell(ctx, at(n, sled), http.MethodPut, "/vpc-routes", sets)
}

// Migrate moves the VM of an instance to another sled, and waits until it is there (omicron
// nexus/src/app/sagas/instance_migrate.rs).
func (p Plane) Migrate(ctx context.Context, name, sled string) error {
	n, err := p.kept(ctx)
	if err != nil {
		return err
	}
	i, there := n.Instances[name]
	switch {
	case !there:
		return fmt.Errorf("there is no instance %q", name)
	case !slices.Contains(serving(&n), sled) || sled == i.Sled:
		return fmt.Errorf("sled %q is none that it can go to", sled)
	case i.Disk != "":
		return errors.New("its local disk binds it to its sled")
	}
	source := i.Address
	i.Sled = sled
	next, err := p.registered(ctx, *i, uuid.NewString())
	if err == nil {
		err = p.tell(ctx, next.Sled, http.MethodPut, "/vmms/"+next.VM+"/state", object{"state": object{"type": "migration_target", "value": object{"src_propolis_addr": source}}})
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for err == nil {
		v, check := p.get(ctx, next.Sled, next.VM)
		switch {
		case check != checkOK || ended(v.VM.State):
			return fmt.Errorf("it has not come: %s %s", check, v.VM.State)
		case v.VM.State == "running" && v.In != nil && v.In.State == "completed":
			at := next.Sled
			next.Sled = sled
			return p.update(ctx, func(tx *world.Tx, n *world.Nexus) error {
				n.Instances[name] = &next
				n.Told(tx.Now.UTC(), next.VM, "migration", world.NexusVM{Sled: at, State: v.VM.State, Gen: v.VM.Gen, Updated: v.VM.Updated, Check: check})
				return nil
			})
		}
		err = pause(ctx)
	}
	return err
}
