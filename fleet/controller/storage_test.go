package controller

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sledctl/sledctl/fleet/api"
)

const aVolume, anotherVolume = "7c1e6dd0-2a5f-4f4c-9f0b-0d8a8a3a1f01", "7c1e6dd0-2a5f-4f4c-9f0b-0d8a8a3a1f02"

// has gives the VM these disks.
func (s *story) has(disks ...api.Disk) {
	s.t.Helper()
	vm := s.look()
	vm.Spec.Disks = disks
	s.ok(s.store.Update(s.t.Context(), vm))
}

func inCrucible(id string) api.Disk {
	return api.Disk{Crucible: &api.Crucible{ID: id, Targets: []string{"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"}, BlockSize: 4096, BlocksPerExtent: 1, Extents: 1, Secret: "keys"}}
}

// keeps is a VM under storage that runs.
func keeps(t *testing.T) *story {
	t.Helper()
	s := begin(t, "sled1", "sled2", "sled3")
	s.create("storage")
	vm := &api.VirtualMachine{}
	s.ok(s.store.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "web"}, vm))
	vm.Spec.Disks = []api.Disk{inCrucible(aVolume)}
	s.ok(s.store.Update(t.Context(), vm))
	s.look()
	s.bind(1, "sled1")
	s.runs(1)
	return s
}

// takenOver is one whose sled has fallen silent, and that is to run elsewhere.
func takenOver(t *testing.T) *story {
	t.Helper()
	s := keeps(t)
	s.pass(5*time.Second, 25*time.Second, "sled2", "sled3")
	if vm := s.look(); vm.Status.Phase != api.PhaseUnknown || vm.Status.Generation != 1 {
		t.Fatalf("after 25 s: %+v", vm.Status)
	}
	s.pass(30*time.Second, 40*time.Second, "sled2", "sled3")
	return s
}

// The VM is raised, its sled is tainted, and the pod of the run that may go on stays until its sled has ended it.
func TestAVolumeIsTakenOver(t *testing.T) {
	s := takenOver(t)
	vm := s.look()
	if e := vm.Status.Ended; e == nil || e.Proof != "storage" || vm.Status.Generation != 2 || s.pod(2) == nil {
		t.Fatalf("%+v", vm.Status)
	}
	var sled corev1.Node
	s.ok(s.store.Get(t.Context(), client.ObjectKey{Name: "sled1"}, &sled))
	if len(sled.Spec.Taints) != 1 || sled.Spec.Taints[0].Key != api.TaintFenced {
		t.Errorf("%+v", sled.Spec.Taints)
	}
	s.bind(2, "sled2")
	s.runs(2)
	if vm := s.look(); vm.Status.Phase != api.PhaseRunning || s.pod(1) == nil || s.pod(1).DeletionTimestamp == nil {
		t.Fatalf("%+v, the first pod: %+v", vm.Status, s.pod(1))
	}
	s.ok(s.store.Delete(t.Context(), vm))
	s.ends(2)
	if s.look() == nil || s.pod(1) == nil {
		t.Fatal("it is gone, and a copy may go on")
	}
	s.ends(1)
	if vm := s.look(); vm != nil {
		t.Fatalf("%+v", vm.Status)
	}
}

// braked reads what Prometheus reads.
func (s *story) braked() float64 {
	s.t.Helper()
	at := prometheus.NewRegistry()
	s.ok(s.c.figures.register(at))
	families, err := at.Gather()
	s.ok(err)
	for _, family := range families {
		if family.GetName() == "sledctl_fleet_brake" {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	s.t.Fatal("there is no such figure")
	return 0
}

// No volume is taken over while the fault is the network's, as no sled is powered off then; nor by
// one who reads no leases.
func TestAVolumeIsNotTakenOverWhileMostSledsAreSilent(t *testing.T) {
	s := keeps(t)
	holds := func(says string) {
		t.Helper()
		vm := s.look()
		fenced := meta.FindStatusCondition(vm.Status.Conditions, api.ConditionFenced)
		if vm.Status.Generation != 1 || vm.Status.Ended != nil || fenced == nil || !strings.Contains(fenced.Message, says) {
			t.Errorf("%+v, want it to hold with %q", vm.Status, says)
		}
		var sled1 corev1.Node
		s.ok(s.store.Get(t.Context(), client.ObjectKey{Name: "sled1"}, &sled1))
		if len(sled1.Spec.Taints) != 0 || s.pod(1).DeletionTimestamp != nil {
			t.Errorf("taints %+v, pod %+v", sled1.Spec.Taints, s.pod(1).ObjectMeta)
		}
	}
	s.pass(5*time.Second, 2*time.Minute, "sled3")
	holds("2 of 3 sleds are silent")
	if s.braked() != 1 {
		t.Error("the figure does not say so")
	}
	var sled2 corev1.Node
	s.ok(s.store.Get(t.Context(), client.ObjectKey{Name: "sled2"}, &sled2))
	sled2.Spec.Unschedulable = true // it is being repaired
	s.ok(s.store.Update(t.Context(), &sled2))
	s.pass(125*time.Second, 125*time.Second, "sled3")
	if s.braked() != 0 {
		t.Error("one of two is silent, and the figure says that most are")
	}
	s.c.view.heard = time.Now().Add(-time.Minute)
	holds("cannot read the leases")
	s.pass(130*time.Second, 130*time.Second, "sled3")
	if vm := s.look(); vm.Status.Ended == nil || vm.Status.Ended.Proof != "storage" || vm.Status.Generation != 2 {
		t.Fatalf("%+v", vm.Status)
	}
}

func TestALostSledHasNoCopy(t *testing.T) {
	s := takenOver(t)
	s.look()
	s.bind(2, "sled2")
	s.runs(2)
	s.state("sled1")
	if s.look(); s.pod(1) != nil {
		t.Errorf("%+v", s.pod(1))
	}
}

// What a run may still write to, the next one has to take over.
func TestAVolumeCannotBeChangedUntilTheSledAnswers(t *testing.T) {
	s := takenOver(t)
	s.has(inCrucible(anotherVolume)) // it is raised and claimed by then
	s.bind(2, "sled2")
	s.runs(2)
	s.look()
	s.ends(2)
	vm := s.look()
	if placed := meta.FindStatusCondition(vm.Status.Conditions, api.ConditionPlaced); vm.Status.Generation != 2 || placed == nil || !strings.Contains(placed.Message, "the VM has to keep that volume") {
		t.Fatalf("%+v", vm.Status)
	}
	s.ends(1)
	if vm := s.look(); vm.Status.Ended.Generation != 2 || s.pod(1) != nil {
		t.Fatalf("%+v", vm.Status)
	}
}

// A VM that moves takes its volumes along: the pod that comes has them, and names their Secrets. One
// that is given another volume before the target's sled reports its end waits for that.
func TestAVMWithAVolumeInACrucibleMoves(t *testing.T) {
	s := keeps(t)
	m := &Migrations{Controller: s.c}
	s.look()
	s.ask("sled2")
	s.asked(m)
	s.look()
	pod := s.pod(2)
	if _, volumes := disksOf(pod); len(volumes) != 1 || volumes[0] != aVolume || len(pod.Spec.Volumes) != 1 {
		t.Fatalf("%v, %+v", volumes, pod.Spec.Volumes)
	}
	s.bind(2, "sled2")
	s.reports(2, begins)
	s.look()
	s.ends(1) // it has left, and its target falls silent
	s.look()
	s.pass(5*time.Second, 50*time.Second, "sled1", "sled3")
	vm := s.look()
	if vm.Status.Moving != nil || vm.Status.Generation != 3 || s.pod(2) == nil || s.pod(2).DeletionTimestamp == nil {
		t.Fatalf("%+v", vm.Status)
	}
	s.bind(3, "sled3")
	s.runs(3)
	s.has(inCrucible(anotherVolume))
	s.look()
	s.ends(3)
	vm = s.look()
	if placed := meta.FindStatusCondition(vm.Status.Conditions, api.ConditionPlaced); vm.Status.Generation != 3 || placed == nil || !strings.Contains(placed.Message, "generation 2 may write") {
		t.Fatalf("%+v", vm.Status)
	}
}

// A run with other volumes than the VM is to have, or with one on its sled, waits for its sled.
func TestOnlyARunThatIsTakenOverWholeIsMoved(t *testing.T) {
	size := resource.MustParse("1Gi")
	for name, disks := range map[string][]api.Disk{
		"another volume":      {inCrucible(anotherVolume)},
		"none":                {},
		"one on its sled too": {inCrucible(aVolume), {Size: &size}},
	} {
		s := keeps(t)
		s.has(disks...)
		s.pass(5*time.Second, 5*time.Minute, "sled2", "sled3")
		vm := s.look()
		is := meta.FindStatusCondition(vm.Status.Conditions, api.ConditionRestart)
		if vm.Status.Generation != 1 || vm.Status.Phase != api.PhaseUnknown || is == nil || is.Reason != "Hold" || !strings.Contains(is.Message, "counts as hold") {
			t.Errorf("%s: %+v", name, vm.Status)
		}
	}
}

// The pod names the Secret, so that its sled may read it, and has no key.
func TestAPodHasTheVolumesOfItsVM(t *testing.T) {
	s := takenOver(t)
	s.look()
	pod := s.pod(2)
	if v := pod.Spec.Volumes; len(v) != 1 || v[0].Secret == nil || v[0].Secret.SecretName != "keys" {
		t.Errorf("%+v", v)
	}
	var d struct {
		Disks, Crucible []map[string]any
	}
	s.ok(json.Unmarshal([]byte(pod.Annotations[api.AnnotationSpec]), &d))
	if len(d.Disks) != 0 || len(d.Crucible) != 1 || d.Crucible[0]["id"] != aVolume || d.Crucible[0]["secret"] != "keys" || d.Crucible[0]["key"] != nil {
		t.Errorf("%+v", d)
	}
}
