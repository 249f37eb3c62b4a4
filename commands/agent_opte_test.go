package commands_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/sledtest"
)

// vpcs is the configuration of a sled with OPTE.
const vpcs = `
[storage]
slots = "gimlet"
key = "development"
[network]
etherstub = "propolis_stub0"
gz_vnic = "propolis_gz0"
gz_address = "fd00:1122:3344:101::1/64"
underlay = "fd00:1122:3344:101::/64"
gateway = "fd00:1122:3344:101::1"
guest_link = "net0"
opte_links = ["net0", "net1"]
opte_address = "fd00:1122:3344:101::1"
`

// inVPC is a VM with a NIC in a VPC and the firewall of that VPC, of whose rules one is for another NIC
// and one is disabled.
func inVPC(t *testing.T, instance string) sledtest.Registration {
	b := sledtest.VMBody(t, 48, instance, 1)
	b["propolis_addr"] = "[fd00:1122:3344:101::77]:12400"
	local := b["local_config"].(map[string]any)
	v4 := local["external_ips"].(map[string]any)["v4"].(map[string]any) // it has a source_nat
	v4["floating_ips"] = []any{"203.0.113.9", "203.0.113.8"}
	nic := local["nics"].([]any)[0]
	rule := func(extra map[string]any) map[string]any {
		r := map[string]any{"status": "enabled", "direction": "inbound", "action": "allow", "priority": 65534, "targets": []any{nic}}
		for key, value := range extra {
			r[key] = value
		}
		return r
	}
	local["firewall_rules"] = []any{
		rule(map[string]any{"filter_ports": []any{"22", "8000-8002"}, "filter_protocols": []any{map[string]any{"type": "tcp"}}, "filter_hosts": []any{map[string]any{"type": "vpc", "value": 100}, map[string]any{"type": "ip", "value": "10.0.0.7/32"}}}),
		rule(map[string]any{"filter_protocols": []any{map[string]any{"type": "icmp", "value": map[string]any{"icmp_type": 8, "code": nil}}}, "filter_hosts": nil, "filter_ports": nil}),
		rule(map[string]any{"status": "disabled", "priority": 1}),
		rule(map[string]any{"targets": []any{}, "priority": 2}),
	}
	return b
}

// Where the sled has OPTE, a NIC of the control plane's is a port in its VPC, with the rules that are for it, and
// goes with the VM. What no port has here is refused before anything is made.
func TestNICsInVPCsArePorts(t *testing.T) {
	o := sim.Options{Seed: 1, M2: 1, U2: 1, Mode: world.Helios}
	s := sledtest.New(t, o, vpcs)
	s.Run("bootstrap")
	a := s.StartAgent(t, s.Host())
	for why, change := range map[string]func(local map[string]any){
		"external_ips: v6: the primary NIC has v4 addresses only": func(local map[string]any) {
			local["external_ips"] = map[string]any{"v6": map[string]any{"ephemeral_ip": "fd00::7", "floating_ips": []any{}}}
		},
		"a NIC has addresses of one family here": func(local map[string]any) {
			local["nics"].([]any)[0].(map[string]any)["ip_config"].(map[string]any)["type"] = "dual_stack"
		},
		"a NIC has no transit_ips here": func(local map[string]any) {
			local["nics"].([]any)[0].(map[string]any)["ip_config"].(map[string]any)["value"].(map[string]any)["transit_ips"] = []any{"10.0.0.0/8"}
		},
		"primary_nic_mtu: 8500": func(local map[string]any) { local["primary_nic_mtu"] = 8500 },
	} {
		body := inVPC(t, uuid.NewString())
		change(body["local_config"].(map[string]any))
		if status, answer := a.Send("PUT", "/vmms/"+uuid.NewString(), sledtest.LatestAPI, body.Text(t)); status != 400 || !strings.Contains(answer, why) {
			t.Errorf("%s: %d %s", why, status, answer)
		}
	}
	vm := uuid.NewString()
	if status, answer := a.Send("PUT", "/vmms/"+vm, sledtest.LatestAPI, inVPC(t, uuid.NewString()).Text(t)); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	if status, now := a.Want(vm, "running"); status != 200 || now != "" {
		t.Fatalf("run: %d %q", status, now)
	}
	a.Eventually(vm, "running")
	var seen []string
	if err := s.World().View(t.Context(), func(tx *world.Tx) error {
		for _, p := range tx.OPTE().Ports {
			seen = append(seen, strings.Join(append([]string{p.Name, p.IP, p.Subnet, p.SNAT}, p.Floating...), " "))
			for _, r := range p.Rules["firewall in"].Rules {
				seen = append(seen, strings.Join(r.Predicates, " "))
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{"vnic_propolis_guest0 172.30.0.5 172.30.0.0/22 203.0.113.1/0-16383 203.0.113.8 203.0.113.9", "inner.ip.proto=TCP inner.ulp.dst=22,∈(8000..=8002) meta: vni=100", "inner.ip.proto=TCP inner.ulp.dst=22,∈(8000..=8002) inner.ip.src=10.0.0.7", "inner.icmp.type=8"}
	for _, one := range want {
		if !strings.Contains(strings.Join(seen, "\n"), one) {
			t.Errorf("%q has no %s", seen, one)
		}
	}
	if len(seen) != len(want) {
		t.Errorf("%q", seen)
	}
	// It keeps the external addresses that it came with: what changes nothing succeeds, the rest is refused.
	for _, c := range []struct {
		method, ip string
		status     int
	}{{"PUT", "203.0.113.9", 204}, {"PUT", "203.0.113.10", 400}, {"DELETE", "203.0.113.9", 400}, {"DELETE", "203.0.113.10", 204}} {
		if status, answer := a.Send(c.method, "/vmms/"+vm+"/external-ip", sledtest.LatestAPI, `{"type":"floating","value":"`+c.ip+`"}`); status != c.status {
			t.Errorf("%s %s: %d %s", c.method, c.ip, status, answer)
		}
	}
	if status, now := a.Want(vm, "stopped"); status != 200 || now != "stopping" {
		t.Errorf("stop: %d %q", status, now)
	}
	a.Eventually(vm, "destroyed")
	noVMs(s)
	if out := s.Run("reap --dry-run -H --columns kind,name"); strings.Contains(out, "port") {
		t.Errorf("%s", out)
	}
}
