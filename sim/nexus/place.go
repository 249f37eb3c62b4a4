package nexus

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/sim/world"
)

// A control plane's instances: each is a VM on the sled that has most left, with a NIC in the one VPC, and a local disk if
// it is to have one (omicron nexus/src/app/sagas/instance_start.rs, nexus/db-model).

// The one VPC, of which each rack has the same here.
const (
	vni     = 100
	vpcID   = "6c8b3f8a-0000-4000-8000-000000000001"
	router  = "6c8b3f8a-0000-4000-8000-000000000002"
	gateway = "6c8b3f8a-0000-4000-8000-000000000003"
	subnet  = "172.30.0.0/22"
)

// port is where Propolis servers listen.
const port = 12400

// Wanted is how large an instance is to be.
type Wanted struct {
	Name   string
	CPUs   int
	Memory int    // MiB
	Disk   uint64 // bytes; 0: none
}

// inventory is what counts of a sled's.
type inventory struct {
	Threads   uint32 `json:"usable_hardware_threads"`
	Reservoir uint64 `json:"reservoir_size"`
	RAM       uint64 `json:"usable_physical_ram"`
	Zpools    []struct {
		ID     string `json:"id"`
		Size   uint64 `json:"total_size"`
		Health string `json:"health"`
	} `json:"zpools"`
	Disks []struct {
		Identity diskIdentity `json:"identity"`
		Variant  string       `json:"variant"`
		Slot     int          `json:"slot"`
	} `json:"disks"`
	Datasets []struct {
		Name string `json:"name"`
	} `json:"datasets"`
	Config *struct {
		Generation int `json:"generation"`
	} `json:"ledgered_sled_config"`
	Reconciled *struct {
		Disks    map[string]result `json:"external_disks"`
		Datasets map[string]result `json:"datasets"`
	} `json:"last_reconciliation"`
}

// diskIdentity is how a disk identifies itself.
type diskIdentity struct {
	Vendor string `json:"vendor"`
	Model  string `json:"model"`
	Serial string `json:"serial"`
}

// at is where the agent of a sled answers.
func at(n *world.Nexus, sled string) string { return "tcp:" + n.Registered[sled].Address }

// network begins the addresses of a sled.
func network(n *world.Nexus, sled string) string {
	return fmt.Sprintf("fd00:1122:3344:%x::", 0x101+slices.Index(n.Order, sled))
}

// serving are the sleds that can have VMs, in the order in which they came.
func serving(n *world.Nexus) (all []string) {
	for _, id := range n.Order {
		if !n.Registered[id].Decommissioned {
			all = append(all, id)
		}
	}
	return all
}

// kept is a copy of what is kept.
func (p Plane) kept(ctx context.Context) (kept world.Nexus, err error) {
	err = p.view(ctx, func(_ *world.Tx, n *world.Nexus) error {
		kept = *n
		kept.Instances = map[string]*world.NexusInstance{}
		for name, i := range n.Instances {
			one := *i
			kept.Instances[name] = &one
		}
		return nil
	})
	return kept, err
}

// Place makes an instance.
func (p Plane) Place(ctx context.Context, w Wanted) error {
	n, err := p.kept(ctx)
	if err != nil {
		return err
	}
	if n.Instances[w.Name] != nil {
		return fmt.Errorf("there is an instance %q", w.Name)
	}
	number := free(n.Instances)
	i := world.NexusInstance{
		Name: w.Name, ID: uuid.NewString(), CPUs: w.CPUs, Memory: w.Memory, NIC: uuid.NewString(), MAC: fmt.Sprintf("A8:40:25:F0:%02X:%02X", number>>8&0xff, number&0xff), IP: address(number),
	}
	if w.Disk > 0 {
		i.Disk, i.Size = uuid.NewString(), w.Disk
	}
	if i.Sled, i.Pool, err = p.choose(ctx, &n, i); err != nil {
		return err
	}
	if err := p.note(ctx, i); err != nil {
		return err
	}
	return p.bring(ctx, i)
}

// bring makes the local disk of an instance, and then its VM.
func (p Plane) bring(ctx context.Context, i world.NexusInstance) error {
	n, err := p.kept(ctx)
	if err == nil && i.Disk != "" {
		err = p.tell(ctx, at(&n, i.Sled), http.MethodPost, "/local-storage", localDisk(i))
	}
	if err != nil {
		return err
	}
	return p.start(ctx, i)
}

// localDisk is the body of a request to make an instance's local disk, or to remove it.
func localDisk(i world.NexusInstance) object {
	return object{"zpool_id": i.Pool, "dataset_id": i.Disk, "dataset_size": i.Size + (i.Size+1<<30-1)>>30*(70<<20), "volume_size": i.Size, "encrypted_at_rest": true}
}

// choose is the sled that has most memory left, and the largest of its pools: the same counts for both.
func (p Plane) choose(ctx context.Context, n *world.Nexus, i world.NexusInstance) (sled, pool string, err error) {
	most := int64(-1)
	for _, id := range serving(n) {
		has, failed := ask[inventory](ctx, p, at(n, id), http.MethodGet, "/inventory", nil)
		if failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		memory, threads := int64(has.Reservoir), int(has.Threads)
		if memory == 0 {
			memory = int64(has.RAM)
		}
		for _, other := range n.Instances {
			if other.Sled == id {
				memory, threads = memory-int64(other.Memory)<<20, threads-other.CPUs
			}
		}
		external := ""
		size := uint64(0)
		for _, z := range has.Zpools {
			u2 := slices.ContainsFunc(has.Datasets, func(d struct {
				Name string `json:"name"`
			}) bool {
				return strings.HasPrefix(d.Name, "oxp_"+z.ID)
			})
			if u2 && z.Size > size {
				external, size = z.ID, z.Size
			}
		}
		if memory > most && memory >= int64(i.Memory)<<20 && threads >= i.CPUs && (i.Disk == "" || external != "") {
			most, sled, pool = memory, id, external
		}
	}
	if sled == "" {
		return "", "", errors.Join(errors.New("no sled has room for it"), err)
	}
	if i.Disk == "" {
		pool = ""
	}
	return sled, pool, nil
}

// start has the VM of an instance registered on its sled and run, under a new id.
func (p Plane) start(ctx context.Context, i world.NexusInstance) error {
	i, err := p.registered(ctx, i, "")
	if err != nil {
		return err
	}
	return p.run(ctx, i.Sled, i.VM)
}

func (p Plane) run(ctx context.Context, sled, vm string) error {
	return p.tell(ctx, sled, http.MethodPut, "/vmms/"+vm+"/state", becomes("running"))
}

// becomes is what a VM is asked to become.
func becomes(state string) object { return object{"state": object{"type": state}} }

// registered gives an instance a VM on its sled, which is made there or comes by a migration, and notes it. The
// Sled of the result is where the agent answers.
func (p Plane) registered(ctx context.Context, i world.NexusInstance, migration string) (world.NexusInstance, error) {
	i.VM = uuid.NewString()
	var sled string
	var all world.Nexus
	err := p.update(ctx, func(tx *world.Tx, n *world.Nexus) error {
		n.Addresses++
		i.Address = fmt.Sprintf("[%s%x]:%d", network(n, i.Sled), 0x1000+n.Addresses, port)
		sled, all = at(n, i.Sled), *n
		noted := i
		if migration == "" { // else when it has come
			n.Instances[i.Name] = &noted
		}
		state := map[bool]string{true: "starting", false: "migrating"}[migration == ""]
		n.Told(tx.Now.UTC(), i.VM, "start", world.NexusVM{Sled: sled, State: state, Gen: 1, Updated: tx.Now.UTC()})
		return nil
	})
	if err == nil {
		err = p.tell(ctx, sled, http.MethodPut, "/vmms/"+i.VM, body(all.Instances, i, migration))
	}
	i.Sled = sled
	return i, err
}

type object = map[string]any

// body is what a VM is registered with (InstanceEnsureBody).
func body(all map[string]*world.NexusInstance, i world.NexusInstance, migration string) object {
	nic := i.NIC
	components := object{
		"com1": object{"type": "serial_port", "component": object{"num": "com1"}},
		"net0": object{"type": "virtio_nic", "component": object{"backend_id": nic, "interface_id": nic, "pci_path": object{"bus": 0, "device": 8, "function": 0}}},
		nic:    object{"type": "virtio_network_backend", "component": object{"vnic_name": ""}},
	}
	zvols := []any{}
	if i.Disk != "" {
		components["disk0"] = object{"type": "nvme_disk", "component": object{
			"backend_id": i.Disk, "has_write_cache": true, "pci_path": object{"bus": 0, "device": 16, "function": 0}, "serial_number": make([]int, 20),
		}}
		components[i.Disk] = object{"type": "file_storage_backend", "component": object{
			"path": "/dev/zvol/rdsk/oxp_" + i.Pool + "/crypt/local_storage/" + i.Disk + "/vol", "readonly": false, "block_size": 4096, "workers": nil,
		}}
		zvols = append(zvols, object{"type": "local_storage_encrypted", "zpool_id": i.Pool, "dataset_id": i.Disk})
	}
	runtime := object{"state": "starting", "gen": 1, "time_updated": "2026-10-01T00:00:00Z"}
	registered := object{
		"vmm_spec": object{
			"board":      object{"cpus": i.CPUs, "memory_mb": i.Memory, "chipset": object{"type": "i440_fx", "value": object{"enable_pcie": false}}},
			"components": components,
		},
		"local_config": object{
			"hostname": i.Name, "nics": []any{networkInterface(i)}, "external_ips": object{"v4": object{"source_nat": object{"ip": "203.0.113.1", "first_port": 0, "last_port": 16383}, "floating_ips": []any{}}},
			"attached_subnets": []any{}, "multicast_groups": []any{}, "firewall_rules": firewall(all), "delegated_zvols": zvols,
			"dhcp_config": object{"dns_servers": []any{}, "search_domains": []any{}},
		},
		"vmm_runtime": runtime, "instance_id": i.ID, "propolis_addr": i.Address,
		"metadata": object{"silo_id": "5c8b4a0e-0d3e-4c1c-8a3b-0a4f2b0b6c01", "project_id": "5c8b4a0e-0d3e-4c1c-8a3b-0a4f2b0b6c02"},
	}
	if migration != "" {
		registered["migration_id"], runtime["state"] = migration, "migrating"
	}
	return registered
}

func networkInterface(i world.NexusInstance) object {
	return object{
		"id": i.NIC, "kind": object{"type": "instance", "id": i.ID}, "mac": i.MAC, "vni": vni, "name": "net0", "primary": true, "slot": 0,
		"ip_config": object{"type": "v4", "value": object{"ip": i.IP, "subnet": subnet, "transit_ips": []any{}}},
	}
}

// firewall are the rules of the VPC: those of a default VPC (omicron nexus/defaults/src/lib.rs), for all its NICs.
func firewall(all map[string]*world.NexusInstance) []any {
	targets := []any{}
	for _, name := range sorted(all) {
		targets = append(targets, networkInterface(*all[name]))
	}
	rule := func(more object) object {
		r := object{"status": "enabled", "direction": "inbound", "action": "allow", "priority": 65534, "targets": targets, "filter_hosts": nil, "filter_ports": nil, "filter_protocols": nil}
		for key, value := range more {
			r[key] = value
		}
		return r
	}
	return []any{
		rule(object{"filter_hosts": []any{object{"type": "vpc", "value": vni}}}),
		rule(object{"filter_ports": []any{"22"}, "filter_protocols": []any{object{"type": "tcp"}}}),
		rule(object{"filter_protocols": []any{object{"type": "icmp", "value": nil}}}),
	}
}
