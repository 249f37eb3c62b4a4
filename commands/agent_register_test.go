package commands_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sim/world"
)

const flat = tuned + "\n[agent]\nflat_network = true\n"

// registration is the body of a registration in some version.
type registration map[string]any

// vmBody is a VM with one NIC as a control plane of a version registers it.
func vmBody(t *testing.T, version int, instance string, n int) registration {
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
	machine.Components[nic] = machine.Components[backend]
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
	return registration{
		"vmm_spec": machine, "local_config": local, "instance_id": instance, "migration_id": nil, "propolis_addr": fmt.Sprintf("10.77.3.%d:12400", n),
		"vmm_runtime": map[string]any{"state": "starting", "gen": 1, "time_updated": "2026-10-01T00:00:00Z"},
		"metadata":    map[string]any{"silo_id": "5c8b4a0e-0d3e-4c1c-8a3b-0a4f2b0b6c01", "project_id": "5c8b4a0e-0d3e-4c1c-8a3b-0a4f2b0b6c02"},
	}
}

func (b registration) text(t *testing.T) string {
	t.Helper()
	data, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A VM is registered in each version that differs, and then run, reset and
// stopped as the control plane does it; nothing is left of it then but what is to
// be read.
func TestTheControlPlaneHasAVM(t *testing.T) {
	s := newSled(t, small(), flat)
	s.run("bootstrap")
	a := s.agent(t, s.Host())
	for i, version := range []int{1, 7, 9, 10, 11, 18, 29, 32, 41, 44, 48} {
		t.Run(fmt.Sprint("version ", version), func(t *testing.T) {
			vm, instance := uuid.NewString(), uuid.NewString()
			body := vmBody(t, version, instance, i+10).text(t)
			header := fmt.Sprintf("%d.0.0", version)
			for range 2 { // it is told twice, and registered once
				status, answer := a.send("PUT", "/vmms/"+vm, header, body)
				if status != 200 || !strings.Contains(answer, `"state":"starting"`) {
					t.Fatalf("register: %d %s", status, answer)
				}
			}
			if status, now := a.want(vm, "running"); status != 200 || now != "" {
				t.Fatalf("run: %d %q", status, now)
			}
			a.eventually(vm, "running")
			if got := s.value("instance get " + instance + " -H --columns propolis_id,address,state"); got != vm+"\t"+fmt.Sprintf("10.77.3.%d/16", i+10)+"\trunning" {
				t.Errorf("the instance is %q", got)
			}
			if status, now := a.want(vm, "stopped"); status != 200 || now != "stopping" {
				t.Errorf("stop: %d %q", status, now)
			}
			a.eventually(vm, "destroyed")
			if answer := s.try("instance get " + instance); answer.exit != 4 {
				t.Errorf("the instance stays: exit %d %s", answer.exit, answer.out)
			}
		})
	}
	s.noVMs()
}

// noVMs fails the test if there are zones of instances.
func (s *sled) noVMs() {
	s.t.Helper()
	for _, zone := range s.zones() {
		if strings.HasPrefix(zone, "propolis_instance_") {
			s.t.Errorf("zone %s is left", zone)
		}
	}
}

// The spec that Propolis is asked for is the one that was registered, and labels
// are those of the control plane.
func TestTheWholeSpecIsSent(t *testing.T) {
	s := newSled(t, small(), flat)
	s.run("bootstrap")
	a := s.agent(t, s.Host())
	vm, instance := uuid.NewString(), uuid.NewString()
	body := vmBody(t, 48, instance, 5)
	machine := body["vmm_spec"].(*spec.InstanceSpec)
	machine.SMBIOS = &spec.SMBIOS{Manufacturer: "Example", Product: "Rack", Serial: "7", Version: 3}
	if status, answer := a.send("PUT", "/vmms/"+vm, latest, body.text(t)); status != 200 {
		t.Fatalf("register: %d %s", status, answer)
	}
	a.want(vm, "running")
	a.eventually(vm, "running")
	shown := s.run("propolis spec show " + instance + " -o json")
	for _, want := range []string{`"22c9e9d9-1a5f-4c77-9c2e-6a4b1f0f3a10"`, `"product_name":"Rack"`} {
		if !strings.Contains(shown, want) {
			t.Errorf("%s is not in %s", want, shown)
		}
	}
	if status, now := a.remove(vm); status != 200 || now != "failed" {
		t.Errorf("unregister: %d %q", status, now)
	}
	s.noVMs()
}

// A VM that is registered and never run is destroyed at once, and one that cannot
// be brought up has failed, with the reason; nothing of either stays.
func TestAVMThatNeverRan(t *testing.T) {
	s := newSled(t, small(), flat)
	s.run("bootstrap")
	a := s.agent(t, s.Host())
	register := func(n int, change func(registration)) (vm string) {
		vm = uuid.NewString()
		body := vmBody(t, 48, uuid.NewString(), n)
		change(body)
		if status, answer := a.send("PUT", "/vmms/"+vm, latest, body.text(t)); status != 200 {
			t.Fatalf("register: %d %s", status, answer)
		}
		return vm
	}
	idle := register(1, func(registration) {})
	if status, now := a.want(idle, "reboot"); status != 500 || now != "Internal" {
		t.Errorf("reboot of what never ran: %d %q", status, now)
	}
	if status, now := a.want(idle, "stopped"); status != 200 || now != "destroyed" {
		t.Errorf("stop of what never ran: %d %q", status, now)
	}
	broken := register(2, func(registration) {})
	s.arm(world.Fault{Name: world.FaultFail, Match: "clone", Times: 1, Exit: 1, Text: "the injected failure"})
	if status, _ := a.want(broken, "running"); status != 200 {
		t.Errorf("run: %d", status)
	}
	a.eventually(broken, "failed")
	s.noVMs()
	if list := s.run("instance list -o name"); list != "" {
		t.Errorf("there are still %q", list)
	}
}

// What an agent was killed over, the next one does.
func TestWhatAnAgentOwesTheNextOneDoes(t *testing.T) {
	s := newSled(t, small(), flat)
	s.run("bootstrap")
	a := s.agent(t, s.Host())
	vm, instance := uuid.NewString(), uuid.NewString()
	if status, answer := a.send("PUT", "/vmms/"+vm, latest, vmBody(t, 48, instance, 3).text(t)); status != 200 {
		t.Fatalf("register: %d %s", status, answer)
	}
	if status, _ := a.want(vm, "running"); status != 200 {
		t.Fatalf("run: %d", status)
	}
	a.stop()
	b := s.agent(t, s.Host())
	b.eventually(vm, "running")
	if status, now := b.want(vm, "stopped"); status != 200 || now != "stopping" {
		t.Fatalf("stop: %d %q", status, now)
	}
	b.stop()
	c := s.agent(t, s.Host())
	c.eventually(vm, "destroyed")
	s.noVMs()
}

// What the agent refuses of a registration, and how.
func TestARegistrationThatIsRefused(t *testing.T) {
	s := newSled(t, small(), flat)
	s.run("bootstrap")
	a := s.agent(t, s.Host())
	taken := uuid.NewString()
	if status, answer := a.send("PUT", "/vmms/"+taken, latest, vmBody(t, 48, uuid.NewString(), 1).text(t)); status != 200 {
		t.Fatalf("register: %d %s", status, answer)
	}
	local := func(b registration) map[string]any { return b["local_config"].(map[string]any) }
	for name, c := range map[string]struct {
		version int
		change  func(registration)
		status  int
		says    string
	}{
		"no local config":           {48, func(b registration) { delete(b, "local_config") }, 400, "missing field `local_config`"},
		"no groups in version 7":    {7, func(b registration) { delete(local(b), "multicast_groups") }, 400, "missing field `multicast_groups`"},
		"no NAT in version 1":       {1, func(b registration) { delete(local(b), "source_nat") }, 400, "missing field `source_nat`"},
		"an old NIC in version 10":  {10, func(b registration) { delete(local(b)["nics"].([]any)[0].(map[string]any), "ip_config") }, 400, "missing field `ip_config`"},
		"SMBIOS in version 28":      {28, func(b registration) { b["vmm_spec"].(*spec.InstanceSpec).SMBIOS = &spec.SMBIOS{} }, 400, "version 28.0.0 has not all of it"},
		"a migration":               {48, func(b registration) { b["migration_id"] = uuid.NewString() }, 400, "is registered as migrating"},
		"a migration without id":    {48, func(b registration) { b["vmm_runtime"].(map[string]any)["state"] = "migrating" }, 400, "migration_id"},
		"a state of its own":        {48, func(b registration) { b["vmm_runtime"].(map[string]any)["state"] = "running" }, 400, "is registered as starting"},
		"a generation above ours":   {48, func(b registration) { b["vmm_runtime"].(map[string]any)["gen"] = 1 << 40 }, 400, "gen"},
		"another port":              {48, func(b registration) { b["propolis_addr"] = "10.77.3.9:1" }, 400, "port 12400"},
		"an address that is taken":  {48, func(b registration) { b["propolis_addr"] = "10.77.3.1:12400" }, 409, "is taken by"},
		"an address of elsewhere":   {48, func(b registration) { b["propolis_addr"] = "192.0.2.1:12400" }, 400, "underlay"},
		"no address":                {48, func(b registration) { b["propolis_addr"] = "here" }, 400, "invalid socket address"},
		"a MAC that is taken":       {48, func(b registration) { local(b)["nics"].([]any)[0].(map[string]any)["mac"] = "a8:40:25:ff:00:01" }, 409, "MAC"},
		"a NIC that is not there":   {48, func(b registration) { local(b)["nics"] = []any{} }, 400, "the spec has 1"},
		"a hostname that is none":   {48, func(b registration) { local(b)["hostname"] = "-" }, 500, `"error_code":"Internal"`},
		"a volume that is no disk":  {48, func(b registration) { local(b)["delegated_zvols"] = []any{zvol("local_storage_unencrypted")} }, 400, "is no disk of the spec"},
		"an encrypted one too soon": {16, func(b registration) { local(b)["delegated_zvols"] = []any{zvol("local_storage_encrypted")} }, 400, "unknown variant"},
		"a spec that is none":       {48, func(b registration) { b["vmm_spec"] = map[string]any{} }, 400, "vmm_spec"},
	} {
		t.Run(name, func(t *testing.T) {
			body := vmBody(t, c.version, uuid.NewString(), 99)
			c.change(body)
			vm := uuid.NewString()
			status, answer := a.send("PUT", "/vmms/"+vm, fmt.Sprintf("%d.0.0", c.version), body.text(t))
			if status != c.status || !strings.Contains(answer, c.says) {
				t.Errorf("%d %s, want %d and %q", status, answer, c.status, c.says)
			}
			if state, _ := a.state(vm); state != "404" {
				t.Errorf("the VM is %s", state)
			}
		})
	}
	if status, answer := a.send("PUT", "/vmms/"+taken, latest, vmBody(t, 48, uuid.NewString(), 9).text(t)); status != http.StatusInternalServerError {
		t.Errorf("an id of another instance: %d %s", status, answer)
	}
}

func zvol(kind string) map[string]any {
	return map[string]any{"type": kind, "zpool_id": uuid.NewString(), "dataset_id": uuid.NewString()}
}

// Without agent.flat_network no VM gets NICs that would lie about their VPC.
func TestNICsInVPCsAreRefusedUnlessToldOtherwise(t *testing.T) {
	s := newSled(t, small(), "")
	s.run("bootstrap")
	a := s.agent(t, s.Host())
	if status, answer := a.send("PUT", "/vmms/"+uuid.NewString(), latest, vmBody(t, 48, uuid.NewString(), 1).text(t)); status != 400 || !strings.Contains(answer, "agent.flat_network") {
		t.Errorf("%d %s", status, answer)
	}
}
