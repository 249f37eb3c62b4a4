package tools

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
)

// The texts and exit codes are those of newroute and save_route in
// usr/src/cmd/cmd-inet/usr.sbin/route.c.

func newRouteNetwork(t *testing.T) *netSled {
	n := newZoneNetwork(t)
	n.must("z1", "ipadm create-addr -t -T static -a 10.0.0.5/24 v0/v4", "ipadm create-addr -t -T addrconf v0/ll",
		"ipadm create-addr -t -T static -a fd00::5/64 v0/v6")
	return n
}

func (n *netSled) answers(line string, want cli.Reply) {
	n.t.Helper()
	if diff := cmp.Diff(want, n.in("z1", line)); diff != "" {
		n.t.Errorf("%s (-want +got):\n%s", line, diff)
	}
}

func TestRouteAddDelete(t *testing.T) {
	n := newRouteNetwork(t)
	const added = "add net default: gateway 10.0.0.1"
	n.answers("route add default 10.0.0.1", cli.Reply{Stdout: added + "\n"})
	n.answers("route add default 10.0.0.1", cli.Reply{Stdout: added + ": entry exists\n", Exit: 17})
	n.answers("route add default 10.0.0.2", cli.Reply{Stdout: "add net default: gateway 10.0.0.2\n"})
	n.answers("route add default 10.9.0.1", cli.Reply{Stdout: "add net default: gateway 10.9.0.1: Network is unreachable\n", Exit: 128})
	n.answers("route add -inet6 default fd00::1", cli.Reply{Stdout: "add net default: gateway fd00::1\n"})
	n.answers("route add -inet6 fd01::/48 -inet6 fd00::1 -ifp v0", cli.Reply{Stdout: "add net fd01::/48: gateway fd00::1\n"})
	n.answers("route add default 10.0.0.1 -ifp v9", cli.Reply{Stderr: "route: v9: no such interface\n", Exit: 1})
	n.answers("route delete default 10.0.0.1", cli.Reply{Stdout: "delete net default: gateway 10.0.0.1\n"})
	n.answers("route delete default 10.0.0.1", cli.Reply{Stdout: "delete net default: gateway 10.0.0.1: not in table\n", Exit: 3})
}

func TestRouteGet(t *testing.T) {
	n := newRouteNetwork(t)
	n.answers("route -n get default", cli.Reply{Stdout: " 0.0.0.0: not in table\n", Exit: 3})
	n.answers("route -n get -inet6 default", cli.Reply{Stdout: " ::: not in table\n", Exit: 3})
	n.must("z1", "route add default 10.0.0.1", "route add -inet6 fd01::/48 fd00::1")
	n.answers("route -n get -inet default", cli.Reply{Stdout: "" +
		"   route to: default\ndestination: default\n       mask: default\n    gateway: 10.0.0.1\n  interface: v0\n" +
		"      flags: <UP,GATEWAY,DONE,STATIC>\n" +
		" recvpipe  sendpipe  ssthresh    rtt,ms rttvar,ms  hopcount      mtu     expire\n" +
		"       0         0         0         0         0         0      9000         0 \n"})
	if r := n.in("z1", "route -n get -inet6 default"); r.Exit != 3 {
		t.Errorf("the default route of another family: %+v", r)
	}
}

// A sample of a real zone (omicron docs/debugging-time-sync.adoc).
func TestRouteGetIsThatOfASampleOfARack(t *testing.T) {
	sample := networkSample(t, "omicron/route_-n_get_default__ngz1__omicron-HEAD_docs_debugging-time-sync.adoc.txt")
	n := newNetwork(t, world.Helios)
	n.must("global", "dladm create-vnic -t -l net0 opte0")
	n.zone("oxz_ntp", "opte0")
	n.must("oxz_ntp", "ipadm create-addr -t -T static -a 172.30.3.6/24 opte0/public", "route add default 172.30.3.1")
	got := n.in("oxz_ntp", "route -n get default").Stdout
	if diff := cmp.Diff(trimLines(sample), trimLines(got)); diff != "" {
		t.Errorf("(-rack +here):\n%s", diff)
	}
}

func TestRoutesGoWithTheirInterface(t *testing.T) {
	n := newRouteNetwork(t)
	n.must("z1", "route add default 10.0.0.1", "ipadm delete-if v0")
	n.answers("route -n get default", cli.Reply{Stdout: " 0.0.0.0: not in table\n", Exit: 3})
}

func trimLines(s string) string {
	var out strings.Builder
	for line := range strings.Lines(s) {
		out.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return out.String()
}
