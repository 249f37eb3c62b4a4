package tools

import (
	"strings"
	"testing"

	"github.com/sledctl/sledctl/sim/world"
)

// Columns and widths are those of usr/src/cmd/ps/ps.c.
func TestPsListsTheProcessesOfZones(t *testing.T) {
	n := newNetwork(t, world.OmniOS)
	n.zone("z1")
	n.zone("z2")
	n.tx.State.Processes = append(n.tx.State.Processes, &world.Process{PID: 4711, Zone: "z1", Argv: []string{"/opt/p/propolis-server", "run", "10.0.0.1:12400"}, Started: n.tx.Now})
	r := n.run("ps -z z1 -o pid,ppid,stime,time,args")
	lines := strings.Split(r.Stdout, "\n")
	if want := "  PID  PPID    STIME        TIME COMMAND"; r.Exit != 0 || lines[0] != want {
		t.Errorf("exit %d, %q, want %q", r.Exit, lines[0], want)
	}
	if !strings.Contains(r.Stdout, "\n 4711 ") || !strings.HasSuffix(r.Stdout, " 00:00 /opt/p/propolis-server run 10.0.0.1:12400\n") || !strings.Contains(r.Stdout, " /sbin/init\n") {
		t.Errorf("%s", r.Stdout)
	}
	r = n.run("ps -z z9 -o pid,args") // as a bundle of a halted zone asks
	if r.Exit != 1 || r.Stdout != "" || !strings.HasPrefix(r.Stderr, "ps: unknown zone z9\nusage: ps ") {
		t.Errorf("a zone that the kernel does not have: %+v", r)
	}
}
