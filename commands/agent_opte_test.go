package commands_test

import (
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/peer/dropshot/dropshottest"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/sledtest"
)

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
	s := sledtest.New(t, o, sledtest.VPCConfig)
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

// portOf shows what a port lets through, and where to.
func portOf(t *testing.T, s *sledtest.Operator, name string) (seen []string) {
	t.Helper()
	if err := s.World().View(t.Context(), func(tx *world.Tx) error {
		for _, p := range tx.OPTE().Ports {
			for _, table := range []string{"firewall in", "firewall out", "router out"} {
				for _, r := range p.Rules[table].Rules {
					if p.Name == name {
						seen = append(seen, strings.Join(r.Predicates, " ")+" "+r.Action)
					}
				}
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(seen)
	return seen
}

// A control plane changes the firewall and the routes of a VPC under its VMs, which run on: what it says is so
// after a restart of the agent, and after a reboot; the versions of routes are unknown then, so that they are sent
// again, as to a sled agent. A VM that is registered later has the routes, too.
func TestVPCsOfLivingVMs(t *testing.T) {
	s := sledtest.New(t, sim.Options{Seed: 1, M2: 1, U2: 1, Mode: world.Helios}, sledtest.VPCConfig)
	s.Run("bootstrap")
	a := s.StartAgent(t, s.Host())
	ask := asking(t, a)
	first, later := uuid.NewString(), uuid.NewString()
	body := inVPC(t, uuid.NewString())
	nic := body["local_config"].(map[string]any)["nics"].([]any)[0]
	ask("PUT", "/vmms/"+first, body.Text(t), 200)
	a.Want(first, "running")
	a.Eventually(first, "running")
	machine := s.Run("propolis get --instance vm-" + body["instance_id"].(string) + " -H")

	rules := sledtest.Registration{"vni": 100, "rules": []any{map[string]any{
		"status": "enabled", "direction": "inbound", "action": "allow", "priority": 100, "targets": []any{nic},
		"filter_hosts": nil, "filter_protocols": nil, "filter_ports": []any{"443"},
	}}}.Text(t)
	const router = `"version":{"router_id":"6c8b3f8a-1111-4222-8333-444455556666","version":`
	routes := func(version, dest string) string {
		return `[{"id":{"kind":{"type":"system"},"vni":100},` + router + version + `},"routes":[{"dest":"172.30.0.0/22","target":{"type":"vpc_subnet","value":"172.30.0.0/22"}},` +
			`{"dest":"fd00::/8","target":{"type":"drop"}},{"dest":"` + dest + `","target":{"type":"internet_gateway","value":{"type":"instance","value":"6c8b3f8a-1111-4222-8333-444455556677"}}}]},` +
			`{"id":{"kind":{"type":"custom","subnet":"172.30.0.0/22"},"vni":100},"routes":[{"dest":"10.9.0.0/16","target":{"type":"ip","value":"172.30.0.9"}}]},` +
			`{"id":{"kind":{"type":"system"},"vni":7},"routes":[]}]`
	}
	want := func(why, name, dest string) {
		t.Helper()
		got, all := portOf(t, s, name), []string{
			"inner.ip.dst=" + dest + " Meta: Target = IG(None)", "inner.ip.dst=10.9.0.0/16 Meta: Target = IP: 172.30.0.9", "inner.ip.dst=172.30.0.0/22 Meta: Target = Subnet: 172.30.0.0/22",
		}
		if name == "vnic_propolis_guest0" {
			all = append(all, "inner.ulp.dst=443 Stateful Allow")
		}
		got = slices.DeleteFunc(got, func(one string) bool { return strings.HasPrefix(one, "any(") })
		if slices.Sort(all); !slices.Equal(got, all) {
			t.Errorf("%s: %q, want %q", why, got, all)
		}
	}
	ask("PUT", "/vpc/"+uuid.NewString()+"/firewall/rules", rules, 204)
	ask("PUT", "/eip-gateways", `{"mappings":{"`+uuid.NewString()+`":{"203.0.113.9":["`+uuid.NewString()+`"]}}}`, 204)
	if got := ask("GET", "/vpc-routes", "", 200); got != `[{"id":{"kind":{"type":"system"},"vni":100}},{"id":{"kind":{"type":"custom","subnet":"172.30.0.0/22"},"vni":100}}]` {
		t.Error(got)
	}
	ask("PUT", "/vpc-routes", routes("2", "0.0.0.0/0"), 204)
	want("told", "vnic_propolis_guest0", "0.0.0.0/0")
	ask("PUT", "/vpc-routes", routes("1", "10.0.0.0/8"), 204)
	want("an older version", "vnic_propolis_guest0", "0.0.0.0/0")
	ask("PUT", "/vpc-routes", routes("3", "10.0.0.0/8"), 204)
	want("a newer version", "vnic_propolis_guest0", "10.0.0.0/8")
	if got := ask("GET", "/vpc-routes", "", 200); !strings.Contains(got, router+`3}`) {
		t.Error(got)
	}
	if now := s.Run("propolis get --instance vm-" + body["instance_id"].(string) + " -H"); now != machine {
		t.Errorf("the VM is another: %s, was %s", now, machine)
	}
	if out := s.Run("instance get --diff vm-" + body["instance_id"].(string)); strings.Contains(out, "other firewall") {
		t.Error(out)
	}
	next := inVPC(t, uuid.NewString())
	local := next["local_config"].(map[string]any)
	other := local["nics"].([]any)[0].(map[string]any)
	other["mac"], next["propolis_addr"], local["firewall_rules"] = "A8:40:25:FF:00:02", "[fd00:1122:3344:101::78]:12400", []any{}
	other["ip_config"].(map[string]any)["value"].(map[string]any)["ip"] = "172.30.0.6"
	ask("PUT", "/vmms/"+later, next.Text(t), 200)
	a.Want(later, "running")
	a.Eventually(later, "running")
	want("registered later", "vnic_propolis_guest1", "10.0.0.0/8")

	// Where other addresses are, the driver alone knows.
	const mapping = `{"physical_host_ip":"fd00:1122:3344:102::1","virtual_ip":"172.30.0.77","virtual_mac":"A8:40:25:FF:00:77","vni":100}`
	ask("PUT", "/v2p", mapping, 204)
	ask("PUT", "/v2p", strings.Replace(mapping, ":102:", ":103:", 1), 204)
	if got := ask("GET", "/v2p", "", 200); strings.Count(got, "virtual_ip") != 3 || !strings.Contains(got, strings.Replace(mapping, ":102:", ":103:", 1)) {
		t.Error(got)
	}
	ask("DELETE", "/v2p", mapping, 204)
	ask("DELETE", "/v2p", mapping, 204)
	if got := ask("GET", "/v2p", "", 200); strings.Count(got, "virtual_ip") != 2 {
		t.Error(got)
	}
	ask("PUT", "/v2p", strings.Replace(mapping, "fd00:1122:3344:102::1", "10.0.0.1", 1), 400)
	ask("PUT", "/vpc/"+uuid.NewString()+"/firewall/rules", `{"vni":100,"rules":[{"direction":"up"}]}`, 400)

	a.Stop()
	a = s.StartAgent(t, s.Host())
	ask = asking(t, a)
	if got := ask("GET", "/vpc-routes", "", 200); strings.Contains(got, router) {
		t.Error(got)
	}
	want("after a restart", "vnic_propolis_guest0", "10.0.0.0/8")
	ask("PUT", "/vpc-routes", routes("3", "10.0.0.0/8"), 204)
	want("sent again", "vnic_propolis_guest0", "10.0.0.0/8")
	if out := s.Run("reap --dry-run -H --columns kind,verdict"); strings.Contains(out, "orphan") || strings.Contains(out, "unknown") {
		t.Error(out)
	}
}

// asking asks an agent, wants a status, and holds what is said to the published document, where that is at hand.
func asking(t *testing.T, a *sledtest.Agent) func(method, path, body string, want int) string {
	d, err := dropshottest.Open("sled-agent-48.0.0.json")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return func(method, path, body string, want int) string {
		t.Helper()
		status, answer := a.Send(method, path, sledtest.LatestAPI, body)
		if status != want {
			t.Fatalf("%s %s: %d %s", method, path, status, answer)
		}
		if d != nil && want < 400 && !strings.HasPrefix(answer, "\x1f\x8b") { // a bundle
			r := httptest.NewRequest(method, "http://sled"+path, strings.NewReader(body))
			r.Header = http.Header{"Content-Type": {"application/json"}, "Api-Version": {sledtest.LatestAPI}}
			hold(t, d, r, body, &http.Response{StatusCode: want, Header: http.Header{"Content-Type": {"application/json"}}}, []byte(answer))
		}
		return answer
	}
}
