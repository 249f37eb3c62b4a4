package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sledctl/sledctl/fleet/plane"
	"github.com/sledctl/sledctl/host"
)

// counting counts the commands that change a host.
type counting struct {
	host.Host
	n atomic.Int64
}

// Run is part of host.Host.
func (c *counting) Run(ctx context.Context, command host.Command) (host.Result, error) {
	if !command.ReadOnly {
		c.n.Add(1)
	}
	return c.Host.Run(ctx, command)
}

// anOutageTouchesNoVM: with policy hold, the API server may be gone, and a node restarted
// meanwhile: no host is changed, and afterwards all is as it was.
func anOutageTouchesNoVM(t *testing.T, f *Fleet) {
	const outage = 20 * time.Second
	var all strings.Builder
	var names []string
	for n := range 6 {
		names = append(names, fmt.Sprintf("held%d", n))
		fmt.Fprintf(&all, "---\napiVersion: sledctl.dev/v1alpha1\nkind: VirtualMachine\nmetadata: {name: held%d}\nspec: {cpus: 1, memory: 1Gi}\n", n)
	}
	f.Apply(all.String())
	f.Running(names...)
	changed := func() (n int64) {
		for _, s := range f.sleds {
			n += s.changes.n.Load()
		}
		return n
	}
	before := changed()
	f.ok(f.Kill(plane.APIServer))
	f.restartNode(f.sleds["sled1"])
	time.Sleep(outage)
	if now := changed(); now != before {
		t.Errorf("%d commands changed a host while the API server was gone", now-before)
	}
	ctx, done := context.WithTimeout(t.Context(), soon)
	defer done()
	f.ok(f.Plane.Run(ctx, plane.APIServer))
	start := time.Now()
	f.Apply(web)
	f.Running(append(names, "web")...)
	t.Logf("%v after the outage a new VM runs", time.Since(start))
	for _, name := range names {
		if said := f.Must("get", "vm", name, "-o", "jsonpath={.status.generation}"); said != "1" {
			t.Errorf("%s was started again: generation %s", name, said)
		}
		if on := f.On(name); len(on) != 1 {
			t.Errorf("%s runs on %v", name, on)
		}
	}
	f.Must("delete", "vm", "--all", "--timeout=90s")
}

// restartNode ends the node of a sled, and starts another one.
func (f *Fleet) restartNode(s *Sled) {
	s.stop["node"]()
	f.Run(s, "node", s.node)
}

// aControllerIsKilled: another one resumes what the first has begun, and starts nothing
// twice.
func aControllerIsKilled(t *testing.T, f *Fleet) {
	f.Apply(web)
	f.Until("web has a generation", func() bool {
		return f.Must("get", "vm", "web", "-o", "jsonpath={.status.generation}") == "1"
	})
	stop := f.copies("web")
	f.kill <- struct{}{}
	t.Logf("web is Running %v after another controller was started", f.Running("web"))
	if most := stop(); most > 1 {
		t.Errorf("%d copies ran at once", most)
	}
	if said := f.Must("get", "vm", "web", "-o", "jsonpath={.status.generation}"); said != "1" {
		t.Errorf("it is generation %s", said)
	}
	f.Must("delete", "vm", "web", "--timeout=60s")
}
