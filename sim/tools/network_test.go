package tools

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/boot"
	"github.com/sledctl/sledctl/sim/world/network"
)

// netSled is a sled on which network commands run one after the other, each to
// its end, with the clock moved on by what it takes.
type netSled struct {
	t  *testing.T
	tx *world.Tx
}

func newNetwork(t *testing.T, mode world.Mode) *netSled {
	t.Helper()
	state := boot.Fresh(boot.Options{Seed: 7, Mode: mode})
	return &netSled{t, world.NewTx(state, state.Booted.Add(time.Minute), nil)}
}

// zone adds a running zone with a stack of its own, and lends it links.
func (n *netSled) zone(name string, links ...string) {
	n.t.Helper()
	n.tx.State.Zones = append(n.tx.State.Zones, &world.Zone{Name: name, State: "installed", Kernel: &world.Kernel{
		ID: len(n.tx.State.Zones) + 1, State: "running", Config: world.Config{IPType: "exclusive"},
	}})
	for _, l := range links {
		if err := network.LendLink(n.tx, name, l); err != nil {
			n.t.Fatalf("lend %s to %s: %v", l, name, err)
		}
	}
	network.StartStack(n.tx, name)
	n.tx.State.Services[name] = &world.Repository{Instances: map[string]*world.Service{
		"svc:/network/ip-interface-management:default": {Timeline: []world.Timepoint{{State: "online", From: n.tx.Now}}},
	}}
}

// in runs a command line in a zone. Words are separated by blanks.
func (n *netSled) in(zone, line string) cli.Reply {
	n.t.Helper()
	words := strings.Fields(line)
	tool, ok := Lookup(words[0])
	if !ok {
		n.t.Fatalf("no tool %q", words[0])
	}
	reply := tool(n.tx, cli.Call{Tool: words[0], Args: words[1:], Zone: zone})
	total := reply
	for next := reply.Next; next != nil; next = reply.Next {
		n.tx.Now = n.tx.Now.Add(next.After)
		if next.Until != nil && !next.Until(n.tx) {
			total.Next = next
			return total
		}
		reply = next.Do(n.tx)
		total.Stdout, total.Stderr, total.Exit = total.Stdout+reply.Stdout, total.Stderr+reply.Stderr, reply.Exit
	}
	total.Next = nil
	return total
}

// run runs a command line in the global zone.
func (n *netSled) run(line string) cli.Reply { n.t.Helper(); return n.in("global", line) }

// must runs lines that have to succeed in silence.
func (n *netSled) must(zone string, lines ...string) {
	n.t.Helper()
	for _, line := range lines {
		if r := n.in(zone, line); r.Exit != 0 || r.Stderr != "" {
			n.t.Fatalf("%s: exit %d, %q", line, r.Exit, r.Stderr)
		}
	}
}

// fails checks exit 1 and standard error; standard output must be out.
func (n *netSled) fails(zone, line, out, text string) {
	n.t.Helper()
	want := cli.Reply{Stdout: out, Stderr: text, Exit: 1}
	if diff := cmp.Diff(want, n.in(zone, line)); diff != "" {
		n.t.Errorf("%s in %s (-want +got):\n%s", line, zone, diff)
	}
}

// refuses checks that a line is not simulated.
func (n *netSled) refuses(zone, line string) {
	n.t.Helper()
	words := strings.Fields(line)
	text := "not simulated: " + words[0] + ": " + strings.Join(words[1:], " ") + "\n"
	if r := n.in(zone, line); r.Exit != cli.ExitNotSimulated || r.Stdout != "" || r.Stderr != text {
		n.t.Errorf("%s in %s: %+v, want exit 70, %q", line, zone, r, text)
	}
}

// prints checks exit 0 and standard output.
func (n *netSled) prints(zone, line, want string) {
	n.t.Helper()
	if diff := cmp.Diff(cli.Reply{Stdout: want}, n.in(zone, line)); diff != "" {
		n.t.Errorf("%s in %s (-want +got):\n%s", line, zone, diff)
	}
}

// networkSample reads a file of shared/samples next to the repository.
func networkSample(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "samples", name))
	if err != nil {
		t.Skip("shared/samples is not here")
	}
	return string(data)
}

// What sledctl, its scripts and its pages do not use is refused, whatever else is
// asked for.
func TestWhatIsNotSimulatedIsRefused(t *testing.T) {
	n := newRouteNetwork(t)
	n.must("global", "dladm create-vnic -t -l stub0 v1", "dladm create-vnic -t -l net0 -m 2:8:20:1:2:3 v2", "dladm create-vnic -l net1 p0")
	for tool, lines := range map[string][]string{
		"dladm": {
			"", "help", "nope", "add-aggr -l net0 aggr0", "rename-link v1 v9", "reset-linkprop -t -p mtu v1", "show-etherstub", "delete-aggr a0",
			"delete-vlan a0", "show-link -s", "show-link -P", "show-link -p", "show-link -p -o all", "show-link -p -o link,x", "show-link -o link,x",
			"show-link -p -p -o link", "show-link net0 net1", "show-link -s -i 1", "show-vnic -p", "show-vnic -s", "show-vnic net0",
			"show-phys", "show-phys -p -o link", "show-phys -m", "show-phys -H", "show-phys -m -p -o slot", "show-aggr", "show-aggr -x", "show-aggr -x -p -o policy",
			"show-aggr -x -p -o link aggr0", "show-linkprop -P", "show-linkprop -c -p mtu", "show-linkprop -p nope", "show-linkprop -p =",
			"create-vnic v2", "create-vnic v2 -l net0", "create-vnic -l net0", "create-vnic -q -l net0 v3", "create-vnic -l", "create-vnic -l net0 -n 1 v3",
			"create-vnic -t -l net0 -m 2:8:20:1:2 v3", "create-vnic -t -l net0 -m auto v3", "create-vnic -t -l net0 -m fixed v3", "create-vnic -t -l net0 -v 0 v3",
			"create-vnic -t -l net0 -v 4095 v3", "create-vnic -t -l net0 -f v3", "create-vnic -t -l net0 -p maxbw=1 v3", "create-vnic -t -l net0 -p mtu=9000 v3",
			"create-vnic -t -l net0 -m a8:40:25:0:7:1 v3", "create-vnic -t -l net0 -m 1:0:5e:0:0:1 v3", "create-vnic -t -l v1 v3", "create-vnic -l stub0 v3",
			"create-vnic -t -l net0 -R / v3", "delete-vnic -t v1", "delete-vnic net0", "delete-vnic v1 v2", "delete-vnic", "create-etherstub -R / stub1",
			"create-aggr -l net0 aggr0", "create-aggr -l net9 aggr0", "create-aggr -L never -l net1 aggr0", "create-aggr -P L2 -l net1 aggr0", "create-aggr a0",
			"create-aggr -t -l net1 aggr0", "create-aggr -l net1 aggr0", "create-vlan -l net0 -v 7", "create-vlan -l net0 v7", "create-vlan -l v1 -v 7 vlan7",
			"create-vlan -t -l net0 -v 7 vlan7", "create-vlan -f -l net0 -v 7 vlan7", "create-vlan -l net0 -v 4095 vlan7",
			"set-linkprop v1", "set-linkprop -t -p mtu= v1", "set-linkprop -t -p mtu=1,mtu=2 v1", "set-linkprop -R / -p mtu=1500 v1",
		},
		"ipadm": {
			"nope", "set-prop -p x=1 tcp", "show-ifprop", "disable-if lo0", "show-if", "show-if -p -o state", "show-if -p -o ifname lo0", "show-addr -p",
			"show-addr -o addrobj,current", "show-addr -p -o persistent", "show-addr v1", "create-if", "create-if -x v1", "create-if bad-name",
			"delete-if -t v1", "delete-addr -r net0/v4", "create-addr -T", "create-addr -t v1/v4", "create-addr -t -T nope v1/v4", "create-addr -t -T dhcp v1",
			"create-addr -t -T static v1/v4", "create-addr -t -T static -d -a 10.0.0.9/24 v1/v4", "create-addr -t -T static -a nope v1/v4",
			"create-addr -t -T static -a 10.0.0.6/33 v1/v4", "create-addr -t -T static -a 10.0.0.6 v1/v4", "create-addr -t -T static -a 0.0.0.0/24 v1/v4",
			"create-addr -t -T static -a local=10.0.0.6/24 v1/v4", "create-addr -t -T static -a 10.0.0.6/24 v1/under_", "create-addr -t -T static -a 10.0.0.6/24 v1/1st",
			"create-addr -t -T dhcp -a 1 v1/v4", "create-addr -t -T dhcp -w 1 v1/v4", "create-addr -t -T dhcp -1 v1/v4", "create-addr -t -T addrconf -i ::1 v1/v4",
			"set-ifprop -t -p mtu=1500 net0", "set-ifprop -p mtu=1500 -m ipv4 net0", "set-ifprop -t -p forwarding=on -m ipv6 net0", "set-ifprop -t -p mtu=1500 -m tcp net0",
		},
		"route": {
			"", "-x", "nope", "flush", "-p add default 10.0.0.1", "-n get", "get default", "-n get 10.0.0.77", "-n get default 192.168.77.1", "-n get default -ifp net0",
			"add default", "add -nope default 192.168.77.1", "add default 192.168.77.1 -ifp", "add -host 10.1.0.7 192.168.77.1", "add 10.1.0.7 192.168.77.1",
			"add default 192.168.77.1 255.0.0.0", "add default 192.168.77.1 -interface", "add -inet6 default 192.168.77.1", "add default gateway", "add 10.0.0.0/33 192.168.77.1",
		},
		"netstat": {"", "-i", "-rn -f inet", "-r", "-rn x"},
		"ps": {
			"", "-e -o pid,args", "-z z1", "-z z1 -o pidd,args", "-z z1 -o pid", "-z z1 -o zone,args", "-z z1 -o pid,args x", "-z z1,z2 -o args",
			"-z global -o args", "-ef",
		},
		"pcred": {"", "-a 7", "7 8", "self"},
		"ppriv": {"", "-l", "-S 7", "-s A=basic 7", "7 8", "self", "-v 7"},
		"uname": {"", "-a", "-s", "-r", "-v x"}, "zonename": {"-t", "x"}, "pfexec": {"", "zonename", "-P all zonename"},
		"swap": {"", "-l", "-sh", "-s x", "-a /dev/x"}, "mount": {"", "-p x", "-p -F zfs", "-pv", "-v", "-F zfs rpool", "-F tmpfs swap /tmp", "-F zfs -O rpool/x /tmp", "-F zfs -o ro rpool/x /tmp"}, "umount": {"", "-f /tmp", "-a", "/tmp /var"},
		"rsrvrctl": {"", "-h", "-a 1", "-r 1", "-c 16 -s 1", "-s", "-s x", "-s 0x10", "-q more", "-q -s 1"},
		"kstat":    {"", "-p", "unix:0:system_misc:boot_time", "-j zones:::nsec_sys", "-p zones", "-p 1 2"},
		"psrinfo":  {"-p", "-v", "-t", "0"},
		"prtconf":  {"", "-D", "-m -D", "-m -v", "-z", "-vDP", "-vD /pci"},
	} {
		for _, line := range lines {
			n.refuses("global", strings.TrimSpace(tool+" "+line))
		}
	}
}
