package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
)

// command is a step of one command line.
type command struct {
	fakeStep
	line host.Line
	back any
	need []string
}

func (c command) Explain() []host.Line { return []host.Line{c.line, host.WaitLine("svcs says so")} }
func (c command) Undo() any            { return c.back }

// watchful is one that also looks.
type watchful struct{ command }

func (w watchful) Needs() []string { return w.need }

func TestTheProgramsOfAPlan(t *testing.T) {
	run := func(program, zone string) host.Line {
		return host.CommandLine(host.Command{Program: program, Zone: zone, Env: []string{"A=b c"}})
	}
	p := plan.Plan{Actions: []plan.Action{
		{ID: "a", Step: command{line: run("zoneadm", ""), back: command{line: run("zonecfg", "")}}},
		{ID: "b", Step: watchful{command{line: run("ipadm", "z1"), need: []string{"svcprop"}}}},
		{ID: "c", Step: command{line: host.FileLine("/etc/dladm", nil)}, Cleanup: []plan.Action{
			{ID: "c1", Step: command{line: run("zfs", "")}}, {ID: "c2", Step: command{line: run("zoneadm", "")}},
		}},
	}}
	want := []string{"svcprop", "zfs", "zlogin", "zoneadm", "zonecfg"}
	if diff := cmp.Diff(want, p.Programs()); diff != "" {
		t.Error(diff)
	}
	if got := (plan.Plan{}).Programs(); len(got) != 0 {
		t.Errorf("an empty plan needs %q", got)
	}
}
