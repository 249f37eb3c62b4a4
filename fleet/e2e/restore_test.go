package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sledctl/sledctl/fleet/plane"
)

// aStoreIsRestored: etcd comes back as it was before a VM moved, another was deleted and a third
// was made. No VM runs twice, none is ended, and what cannot be as the store has it is said on the object.
func aStoreIsRestored(t *testing.T, f *Fleet) {
	names := f.some("stored", 3)
	still, away, gone := names[0], names[1], names[2]
	snapshot := filepath.Join(f.dir, "snapshot")
	f.withoutPlane(func() { f.ok(os.CopyFS(snapshot, os.DirFS(f.Store()))) })
	f.Until("three sleds are Ready", f.Ready)
	home, target := f.On(still)[0], f.other(f.On(away)[0])

	f.Apply(strings.ReplaceAll(fmt.Sprintf(moved, target), "web", away))
	f.Until("the VM has moved", func() bool {
		on := f.On(away)
		return len(on) == 1 && on[0] == target && f.Must("get", "vmm", away+"-away", "-o", "jsonpath={.status.phase}") == "Succeeded"
	})
	f.Must("delete", "vm", gone, "--timeout=60s")
	f.Apply(strings.ReplaceAll(web, "name: web", "name: fresh"))
	f.Running("fresh")
	at := f.On("fresh")[0]

	var stops []func() int
	all := []string{still, away, gone, "fresh"}
	for _, vm := range all {
		stops = append(stops, f.copies(vm))
	}
	f.withoutPlane(func() {
		f.ok(os.RemoveAll(f.Store()))
		f.ok(os.CopyFS(f.Store(), os.DirFS(snapshot)))
	})
	start := time.Now()
	f.Until("the store knows again where what moved is", func() bool {
		return strings.HasPrefix(f.Must("get", "vm", away, "-o", "jsonpath={.status.sled} {.status.phase}"), target+" Running")
	})
	f.Until("what it has again runs again", func() bool {
		return f.Must("get", "vm", gone, "-o", "jsonpath={.status.phase} {.status.generation}") == "Running 2"
	})
	t.Logf("%v after the store was restored it agrees with the sleds", time.Since(start))
	if said := f.Must("get", "events", "--field-selector", "reason=Forgotten,involvedObject.name="+away, "-o", "jsonpath={.items[*].message}"); !strings.Contains(said, target) {
		t.Errorf("the events of %s: %q", away, said)
	}
	for i, vm := range all {
		if most := stops[i](); most > 1 {
			t.Errorf("%d copies of %s ran at once", most, vm)
		}
	}
	for vm, sled := range map[string]string{still: home, away: target, "fresh": at} {
		if on := f.On(vm); !slices.Equal(on, []string{sled}) {
			t.Errorf("%s runs on %v, not on %s", vm, on, sled)
		}
	}
	if said := f.Must("get", "vm", still, "-o", "jsonpath={.status.generation}"); said != "1" {
		t.Errorf("%s was started again: generation %s", still, said)
	}
	f.Must("delete", "vm", "--all", "--timeout=60s")
	runs, err := f.sleds[at].Runs(t.Context()) // which no object is of: an operator's to end
	f.ok(err)
	f.ok(f.sleds[at].Sledctl(t.Context(), "instance", "keeper", runs[0], "operator"))
	f.ok(f.sleds[at].Sledctl(t.Context(), "instance", "delete", runs[0]))
}

// withoutPlane does something while no server and no controller runs.
func (f *Fleet) withoutPlane(do func()) {
	f.t.Helper()
	f.leads.Lock()
	f.kill <- struct{}{}
	servers := []plane.Server{plane.Etcd, plane.APIServer, plane.Scheduler, plane.ControllerManager}
	for _, s := range slices.Backward(servers) {
		f.ok(f.Kill(s))
	}
	do()
	ctx, done := context.WithTimeout(f.t.Context(), soon)
	defer done()
	for _, s := range servers {
		f.ok(f.Plane.Run(ctx, s))
	}
	f.leads.Unlock()
}
