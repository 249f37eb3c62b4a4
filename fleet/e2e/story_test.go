package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sledctl/sledctl/fleet/node"
)

const web = `apiVersion: sledctl.dev/v1alpha1
kind: VirtualMachine
metadata: {name: web}
spec:
  cpus: 4
  memory: 8Gi
  nics: [{over: net0}]
`

// The story of the manual's page: three sleds, a VM that kubectl applies, shows and deletes.
func TestAFleet(t *testing.T) {
	t.Parallel()
	f := Begin(t)
	f.Install("--fence", "6s", "--halt", "4s", "--margin", "2s", "--beat", "500ms", "--power-after", "6s", "--settle", "3s")
	for number := 1; number <= 3; number++ {
		f.Join(number, node.Pace{Renew: time.Second, Fence: 6 * time.Second})
	}
	t.Logf("three sleds are Ready after %v", f.Until("three sleds are Ready", f.Ready))
	for _, story := range []struct {
		name string
		play func(*testing.T, *Fleet)
	}{
		{"a VM runs and ends", aVMRunsAndEnds},
		{"a sled touches nothing of others", aSledTouchesNothingOfOthers},
		{"the controller reads no other secret", theControllerReadsNoOtherSecret},
		{"a sled joins", aSledJoins},
		{"the manifests can be applied", func(_ *testing.T, f *Fleet) { f.Must("apply", "--server-side", "--dry-run=server", "-k", "..") }},
		{"objects are what kubectl expects", objectsAreWhatKubectlExpects},
		{"VMs are spread", vmsAreSpread},
		{"a VM moves", aVMMoves},
		{"a sled is drained", aSledIsDrained},
		{"a sled is maintained", aSledIsMaintained},
		{"a controller is killed in a move", aControllerIsKilledInAMove},
		{"a target is lost in a move", aTargetIsLostInAMove},
		{"a sled is cut off", aSledIsCutOff},
		{"without a guard there are two", withoutAGuardThereAreTwo},
		{"a sled is powered off", aSledIsPoweredOff},
		{"a BMC that lies too long", aBMCThatLiesTooLong},
		{"a volume is taken over", aVolumeIsTakenOver},
		{"a VM takes its volume along", aVMTakesItsVolumeAlong},
		{"a volume that others had open", aVolumeThatOthersHadOpen},
		{"a volume that anybody may open", aVolumeThatAnybodyMayOpen},
		{"an outage touches no VM", anOutageTouchesNoVM},
		{"a controller is killed", aControllerIsKilled},
		{"a store is restored", aStoreIsRestored},
	} {
		if !t.Run(story.name, func(t *testing.T) {
			was := f.t
			f.t = t
			defer func() { f.t = was }()
			story.play(t, f)
		}) {
			return
		}
	}
}

func aVMRunsAndEnds(t *testing.T, f *Fleet) {
	f.Apply(web)
	t.Logf("kubectl apply to Running: %v", f.Running("web"))
	on := f.On("web")
	if len(on) != 1 {
		t.Fatalf("web runs on %v", on)
	}
	fields := strings.Fields(f.Must("get", "vm", "web", "-o", "wide", "--no-headers"))
	if got := strings.Join(fields[:7], " "); got != "web Running "+on[0]+" 4 8Gi hold 1" {
		t.Errorf("kubectl get vm -o wide: %s", got)
	}
	start := time.Now()
	f.Must("delete", "vm", "web", "--timeout=60s")
	if on := f.On("web"); len(on) > 0 {
		t.Errorf("kubectl delete has returned, and web runs on %v", on)
	}
	t.Logf("kubectl delete: %v", time.Since(start))
	if left := f.Must("get", "pods", "--no-headers"); left != "" {
		t.Errorf("a pod is left: %s", left)
	}
}

func objectsAreWhatKubectlExpects(t *testing.T, f *Fleet) {
	f.Apply(web)
	f.Running("web")
	read := func() string { return f.Must("get", "vm", "web", "-o", "jsonpath={.metadata.generation} {.status}") }
	before, version := read(), f.Must("get", "vm", "web", "-o", "jsonpath={.metadata.resourceVersion}")
	f.Apply(web)
	if after := read(); after != before {
		t.Errorf("applied again, it is another one:\n%s\n%s", before, after)
	}
	if now := f.Must("get", "vm", "web", "-o", "jsonpath={.metadata.resourceVersion}"); now != version {
		t.Errorf("applied again, it was written: version %s, then %s", version, now)
	}
	for _, field := range []string{"vm.spec.restart", "vm.spec.disks.image", "vm.status.generation", "vmm.spec.target", "sledmaintenance.spec.sled", "sledbmc.spec.held"} {
		if said := f.Must("explain", field); !strings.Contains(said, "DESCRIPTION") || strings.Contains(said, "<no description>") {
			t.Errorf("kubectl explain %s: %s", field, said)
		}
	}
	for _, bad := range []string{"cpus: 0", "restart: maybe", "memroy: 1Gi", "disks: [{}]"} {
		text := strings.Replace(web, "  nics:", "  "+bad+"\n  nics:", 1)
		if strings.HasPrefix(bad, "cpus") {
			text = strings.Replace(web, "cpus: 4", bad, 1)
		}
		name := filepath.Join(f.dir, "bad.yaml")
		f.ok(os.WriteFile(name, []byte(text), 0o600))
		if said, err := f.Try("apply", "--server-side", "-f", name); err == nil {
			t.Errorf("%s is taken: %s", bad, said)
		}
	}
	f.Must("delete", "vm", "web", "--timeout=60s")
}

func vmsAreSpread(t *testing.T, f *Fleet) {
	var all strings.Builder
	var names []string
	for n := range 20 {
		names = append(names, fmt.Sprintf("vm%d", n))
		fmt.Fprintf(&all, "---\napiVersion: sledctl.dev/v1alpha1\nkind: VirtualMachine\nmetadata: {name: vm%d}\nspec: {cpus: 1, memory: 1Gi}\n", n)
	}
	f.Apply(all.String())
	t.Logf("20 VMs are Running after %v", f.Running(names...))
	for name, s := range f.sleds {
		runs, err := s.Runs(t.Context())
		f.ok(err)
		if len(runs) < 5 || len(runs) > 9 {
			t.Errorf("%d of 20 VMs run on sled %s", len(runs), name)
		}
	}
	f.Must("delete", "vm", "--all", "--timeout=90s")
}
