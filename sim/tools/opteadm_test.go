package tools

import (
	"strings"
	"testing"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
)

// create makes a port; its name, MAC, address and the VPC's VNI may differ.
func create(name, mac, ip, vni string) string {
	return "opteadm create-xde " + name + " --guest-mac " + mac + " --private-ip " + ip +
		" --vpc-subnet 10.0.0.0/24 --gateway-mac a8:40:25:ff:77:77 --gateway-ip 10.0.0.1 --vpc-vni " + vni + " --src-underlay-addr=fd00::1"
}

// The texts are those of oxidecomputer/opte and oxidecomputer/netadm-sys.
func TestPortsOfOPTE(t *testing.T) {
	n := newNetwork(t, world.Helios)
	const head = "LINK  MAC ADDRESS  IPv4 ADDRESS  EPHEMERAL IPv4  FLOATING IPv4  IPv6 ADDRESS  EXTERNAL IPv6  FLOATING IPv6  STATE\n"
	one := create("opte10", "a8:40:25:ff:0:1", "10.0.0.5", "100")
	n.prints("global", "opteadm --version", "opteadm 0.41.503\n")
	n.prints("global", "opteadm list-ports", head)
	n.fails("global", one, "", "Error: command CreateXde failed: System { errno: 22, msg: \"underlay not initialized\" }\n")
	n.fails("global", "opteadm clear-xde-underlay", "", "Error: command ClearXdeUnderlay failed: System { errno: 2, msg: \"underlay not yet initialized\" }\n")
	n.must("global", "opteadm set-xde-underlay net0 net1", one, create("opte9", "a8:40:25:ff:0:2", "10.0.0.6", "100")+" --ephemeral-ip 10.1.0.9 --floating-ip 10.1.0.2 --floating-ip 10.1.0.3")
	n.fails("global", "opteadm set-xde-underlay net0 net1", "", "Error: command SetXdeUnderlay failed: System { errno: 17, msg: \"underlay already initialized\" }\n")
	n.fails("global", "opteadm clear-xde-underlay", "", "Error: command ClearXdeUnderlay failed: System { errno: 16, msg: \"underlay in use by attached ports\" }\n")
	n.prints("global", "opteadm list-ports", ""+
		"LINK    MAC ADDRESS        IPv4 ADDRESS  EPHEMERAL IPv4  FLOATING IPv4  IPv6 ADDRESS  EXTERNAL IPv6  FLOATING IPv6  STATE\n"+
		"opte9   A8:40:25:FF:00:02  10.0.0.6      10.1.0.9        10.1.0.2       None          None           None           ready\n"+
		"                                                         10.1.0.3                                                   \n"+
		"                                                                                                                    \n"+
		"opte10  A8:40:25:FF:00:01  10.0.0.5      None            None           None          None           None           ready\n")
	n.prints("global", "dladm show-link -p -o link,class,mtu,state,over opte9", "opte9:misc:1500:up:\n")
	n.prints("global", "dladm show-vnic -p -o link", "")
	n.fails("global", create("net0", "a8:40:25:ff:0:3", "10.0.0.7", "100"), "", "Error: netadm failed dlmgmtd: link id creation failed: 17\n")
	n.fails("global", create("opte", "a8:40:25:ff:0:3", "10.0.0.7", "100"), "", "Error: netadm failed dlmgmtd: link id creation failed: 22\n")
	n.fails("global", create("opte3", "a8:40:25:ff:0:1", "10.0.0.7", "100"), "", "Error: command CreateXde failed: MacExists { port: \"opte3\", vni: Vni { inner: 100 }, mac: MacAddr { inner: A8:40:25:FF:00:01 } }\n")
	n.fails("global", "dladm show-link opte3", "", "dladm: link opte3 is not valid: object not found\n")
	n.must("global", create("opte3", "a8:40:25:ff:0:1", "10.0.0.7", "101")) // of another VPC
	n.fails("global", create("opte4", "a8:40:25:ff:0:1", "fd00::7", "102"), "", "Error: expected IPv6 VPC subnet\n")
	n.fails("global", "opteadm delete-xde opte4", "", "Error: netadm failed not found: link opte4 not found\n")
	n.fails("global", "opteadm delete-xde net0", "", "Error: command DeleteXde failed: PortNotFound(\"net0\")\n")
	n.zone("z1", "opte9")
	n.fails("global", "opteadm delete-xde opte9", "", "Error: command DeleteXde failed: System { errno: 16, msg: \"failed to destroy DLS devnet: 16\" }\n")
	network.ReturnLinks(n.tx, "z1")
	n.must("global", "opteadm delete-xde opte9", "opteadm delete-xde opte10", "opteadm delete-xde opte3", "opteadm clear-xde-underlay")
	n.prints("global", "opteadm list-ports", head)
}

func TestRulesAndRoutesOfOPTE(t *testing.T) {
	n := newNetwork(t, world.Helios)
	n.must("global", "opteadm set-xde-underlay net0 net1", create("opte0", "a8:40:25:ff:0:1", "10.0.0.5", "100"),
		"opteadm add-router-entry -p opte0 10.0.0.0/24 sub4=10.0.0.0/24 system", "opteadm add-router-entry -p opte0 10.0.0.9/24 drop custom", "opteadm add-router-entry -popte0 0.0.0.0/0 ig SYSTEM")
	routes := func() (all []string) {
		for line := range strings.Lines(n.run("opteadm dump-layer -p opte0 router").Stdout) {
			if strings.Contains(line, "inner.ip.dst=") && !strings.Contains(line, "any(") {
				all = append(all, strings.Join(strings.Fields(line), " "))
			}
		}
		return all
	}
	before := []string{`2 26 0 inner.ip.dst=10.0.0.0/24 "Deny"`, `1 27 0 inner.ip.dst=10.0.0.0/24 "Meta: Target = Subnet: 10.0.0.0/24"`, `3 75 0 inner.ip.dst=0.0.0.0/0 "Meta: Target = IG(None)"`}
	if got := routes(); strings.Join(got, "\n") != strings.Join(before, "\n") {
		t.Errorf("%q", got)
	}
	// Rules are alike by their predicates alone: the first one for the destination goes.
	n.must("global", "opteadm del-router-entry -p opte0 10.0.0.0/24 ig system")
	if got := routes(); strings.Join(got, "\n") != strings.Join(before[1:], "\n") {
		t.Errorf("%q", got)
	}
	n.fails("global", "opteadm del-router-entry -p opte0 10.9.0.0/24 ig system", "", "Error: could not delete entry -- no matching rule found\n")
	n.fails("global", "opteadm add-router-entry -p opte1 10.9.0.0/24 ig system", "", "Error: command AddRouterEntry failed: PortNotFound(\"opte1\")\n")
	n.fails("global", "opteadm dump-layer -p opte1 router", "", "Error: command DumpLayer failed: PortNotFound(\"opte1\")\n")

	set := func(rules string) cli.Reply {
		tool, _ := Lookup("opteadm")
		return tool(n.tx, cli.Call{Tool: "opteadm", Args: []string{"set-fw-rules", "-p", "opte0"}, Zone: "global", Stdin: []byte(rules)})
	}
	if r := set("dir=in action=allow priority=10 protocol=tcp port=22,23,80 hosts=ip=10.0.0.3\ndir=in action=deny priority=10\n"); r.Exit != 0 {
		t.Errorf("%+v", r)
	}
	n.prints("global", "opteadm dump-layer -p opte0 firewall", "Port opte0 - Layer firewall\n"+strings.Repeat("=", 70)+"\nInbound Flows\n"+strings.Repeat("-", 70)+"\n"+
		"PROTO  SRC IP  SPORT/TY  DST IP  DPORT  HITS  ACTION\n\nOutbound Flows\n"+strings.Repeat("-", 70)+"\nPROTO  SRC IP  SPORT/TY  DST IP  DPORT  HITS  ACTION\n"+
		"\nInbound Rules\n"+strings.Repeat("-", 70)+"\n"+
		"ID   PRI  HITS  PREDICATES                   ACTION\n"+
		"1    10   0     *                            \"Deny\"\n"+
		"0    10   0     inner.ip.proto=TCP           \"Stateful Allow\"\n"+
		"                inner.ulp.dst∈(22..=23),=80  \n"+
		"                inner.ip.src=10.0.0.3        \n"+
		"                                             \n"+
		"DEF  --   0     --                           \"deny\"\n"+
		"\nOutbound Rules\n"+strings.Repeat("-", 70)+"\nID   PRI  HITS  PREDICATES  ACTION\nDEF  --   0     --          \"stateful allow\"\n\n")
	for rules, why := range map[string]string{
		"dir=in\n": "missing 'action' key", "dir=in action=allow\n": "missing 'priority' key", "action=deny priority=1\n": "missing direction ('dir') key", "any\n": "bad token: any", "\n": "bad token: ",
		"dir=in action=allow priority=1 port=22 x=y\n": "invalid key: x=y", "dir=up action=allow priority=1\n": "invalid direction: up", "dir=in action=pass priority=1\n": "invalid action: pass ('allow' or 'deny')",
	} {
		if r := set(rules); r.Exit != 1 || r.Stderr != "Error: Invalid rule: "+why+"\n" {
			t.Errorf("%q: %+v", rules, r)
		}
	}
	if r := set(""); r.Exit != 0 || strings.Contains(n.run("opteadm dump-layer -p opte0 firewall").Stdout, "TCP") {
		t.Errorf("%+v", r)
	}
}

func TestMappingsOfOPTE(t *testing.T) {
	n := newNetwork(t, world.Helios)
	hr := strings.Repeat("-", 70)
	none := "Virtual to Physical Mappings\n" + strings.Repeat("=", 70) + "\n"
	n.prints("global", "opteadm dump-v2p", none)
	n.must("global", "opteadm set-v2p 10.0.0.9 a8:40:25:ff:0:9 fd00::9 100", "opteadm set-v2p 10.0.0.9 a8:40:25:ff:0:8 fd00::8 100", "opteadm set-v2p 10.0.0.2 a8:40:25:ff:0:2 fd00::2 100",
		"opteadm set-v2p fd77::9 a8:40:25:ff:0:9 fd00::9 99", "opteadm clear-v2p fd77::9 a8:40:25:ff:0:9 fd00::9 99", "opteadm clear-v2p 10.0.0.77 a8:40:25:ff:0:9 fd00::9 55")
	empty := func(family string) string {
		return "\n" + family + " mappings\n" + hr + "\nVPC_IP  VPC MAC ADDR  UNDERLAY IP\n"
	}
	n.prints("global", "opteadm dump-v2p", none+"\nVPC 99\n"+hr+"\n"+empty("IPv4")+empty("IPv6")+
		"\nVPC 100\n"+hr+"\n\nIPv4 mappings\n"+hr+"\nVPC_IP    VPC MAC ADDR       UNDERLAY IP\n10.0.0.2  A8:40:25:FF:00:02  fd00::2\n10.0.0.9  A8:40:25:FF:00:08  fd00::8\n"+empty("IPv6"))
	n.must("global", "opteadm set-v2b 0.0.0.0/0 fd00::2 fd00::1", "opteadm set-v2b 0.0.0.0/0 fd00::1 fd00::3", "opteadm clear-v2b 0.0.0.0/0 fd00::2", "opteadm clear-v2b ::/0 fd00::2")
	n.prints("global", "opteadm dump-v2b", "Virtual to Boundary Mappings\n"+strings.Repeat("=", 70)+"\n\nIPv4 mappings\n"+hr+"\nTUNNELED PREFIX  BOUNDARY IP  VNI\n0.0.0.0/0        fd00::1      99\n0.0.0.0/0        fd00::3      99\n"+
		"\nIPv6 mappings\n"+hr+"\nTUNNELED PREFIX  BOUNDARY IP  VNI\n\n")
	network.RebootNetwork(n.tx)
	n.prints("global", "opteadm dump-v2p", none)
}

func TestWhatOfOPTEIsNotSimulated(t *testing.T) {
	n := newNetwork(t, world.Helios)
	n.must("global", "opteadm set-xde-underlay net0 net1", create("opte0", "a8:40:25:ff:0:1", "10.0.0.5", "100"))
	for _, line := range []string{
		"", "list-layers -p opte0", "dump-uft -p opte0", "set-m2p 224.0.0.1 ff04::1", "list-ports x", "list-ports --json", "dump-layer opte0 -p", "dump-layer -p opte0 nat", "create-xde opte1", "delete-xde", "delete-xde opte0 opte1",
		"set-v2p 10.0.0.9 a8:40:25:ff:0:9 10.0.0.1 100", "set-v2p 10.0.0.9 a8:40:25:ff:0:9 fd00::9 16777216", "set-v2b 0.0.0.0/0", "add-router-entry -p opte0 10.0.0.0/8 ig user", "add-router-entry -p opte0 10.0.0.0/8 ip6=fd00::1 system",
		"set-xde-underlay net0", "set-xde-underlay net0 net0", "set-xde-underlay net0 net9",
	} {
		n.refuses("global", strings.TrimSpace("opteadm "+line))
	}
	omnios := newNetwork(t, world.OmniOS)
	omnios.fails("global", "opteadm list-ports", "", "Error: OPTE driver is not attached\n")
}
