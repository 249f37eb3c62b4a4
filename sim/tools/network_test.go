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
