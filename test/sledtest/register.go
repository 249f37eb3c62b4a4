package sledtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/propolis/spec"
)

// Puts sends a body in the newest version, and wants a status.
func (r *Agent) Puts(want int, path, body string) string {
	r.T.Helper()
	status, answer := r.Send("PUT", path, "48.0.0", body)
	if status != want {
		r.T.Errorf("PUT %s: %d %s, want %d", path, status, answer, want)
	}
	return answer
}

// Reads is what the control plane reads: the state, and that of the migration in
// and out.
func (r *Agent) Reads(vm string) string {
	r.T.Helper()
	status, body := r.Ask("GET", "/vmms/"+vm+"/state", "48.0.0")
	if status != 200 {
		return fmt.Sprint(status)
	}
	var v api.SledVMState
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		r.T.Fatal(err)
	}
	text := string(v.Runtime.State)
	for way, m := range map[string]*api.Migration{"in": v.MigrationIn, "out": v.MigrationOut} {
		if m != nil {
			text += fmt.Sprintf(", %s %s at %d", way, m.State, m.Gen)
		}
	}
	return text
}

// ComesTo waits until the control plane reads that.
func (r *Agent) ComesTo(vm, want string) {
	r.T.Helper()
	var seen []string
	for range 6000 {
		if got := r.Reads(vm); got == want {
			return
		} else if len(seen) == 0 || seen[len(seen)-1] != got {
			seen = append(seen, got)
		}
		time.Sleep(50 * time.Millisecond)
	}
	r.T.Errorf("it is %q one after the other, want %s", seen, want)
}

const Flat = TunedConfig + "\n[agent]\nflat_network = true\n"

// Registration is the body of a registration in some version.
type Registration map[string]any

// VMBody is a VM with one NIC as a control plane of a version registers it.
func VMBody(t *testing.T, version int, instance string, n int) Registration {
	t.Helper()
	const nic = "22c9e9d9-1a5f-4c77-9c2e-6a4b1f0f3a10"
	built, err := spec.Build(spec.Description{ID: instance, Name: "x", CPUs: 2, MemoryMiB: 512, NICs: []spec.NIC{{VNIC: "x"}}})
	if err != nil {
		t.Fatal(err)
	}
	machine := built.Init.Spec
	backend := machine.Networks()[0]
	for key, part := range machine.Components {
		if device, ok := part.(spec.VirtioNIC); ok {
			device.Backend = nic
			machine.Components[key] = device
		}
	}
	machine.Components[nic] = spec.VirtioNetwork{} // the sled names its VNIC
	delete(machine.Components, backend)
	port := map[string]any{
		"id": nic, "kind": map[string]any{"type": "instance", "id": instance}, "mac": fmt.Sprintf("A8:40:25:FF:00:%02X", n), "vni": 100, "name": "net0", "primary": true, "slot": 0,
	}
	local := map[string]any{
		"hostname": "web", "nics": []any{port}, "firewall_rules": []any{},
		"dhcp_config": map[string]any{"dns_servers": []any{}, "search_domains": []any{}},
	}
	address := map[string]any{"ip": "172.30.0.5", "subnet": "172.30.0.0/22"}
	nat := map[string]any{"ip": "203.0.113.1", "first_port": 0, "last_port": 16383}
	if version < 10 {
		maps.Copy(port, address)
	} else {
		address["transit_ips"] = []any{}
		port["ip_config"] = map[string]any{"type": "v4", "value": address}
	}
	switch {
	case version < 11:
		maps.Copy(local, map[string]any{"source_nat": nat, "ephemeral_ip": nil, "floating_ips": []any{}})
	case version < 32:
		local["external_ips"] = nil
	default:
		local["external_ips"] = map[string]any{"v4": map[string]any{"source_nat": nat, "floating_ips": []any{}}}
	}
	for key, since := range map[string]int{"multicast_groups": 7, "delegated_zvols": 9, "attached_subnets": 18} {
		if version >= since {
			local[key] = []any{}
		}
	}
	return Registration{
		"vmm_spec": machine, "local_config": local, "instance_id": instance, "migration_id": nil, "propolis_addr": fmt.Sprintf("10.77.3.%d:12400", n),
		"vmm_runtime": map[string]any{"state": "starting", "gen": 1, "time_updated": "2026-10-01T00:00:00Z"},
		"metadata":    map[string]any{"silo_id": "5c8b4a0e-0d3e-4c1c-8a3b-0a4f2b0b6c01", "project_id": "5c8b4a0e-0d3e-4c1c-8a3b-0a4f2b0b6c02"},
	}
}

func (b Registration) Text(t *testing.T) string {
	t.Helper()
	data, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
