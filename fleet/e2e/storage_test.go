package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sledctl/sledctl/sim/world"
)

const (
	storedVolume = "7c1e6dd0-2a5f-4f4c-9f0b-0d8a8a3a1f01"
	storedKey    = "c3VwZXIgc2VjcmV0IHN1cGVyIHNlY3JldCAgIDMyIDA="
	stored       = `apiVersion: v1
kind: Secret
metadata: {name: stored}
stringData: {key: ` + storedKey + `}
---
apiVersion: sledctl.dev/v1alpha1
kind: VirtualMachine
metadata: {name: stored}
spec:
  cpus: 1
  memory: 1Gi
  restart: storage
  disks:
  - crucible:
      id: ` + storedVolume + `
      targets: ["10.0.0.1:3810", "10.0.0.2:3810", "10.0.0.3:3810"]
      blockSize: 4096
      blocksPerExtent: 16384
      extents: 160
      secret: stored
`
)

// Writing are the sleds on which a VM runs that can write.
func (f *Fleet) Writing(vm string) (on []string) {
	f.t.Helper()
	for name, s := range f.sleds {
		writes, err := s.Writes(f.t.Context())
		f.ok(err)
		for _, run := range writes {
			if strings.HasPrefix(run, vm+".") {
				on = append(on, name)
			}
		}
	}
	return on
}

// takenOver cuts off the sled of a VM under storage, and waits until the VM runs on another one.
func (f *Fleet) takenOver() (cut *Sled, took time.Duration, w *watcher) {
	f.t.Helper()
	f.Apply(stored)
	f.Running("stored")
	cut = f.sleds[f.On("stored")[0]]
	w = f.watch("stored")
	if on := f.Writing("stored"); len(on) != 1 || on[0] != cut.Name {
		f.t.Fatalf("it writes on %v, and runs on sled %s", on, cut.Name)
	}
	cut.cable.Cut()
	return cut, f.elsewhere("stored", cut), w
}

// aVolumeIsTakenOver: a VM under storage runs elsewhere while its sled is cut off. The earlier copy
// runs on, and cannot write; the sled ends it when it is back.
func aVolumeIsTakenOver(t *testing.T, f *Fleet) {
	cut, took, w := f.takenOver()
	t.Logf("it runs elsewhere %v after sled %s was cut off", took, cut.Name)
	if on := f.On("stored"); len(on) != 2 {
		t.Errorf("it runs on %v: the sled that is cut off has ended it", on)
	}
	if on := f.Writing("stored"); len(on) != 1 || on[0] == cut.Name {
		t.Errorf("it can write on %v", on)
	}
	read := func(path string) string { return f.Must("get", "vm", "stored", "-o", "jsonpath={"+path+"}") }
	if got := read(".status.ended.proof") + " " + read(".status.generation"); got != "storage 2" {
		t.Errorf("the proof, and the generation: %s", got)
	}
	if last := f.shared.Last(storedVolume); last != 2 {
		t.Errorf("the volume was opened with generation %d", last)
	}
	cut.cable.Join()
	f.Until("the sled has ended its copy", func() bool { return len(f.On("stored")) == 1 })
	f.Until("its pod is gone", func() bool {
		return strings.Fields(f.Must("get", "pods", "--no-headers"))[0] == "stored-2" && strings.Count(f.Must("get", "pods", "--no-headers"), "\n") == 1
	})
	if found := w.found(); found != "" {
		t.Errorf("two copies could write at once: %s", found)
	}
	t.Logf("%d looks found one copy that can write", w.stop())
	if on := f.On("stored"); on[0] == cut.Name {
		t.Errorf("it runs on %v: the other one was ended", on)
	}
	if said := f.Must("get", "pods,vm,events", "-o", "yaml"); strings.Contains(said, storedKey) {
		t.Error("the key of the volume is in an object that is no Secret")
	}
	f.rejoin(cut)

	alone := strings.Replace(strings.Split(stored, "---\n")[1], "name: stored", "name: diskless", 1)
	f.Apply(alone[:strings.Index(alone, "  disks:")])
	f.Until("a VM without a volume says what its policy counts as", func() bool {
		return strings.Contains(f.Must("get", "vm", "diskless", "-o", `jsonpath={.status.conditions[?(@.type=="Restart")].message}`), "counts as hold")
	})
	f.Must("delete", "vm", "--all", "--timeout=60s")
	for bad, want := range map[string]string{
		"disks: [{size: 1Gi}]": "restarted by policy hold only", "disks: [{crucible: {id: v}}]": "spec.disks[0].crucible.id", "disks: [{path: /a, crucible: " + strings.TrimSpace(`{id: `+storedVolume+`, targets: ["10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"], blockSize: 512, blocksPerExtent: 1, extents: 1}`) + "}]": "or crucible",
	} {
		if err := f.Refused(alone[:strings.Index(alone, "  disks:")] + "  " + bad + "\n"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// away has the VM move to another sled.
func (f *Fleet) away(name, target string) (phase func() string) {
	f.t.Helper()
	f.Apply(fmt.Sprintf("apiVersion: sledctl.dev/v1alpha1\nkind: VirtualMachineMigration\nmetadata: {name: %s}\nspec: {vm: stored, target: %s}\n", name, target))
	return func() string { return f.Must("get", "vmm", name, "-o", "jsonpath={.status.phase}") }
}

// aVMTakesItsVolumeAlong: a VM moves while it runs, and its target opens its volume with the generation
// that comes; a move that fails has opened nothing. One copy can write at each instant. It is drained, too.
func aVMTakesItsVolumeAlong(t *testing.T, f *Fleet) {
	const volume = "7c1e6dd0-2a5f-4f4c-9f0b-0d8a8a3a1f03"
	f.Apply(strings.ReplaceAll(stored, storedVolume, volume))
	f.Running("stored")
	w := f.watch("stored")
	source := f.On("stored")[0]
	target := f.other(source)
	writes := func(on string, generation uint64) {
		t.Helper()
		if got := f.Writing("stored"); len(got) != 1 || got[0] != on || f.shared.Last(volume) != generation {
			t.Errorf("it can write on %v, and the volume was opened with generation %d, not on sled %s with %d", got, f.shared.Last(volume), on, generation)
		}
	}
	f.ok(f.sleds[target].Arm(t.Context(), world.Fault{Name: world.FaultFail, Match: "propolis * migrate Device", Times: 1}))
	phase := f.away("not-away", target)
	f.Until("the migration has failed", func() bool { return phase() == "Failed" })
	writes(source, 1)
	f.slow(1)
	phase = f.away("stored-away", target)
	f.Until("the migration has succeeded", func() bool { return phase() == "Succeeded" })
	f.Running("stored")
	writes(target, 3)
	f.Must("drain", target, "--timeout=60s")
	f.Running("stored")
	if on := f.On("stored"); len(on) != 1 || on[0] == target {
		t.Errorf("drained, it runs on %v", on)
	}
	writes(f.On("stored")[0], 4)
	f.Must("uncordon", target)
	if found := w.found(); found != "" {
		t.Errorf("two copies could write at once: %s", found)
	}
	t.Logf("%d looks found one copy that can write", w.stop())
	f.unstopped("stored")
	f.Until("nothing is left of its runs before", func() bool { return strings.TrimSpace(f.Must("get", "pods", "-o", "name")) == "pod/stored-4" })
	if said := f.Must("get", "pods,vm,vmm,events", "-o", "yaml"); strings.Contains(said, storedKey) {
		t.Error("the key of the volume is in an object that is no Secret")
	}
	f.Must("delete", "vm", "--all", "--timeout=60s")
	f.Must("delete", "vmm", "--all")
}

// aVolumeThatOthersHadOpen: its runs fail until their generation is above that of the others.
func aVolumeThatOthersHadOpen(t *testing.T, f *Fleet) {
	const volume = "7c1e6dd0-2a5f-4f4c-9f0b-0d8a8a3a1f02"
	f.ok(f.shared.Activate(volume, "another", 2))
	f.Apply(strings.ReplaceAll(strings.ReplaceAll(stored, storedVolume, volume), ": stored", ": later"))
	t.Logf("it runs after %v", f.Running("later"))
	if got := f.Must("get", "vm", "later", "-o", "jsonpath={.status.generation}"); got != "3" || len(f.Writing("later")) != 1 {
		t.Errorf("it runs as generation %s, and writes on %v", got, f.Writing("later"))
	}
	f.Must("delete", "vm", "--all", "--timeout=60s")
}

// aVolumeThatAnybodyMayOpen: the story would find two writers. Downstairs that compare no generations
// break what the rule rests on.
func aVolumeThatAnybodyMayOpen(t *testing.T, f *Fleet) {
	f.shared.Lie(true)
	defer f.shared.Lie(false)
	cut, _, w := f.takenOver()
	f.Until("two copies are found that can write", func() bool { return w.found() != "" })
	w.stop()
	cut.cable.Join()
	f.Until("the sled has ended its copy", func() bool { return len(f.On("stored")) == 1 })
	f.rejoin(cut)
}
