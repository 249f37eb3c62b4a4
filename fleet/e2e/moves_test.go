package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sledctl/sledctl/sim/world"
)

// moved is a migration of web.
const moved = `apiVersion: sledctl.dev/v1alpha1
kind: VirtualMachineMigration
metadata: {name: web-away}
spec: {vm: web, target: %s}
`

// slow makes migrations take a while, as memory does.
func (f *Fleet) slow(times int) {
	f.t.Helper()
	for _, s := range f.sleds {
		f.ok(s.Arm(f.t.Context(), world.Fault{Name: world.FaultSlowMigrate, Match: "propolis * migrate RamPush", Delay: 500 * time.Millisecond, Times: times}))
	}
}

// unstopped wants that none of these VMs has ended, but by a move.
func (f *Fleet) unstopped(vms ...string) {
	f.t.Helper()
	ended := strings.Fields(f.Must("get", "events", "--field-selector", "reason=Ended", "-o", "jsonpath={range .items[*]}{.involvedObject.uid} {end}"))
	for _, vm := range vms { // by its id: there were others of its name
		if slices.Contains(ended, f.Must("get", "vm", vm, "-o", "jsonpath={.metadata.uid}")) {
			f.t.Errorf("%s was stopped", vm)
		}
	}
}

// some applies VMs that are called so, and numbered.
func (f *Fleet) some(name string, count int) (names []string) {
	f.t.Helper()
	var all strings.Builder
	for n := range count {
		names = append(names, fmt.Sprintf("%s%d", name, n))
		fmt.Fprintf(&all, "---\napiVersion: sledctl.dev/v1alpha1\nkind: VirtualMachine\nmetadata: {name: %s%d}\nspec: {cpus: 1, memory: 1Gi}\n", name, n)
	}
	f.Apply(all.String())
	f.Running(names...)
	return names
}

func (f *Fleet) other(sled string) string {
	for _, name := range slices.Sorted(maps.Keys(f.sleds)) {
		if name != sled {
			return name
		}
	}
	return ""
}

// aVMMoves: it runs on one sled at each instant, and is the same instance afterwards. What
// fails leaves it where it was.
func aVMMoves(t *testing.T, f *Fleet) {
	f.Apply(web)
	f.Running("web")
	source := f.On("web")[0]
	target := f.other(source)
	id := f.Must("get", "vm", "web", "-o", "jsonpath={.metadata.uid}")
	f.ok(f.sleds[target].Arm(t.Context(), world.Fault{Name: world.FaultFail, Match: "propolis * migrate Device", Times: 1}))
	stop := f.copies("web")
	phase := func() string { return f.Must("get", "vmm", "web-away", "-o", "jsonpath={.status.phase}") }
	f.Apply(fmt.Sprintf(moved, target))
	f.Until("the migration has failed", func() bool { return phase() == "Failed" })
	if on := f.On("web"); len(on) != 1 || on[0] != source {
		t.Errorf("a migration has failed, and web runs on %v", on)
	}
	if said := f.Must("get", "vmm", "web-away", "-o", "jsonpath={.status.reason}"); !strings.Contains(said, target) {
		t.Errorf("why it failed: %q", said)
	}
	t.Log(f.Must("get", "vmm", "-o", "wide", "--no-headers"))
	f.Must("delete", "vmm", "web-away")
	f.Running("web")

	start := time.Now()
	f.Apply(fmt.Sprintf(moved, target))
	f.Until("the migration has succeeded", func() bool { return phase() == "Succeeded" })
	t.Logf("it has moved after %v", time.Since(start))
	f.Running("web")
	f.Until("nothing is left on its source", func() bool {
		return strings.TrimSpace(f.Must("get", "pods", "-o", "name")) == "pod/web-3"
	})
	if most := stop(); most != 1 {
		t.Errorf("%d copies ran at once", most)
	}
	if on := f.On("web"); len(on) != 1 || on[0] != target {
		t.Errorf("web runs on %v, not on %s", on, target)
	}
	if got := f.Must("get", "vm", "web", "-o", "jsonpath={.status.sled} {.status.generation} {.status.ended.generation} {.metadata.uid}"); got != target+" 3 1 "+id {
		t.Errorf("the VM: %s", got)
	}
	if said := f.sleds[target].Sledctl(t.Context(), "instance", "get", id); said != nil {
		t.Errorf("the instance is another one: %v", said)
	}
	f.unstopped("web")
	f.Must("delete", "vm/web", "vmm/web-away", "--timeout=60s")
}

// busiest is the sled with the most VMs.
func (f *Fleet) busiest() (most *Sled) {
	f.t.Helper()
	n := -1
	for _, name := range slices.Sorted(maps.Keys(f.sleds)) {
		runs, err := f.sleds[name].Runs(f.t.Context())
		f.ok(err)
		if len(runs) > n {
			most, n = f.sleds[name], len(runs)
		}
	}
	return most
}

func (f *Fleet) unslow() {
	f.t.Helper()
	for _, s := range f.sleds {
		f.ok(s.Machine.World().Update(f.t.Context(), func(tx *world.Tx) error { tx.State.Faults = nil; return nil }))
	}
}

const maintained = `apiVersion: sledctl.dev/v1alpha1
kind: SledMaintenance
metadata: {name: disk}
spec: {sled: %s, note: a disk is replaced}
`

// aSledIsMaintained: it is empty when the maintenance is Ready, takes no VM until that is
// deleted, and a VM with evict: block keeps it from being so.
func aSledIsMaintained(t *testing.T, f *Fleet) {
	names := f.some("kept", 6)
	sled := f.busiest()
	runs, err := sled.Runs(t.Context())
	f.ok(err)
	blocks, _, _ := strings.Cut(runs[0], ".")
	f.Must("patch", "vm", blocks, "--type=merge", "-p", `{"spec":{"evict":"block"}}`)
	said := func() string {
		return f.Must("get", "sledmaintenance", "disk", "-o", "jsonpath={.status.phase} {.status.remaining} {.status.reason}")
	}
	f.Apply(fmt.Sprintf(maintained, sled.Name))
	f.Until("the maintenance is blocked by one VM", func() bool { return strings.HasPrefix(said(), "Blocked 1 ") })
	if !strings.Contains(said(), blocks) {
		t.Errorf("what blocks it is not said: %s", said())
	}
	if out, err := f.Try("drain", sled.Name, "--timeout=1s"); err == nil {
		t.Errorf("a VM with evict: block is drained: %s", out)
	}
	f.Must("patch", "vm", blocks, "--type=merge", "-p", `{"spec":{"evict":"migrate"}}`)
	t.Logf("Ready after %v", f.Until("the maintenance is ready", func() bool { return strings.HasPrefix(said(), "Ready ") }))
	if runs, err := sled.Runs(t.Context()); err != nil || len(runs) != 0 {
		t.Errorf("sled %s runs %v, %v", sled.Name, runs, err)
	}
	f.unstopped(names...)
	if said := f.Must("get", "node", sled.Name, "-o", "jsonpath={.spec.unschedulable}"); said != "true" {
		t.Errorf("the sled takes VMs: unschedulable %q", said)
	}
	f.Must("delete", "sledmaintenance", "disk", "--timeout=30s")
	if said := f.Must("get", "node", sled.Name, "-o", "jsonpath={.spec.unschedulable}"); said != "" {
		t.Errorf("the sled takes no VM: unschedulable %q", said)
	}
	f.Must("delete", "vm", "--all", "--timeout=90s")
}

// moveBegins has web on its way to another sled, slowly, and counts its copies.
func (f *Fleet) moveBegins() (source, target string, stop func() int) {
	f.t.Helper()
	f.Apply(web)
	f.Running("web")
	source = f.On("web")[0]
	target = f.other(source)
	f.slow(100)
	stop = f.copies("web")
	f.Apply(fmt.Sprintf(moved, target))
	f.Until("the move has begun", func() bool {
		moves, err := f.sleds[source].Moves(f.t.Context())
		return err == nil && len(moves) > 0
	})
	return source, target, stop
}

// aControllerIsKilledInAMove: another one finds out how the move has ended. The nodes of both
// sleds are restarted, too.
func aControllerIsKilledInAMove(t *testing.T, f *Fleet) {
	source, target, stop := f.moveBegins()
	f.kill <- struct{}{}
	f.restartNode(f.sleds[source])
	f.restartNode(f.sleds[target])
	t.Logf("it has moved %v after another controller was started", f.Until("the migration has succeeded", func() bool {
		return f.Must("get", "vmm", "web-away", "-o", "jsonpath={.status.phase}") == "Succeeded"
	}))
	f.Running("web")
	if most := stop(); most != 1 {
		t.Errorf("%d copies ran at once", most)
	}
	if on := f.On("web"); len(on) != 1 || on[0] != target {
		t.Errorf("web runs on %v", on)
	}
	f.unstopped("web")
	f.unslow()
	f.Must("delete", "vm/web", "vmm/web-away", "--timeout=60s")
}

const lost = `apiVersion: sledctl.dev/v1alpha1
kind: SledMaintenance
metadata: {name: gone}
spec: {sled: %s, lost: {by: Ada, how: it burnt}}
`

// aTargetIsLostInAMove: under hold the move waits for the target. A person's statement that the
// target is lost ends it, and the VM is where it was.
func aTargetIsLostInAMove(t *testing.T, f *Fleet) {
	source, target, stop := f.moveBegins()
	f.cutPower(f.sleds[target])
	f.unslow()
	phase := func() string {
		return f.Must("get", "vm", "web", "-o", "jsonpath={.status.phase} {.status.moving.target}")
	}
	f.Until("the move waits", func() bool { return phase() == "Unknown "+target })
	f.Apply(fmt.Sprintf(lost, target))
	f.Until("the migration has failed", func() bool {
		return f.Must("get", "vmm", "web-away", "-o", "jsonpath={.status.phase}") == "Failed"
	})
	if said := f.Must("get", "vmm", "web-away", "-o", "jsonpath={.status.reason}"); !strings.Contains(said, "lost for good, by Ada") {
		t.Errorf("the migration says: %s", said)
	}
	f.Running("web")
	if most, on := stop(), f.On("web"); most != 1 || len(on) != 1 || on[0] != source {
		t.Errorf("%d copies ran at once, and it runs on %v", most, on)
	}
	f.unstopped("web")
	f.Until("the statement is recorded", func() bool {
		return strings.HasPrefix(f.Must("get", "sledmaintenance", "gone", "-o", "jsonpath={.status.phase} {.status.stated}"), "Ready 20")
	})
	if out, err := f.Try("patch", "sledmaintenance", "gone", "--type=merge", "-p", `{"spec":{"lost":null}}`); err == nil {
		t.Errorf("the statement is taken back: %s", out)
	}
	f.Must("delete", "sledmaintenance", "gone", "--timeout=30s")
	f.powerOn(f.sleds[target]) // the stories after this need it
	f.Until("the sled is Ready", f.Ready)
	f.Until("the sled may run VMs again", func() bool {
		return f.Must("get", "node", target, "-o", "jsonpath={.spec.taints[*].key}") == "sledctl.dev/sled"
	})
	f.Must("delete", "vm/web", "vmm/web-away", "--timeout=60s")
}
