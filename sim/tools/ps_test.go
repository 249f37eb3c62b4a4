package tools

import (
	"strings"
	"testing"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/tools/system"
	"github.com/sledctl/sledctl/sim/world"
)

// Columns, widths and refusals are those of usr/src/cmd/ps/ps.c.
func TestPsListsTheProcessesOfZones(t *testing.T) {
	n := newNetwork(t, world.OmniOS)
	n.zone("z1")
	n.zone("z2")
	n.tx.State.Processes = append(n.tx.State.Processes, &world.Process{PID: 4711, Zone: "z1", Argv: []string{"/opt/p/propolis-server", "run", "10.0.0.1:12400"}, Started: n.tx.Now})
	said := func(line string) cli.Reply {
		words := strings.Fields(line)
		return system.Ps(n.tx, cli.Call{Tool: "ps", Args: words, Zone: world.GlobalZone})
	}
	r := said("-z z1 -o pid,ppid,stime,time,args")
	lines := strings.Split(r.Stdout, "\n")
	if want := "  PID  PPID    STIME        TIME COMMAND"; r.Exit != 0 || lines[0] != want {
		t.Errorf("exit %d, %q, want %q", r.Exit, lines[0], want)
	}
	if !strings.Contains(r.Stdout, "\n 4711 ") || !strings.HasSuffix(r.Stdout, " 00:00 /opt/p/propolis-server run 10.0.0.1:12400\n") || !strings.Contains(r.Stdout, " /sbin/init\n") {
		t.Errorf("%s", r.Stdout)
	}
	if all := said("-e -o zone,comm").Stdout; !strings.Contains(all, "      z1 /opt/p/propolis-server\n") || !strings.Contains(all, "      z2 zsched\n") {
		t.Errorf("%s", all)
	}
	if inside := system.Ps(n.tx, cli.Call{Tool: "ps", Args: []string{"-e", "-o", "zone"}, Zone: "z2"}); strings.Contains(inside.Stdout, "z1") || !strings.Contains(inside.Stdout, "z2") {
		t.Errorf("inside a zone: %s", inside.Stdout)
	}
	for line, want := range map[string]string{
		"-z z9 -o pid": "ps: unknown zone z9\nusage: ps ", "-z z1 -o pidd": "ps: unknown output format: -o pidd\nusage: ps ", "-z z1 -o pid x": "usage: ps ",
	} {
		if r := said(line); r.Exit != 1 || !strings.HasPrefix(r.Stderr, want) {
			t.Errorf("%s: exit %d, %q", line, r.Exit, r.Stderr)
		}
	}
}
