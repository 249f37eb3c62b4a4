package tools

import (
	"testing"

	"github.com/sledctl/sledctl/sim/tools/cli"
)

// The layout is that of real captures (omicron docs/networking.adoc) and of
// usr/src/cmd/cmd-inet/usr.bin/netstat/netstat.c.
func TestNetstatRoutes(t *testing.T) {
	n := newRouteNetwork(t)
	n.must("z1", "route add default 10.0.0.1", "route add -inet6 fd01::/48 fd00::1 -ifp v0", "route add -inet6 default fd00::1")
	n.answers("netstat -rn", cli.Reply{Stdout: "\nRouting Table: IPv4\n" +
		"  Destination           Gateway           Flags  Ref     Use     Interface \n" +
		"-------------------- -------------------- ----- ----- ---------- --------- \n" +
		"default              10.0.0.1             UG        1          0          \n" +
		"10.0.0.0             10.0.0.5             U         1          0 v0       \n" +
		"127.0.0.1            127.0.0.1            UH        1          0 lo0      \n" +
		"\nRouting Table: IPv6\n" +
		"  Destination/Mask            Gateway                   Flags Ref   Use    If   \n" +
		"--------------------------- --------------------------- ----- --- ------- -----\n" +
		"default                     fd00::1                     UG      1       0      \n" +
		"::1                         ::1                         UH      1       0 lo0  \n" +
		"fd00::/64                   fd00::5                     U       1       0 v0   \n" +
		"fd01::/48                   fd00::1                     UG      1       0 v0   \n" +
		"fe80::/10                   fe80::8:20ff:fe15:28cd      U       1       0 v0   \n"})
}
