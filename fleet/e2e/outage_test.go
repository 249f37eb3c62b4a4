package e2e

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sledctl/sledctl/fleet/plane"
	"github.com/sledctl/sledctl/host"
)

// counting has the commands that change a host.
type counting struct {
	host.Host
	mu   sync.Mutex
	have []string
}

// Run is part of host.Host.
func (c *counting) Run(ctx context.Context, command host.Command) (host.Result, error) {
	if !command.ReadOnly {
		c.mu.Lock()
		c.have = append(c.have, host.CommandLine(command).Text)
		c.mu.Unlock()
	}
	return c.Host.Run(ctx, command)
}

// since are the commands after the first so many.
func (c *counting) since(first int) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.have[first:])
}

// What an outage is held to.
const (
	lasts     = 20 * time.Second // SLEDCTL_FLEET_OUTAGE is another time
	seems     = time.Hour        // for nodes and guards, by their clocks
	converges = 40 * time.Second // a minute is promised
)

// outage is how long the API server is gone.
func outage(t *testing.T) time.Duration {
	text := os.Getenv("SLEDCTL_FLEET_OUTAGE")
	if text == "" {
		return lasts
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second {
		t.Fatalf("SLEDCTL_FLEET_OUTAGE=%s: want a time, e.g. 10m", text)
	}
	return d
}

// hurry has an hour pass within that time, by the clocks of nodes and guards.
func (f *Fleet) hurry(within time.Duration) {
	const steps = 1000
	for range steps {
		time.Sleep(within / steps)
		for _, s := range f.sleds {
			s.passed.Add(int64(seems / steps))
		}
	}
}

// unchanged wants that no command has changed what is of these VMs.
func (f *Fleet) unchanged(vms string, before map[string]int) {
	f.t.Helper()
	for line := range strings.Lines(vms) {
		id := strings.Fields(line)[2]
		for name, s := range f.sleds {
			for _, command := range s.changes.since(before[name]) {
				if strings.Contains(command, id) {
					f.t.Errorf("sled %s: %s", name, command)
				}
			}
		}
	}
}

// anOutageTouchesNoVM: with policy hold, the API server may be gone for an hour, and a node restarted
// meanwhile: no host is changed, and within a minute all is as it was.
func anOutageTouchesNoVM(t *testing.T, f *Fleet) {
	names := f.some("held", 6)
	runs := func() string {
		return f.Must("get", "vm", "-o", `jsonpath={range .items[*]}{.metadata.name} {.status.generation} {.status.propolisID} {.status.sled}{"\n"}{end}`, "--sort-by=.metadata.name")
	}
	was, before := runs(), map[string]int{}
	for name, s := range f.sleds {
		before[name] = len(s.changes.since(0))
	}
	f.ok(f.Kill(plane.APIServer))
	f.restartNode(f.sleds["sled1"])
	f.hurry(outage(t))
	for name, s := range f.sleds {
		if changed := s.changes.since(before[name]); len(changed) > 0 {
			t.Errorf("%d commands changed sled %s while the API server was gone: %q", len(changed), name, changed)
		}
	}
	ctx, done := context.WithTimeout(t.Context(), soon)
	defer done()
	f.ok(f.Plane.Run(ctx, plane.APIServer))
	start := time.Now()
	f.Apply(web)
	f.Running(append(names, "web")...)
	took := time.Since(start)
	t.Logf("%v after an outage of %v a new VM runs", took, outage(t))
	if took > converges {
		t.Errorf("that took more than %v", converges)
	}
	f.Until("the sleds are Ready", f.Ready)
	f.unchanged(was, before)
	for line := range strings.Lines(was) {
		if !strings.Contains(runs(), line) {
			t.Errorf("it was %sand is\n%s", line, runs())
		}
	}
	for _, name := range names {
		if on := f.On(name); len(on) != 1 {
			t.Errorf("%s runs on %v", name, on)
		}
	}
	f.unstopped(names...)
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
