package controller

import (
	"maps"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/sledctl/sledctl/fleet/api"
	"github.com/sledctl/sledctl/fleet/fence"
)

// moving is a story with a VM that runs as generation 1 on sled1.
func moving(t *testing.T, restart fence.Policy) (*story, *Migrations) {
	t.Helper()
	s := begin(t, "sled1", "sled2", "sled3")
	s.create(api.Restart(restart))
	s.look()
	s.bind(1, "sled1")
	s.runs(1)
	s.look()
	return s, &Migrations{Controller: s.c}
}

// reports has the sled of a pod report more.
func (s *story) reports(generation int64, more ...corev1.PodCondition) {
	s.t.Helper()
	pod := s.pod(generation)
	pod.Status.Conditions = append(pod.Status.Conditions, more...)
	s.ok(s.store.Status().Update(s.t.Context(), pod))
}

func (s *story) ask(target string) {
	s.t.Helper()
	s.ok(s.store.Create(s.t.Context(), &api.VirtualMachineMigration{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "away", UID: "m1"}, Spec: api.VirtualMachineMigrationSpec{VM: "web", Target: target},
	}))
}

// asked reconciles the migration, and gives it as it is then.
func (s *story) asked(m *Migrations) *api.VirtualMachineMigration {
	s.t.Helper()
	key := types.NamespacedName{Namespace: "default", Name: "away"}
	if _, err := m.Reconcile(s.t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
		s.t.Fatal(err)
	}
	var asked api.VirtualMachineMigration
	s.ok(s.store.Get(s.t.Context(), key, &asked))
	return &asked
}

var (
	came   = corev1.PodCondition{Type: api.ConditionArrived, Status: corev1.ConditionTrue}
	begins = corev1.PodCondition{Type: api.ConditionStarted, Status: corev1.ConditionTrue}
)

// counts wants that Prometheus reads so many moves, by their results.
func (s *story) counts(want map[string]uint64) {
	s.t.Helper()
	at := prometheus.NewRegistry()
	s.ok(s.c.figures.register(at))
	families, err := at.Gather()
	s.ok(err)
	counted, took := map[string]uint64{}, uint64(0)
	for _, family := range families {
		if family.GetName() == "sledctl_fleet_brake" {
			continue
		}
		for _, m := range family.GetMetric() {
			if m.GetHistogram() != nil {
				took += m.GetHistogram().GetSampleCount()
				continue
			}
			counted[m.GetLabel()[0].GetValue()] = uint64(m.GetCounter().GetValue())
		}
	}
	if !maps.Equal(counted, want) || took != want["succeeded"]+want["failed"] {
		s.t.Errorf("%v moves are counted, and of %d how long they took", counted, took)
	}
}

func TestAVMMoves(t *testing.T) {
	s, m := moving(t, fence.Hold)
	s.ask("")
	asked := s.asked(m)
	if vm := s.look(); asked.Status.Phase != api.MigrationRunning || vm.Status.Generation != 1 || vm.Status.Moving == nil || vm.Status.Phase != api.PhaseMigrating {
		t.Fatalf("%+v, %+v", asked.Status, vm.Status)
	}
	pod := s.pod(2)
	if pod == nil || pod.Annotations[api.AnnotationFrom] != "10.1.0.3:12400" {
		t.Fatalf("%+v", pod)
	}
	if r := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions; len(r) != 1 || r[0].Operator != corev1.NodeSelectorOpNotIn || r[0].Values[0] != "sled1" {
		t.Errorf("%+v", r)
	}
	s.bind(2, "sled2")
	s.reports(2, begins)
	if vm := s.look(); vm.Status.Generation != 1 || vm.Status.Moving.Target != "sled2" || s.pod(1).DeletionTimestamp != nil {
		t.Fatalf("it has not come yet: %+v", vm.Status)
	}
	s.lead() // another controller goes on
	m = &Migrations{Controller: s.c}
	s.runs(2)
	s.reports(2, came)
	vm := s.look()
	id, _ := api.PropolisID(uid, 2)
	if vm.Status.Generation != 2 || vm.Status.Ended.Generation != 1 || vm.Status.Moving != nil || vm.Status.Sled != "sled2" || vm.Status.PropolisID != id || vm.Status.Phase != api.PhaseRunning {
		t.Fatalf("%+v", vm.Status)
	}
	if asked := s.asked(m); asked.Status.Phase != api.MigrationSucceeded || asked.Status.Target != "sled2" || asked.Status.Source != "sled1" || asked.Status.Finished == nil {
		t.Errorf("%+v", asked.Status)
	}
	s.counts(map[string]uint64{"succeeded": 1, "failed": 0})
	if s.pod(1).DeletionTimestamp == nil {
		t.Fatal("its source is not told")
	}
	s.ends(1)
	if vm := s.look(); s.pod(1) != nil || s.pod(3) != nil || vm.Status.Generation != 2 {
		t.Errorf("%+v, pod %v", vm.Status, s.pod(1))
	}
}

func TestAMoveThatFailsLeavesTheVM(t *testing.T) {
	s, m := moving(t, fence.Hold)
	s.ask("sled3")
	s.asked(m)
	s.bind(2, "sled3")
	s.reports(2, begins)
	pod := s.pod(2)
	pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, api.ReasonStayed, "the guest could not be sent"
	s.ok(s.store.Status().Update(t.Context(), pod))
	vm := s.look()
	if vm.Status.Generation != 1 || vm.Status.Raised != 2 || vm.Status.Moving != nil || vm.Status.Phase != api.PhaseRunning || s.pod(2) != nil || s.pod(1).DeletionTimestamp != nil {
		t.Fatalf("%+v", vm.Status)
	}
	if asked := s.asked(m); asked.Status.Phase != api.MigrationFailed || asked.Status.Reason != "sled sled3: the guest could not be sent" {
		t.Errorf("%+v", asked.Status)
	}
	s.counts(map[string]uint64{"succeeded": 0, "failed": 1})
	// The generation is burnt: the sled has had it.
	s.ends(1)
	s.look()
	vm = s.look()
	vm.Status.Ended.Time = metav1.NewTime(time.Now().Add(-time.Minute))
	s.ok(s.store.Status().Update(t.Context(), vm))
	if vm := s.look(); vm.Status.Generation != 3 || s.pod(3) == nil {
		t.Errorf("%+v", vm.Status)
	}
}

// A migration begins once, also where what is read of it is old.
func TestAMigrationBeginsOnce(t *testing.T) {
	s, m := moving(t, fence.Hold)
	s.ask("")
	var stale api.VirtualMachineMigration
	s.ok(s.store.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "away"}, &stale))
	s.asked(m)
	s.bind(2, "sled2")
	s.runs(2)
	s.reports(2, came)
	vm := s.look()
	s.ok(m.begin(t.Context(), &stale, vm, "sled2", "10.1.0.3:12400"))
	if vm := s.look(); vm.Status.Raised != 2 || vm.Status.Moving != nil {
		t.Errorf("%+v", vm.Status)
	}
}

// A migration that no sled takes is given up; one that a sled has taken is not, whatever is asked.
func TestAMoveIsCancelledOnlyBeforeItHasASled(t *testing.T) {
	s, m := moving(t, fence.Hold)
	s.ask("")
	asked := s.asked(m)
	s.ok(s.store.Delete(t.Context(), asked))
	if vm := s.look(); vm.Status.Moving != nil || vm.Status.Raised != 2 || s.pod(2) != nil {
		t.Fatalf("%+v, %v", vm.Status, s.pod(2))
	}
	s.ask("")
	asked = s.asked(m)
	s.bind(3, "sled2")
	s.ok(s.store.Delete(t.Context(), asked))
	if vm := s.look(); vm.Status.Moving == nil || s.pod(3).DeletionTimestamp != nil {
		t.Fatalf("%+v", vm.Status)
	}
}

// A store that was restored learns of a move from its target, and takes the VM for ended on
// neither sled.
func TestAMoveThatTheStoreHasForgottenIsTakenOver(t *testing.T) {
	s, _ := moving(t, fence.Hold)
	var sled2 corev1.Node
	s.ok(s.store.Get(t.Context(), client.ObjectKey{Name: "sled2"}, &sled2))
	sled2.Annotations[api.AnnotationRuns] = string(uid) + ">2"
	s.ok(s.store.Update(t.Context(), &sled2))
	s.beat(time.Second)
	vm := s.look()
	if vm.Status.Generation != 1 || vm.Status.Moving == nil || vm.Status.Moving.Generation != 2 || s.pod(2) == nil || s.pod(2).Spec.NodeName != "sled2" || s.pod(1).DeletionTimestamp != nil {
		t.Fatalf("%+v", vm.Status)
	}
	s.runs(2)
	s.reports(2, came)
	if vm := s.look(); vm.Status.Generation != 2 || vm.Status.Moving != nil {
		t.Errorf("%+v", vm.Status)
	}
}

func TestASledIsMaintained(t *testing.T) {
	s, m := moving(t, fence.Hold)
	s.ok(s.store.Create(t.Context(), &api.SledMaintenance{ObjectMeta: metav1.ObjectMeta{Name: "disk", UID: "x"}, Spec: api.SledMaintenanceSpec{Sled: "sled1"}}))
	all := &Maintenances{Controller: s.c}
	look := func() *api.SledMaintenance {
		t.Helper()
		for range 3 {
			_, err := all.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "disk"}})
			s.ok(err)
		}
		var now api.SledMaintenance
		if err := s.store.Get(t.Context(), client.ObjectKey{Name: "disk"}, &now); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		} else if err != nil {
			return nil
		}
		return &now
	}
	node := func() *corev1.Node {
		t.Helper()
		var n corev1.Node
		s.ok(s.store.Get(t.Context(), client.ObjectKey{Name: "sled1"}, &n))
		return &n
	}
	if now := look(); now.Status.Phase != api.MaintenanceDraining || now.Status.Remaining != 1 || !node().Spec.Unschedulable {
		t.Fatalf("%+v", now.Status)
	}
	key := types.NamespacedName{Namespace: "default", Name: "web-2"}
	_, err := m.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
	s.ok(err)
	s.bind(2, "sled2")
	s.runs(2)
	s.reports(2, came)
	s.look()
	if now := look(); now.Status.Phase != api.MaintenanceDraining {
		t.Fatalf("something of the VM is left: %+v", now.Status)
	}
	s.ends(1)
	s.look()
	if now := look(); now.Status.Phase != api.MaintenanceReady || now.Status.Remaining != 0 {
		t.Fatalf("%+v", now.Status)
	}
	s.ok(s.store.Delete(t.Context(), look()))
	if now := look(); now != nil || node().Spec.Unschedulable {
		t.Errorf("%+v, unschedulable %v", now, node().Spec.Unschedulable)
	}
}

func TestAVMThatMayNotLeaveBlocksAMaintenance(t *testing.T) {
	s, _ := moving(t, fence.Hold)
	vm := s.look()
	vm.Spec.Evict = api.EvictBlock
	s.ok(s.store.Update(t.Context(), vm))
	s.ok(s.store.Create(t.Context(), &api.SledMaintenance{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, Spec: api.SledMaintenanceSpec{Sled: "sled1"}}))
	all := &Maintenances{Controller: s.c}
	for range 3 {
		_, err := all.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "disk"}})
		s.ok(err)
	}
	var now api.SledMaintenance
	s.ok(s.store.Get(t.Context(), client.ObjectKey{Name: "disk"}, &now))
	if now.Status.Phase != api.MaintenanceBlocked || now.Status.Reason != "VM web has evict: block" || s.pod(1).DeletionTimestamp != nil {
		t.Errorf("%+v", now.Status)
	}
}

// A target that fell silent before the VM left its source may have got it since: its silence
// counts from when the source has reported that.
func TestATargetThatIsSilentIsWaitedForFromWhenTheVMLeft(t *testing.T) {
	s, m := moving(t, fence.Lease)
	s.ask("sled2")
	s.asked(m)
	s.bind(2, "sled2")
	s.reports(2, begins)
	long := terms().Wait() + maxGap + 5*time.Second
	silent := func(from, to time.Duration) {
		for now := from; now < to; now += 5 * time.Second {
			s.renew("sled1")
			s.renew("sled3")
			s.beat(now)
			s.look()
		}
	}
	silent(0, 2*long)
	if vm := s.look(); vm.Status.Moving == nil || vm.Status.Phase != api.PhaseUnknown {
		t.Fatalf("its source has it: %+v", vm.Status)
	}
	s.ends(1)
	if vm := s.look(); vm.Status.Moving == nil {
		t.Fatalf("its target may have it: %+v", vm.Status)
	}
	silent(2*long, 3*long)
	if vm := s.look(); vm.Status.Moving != nil || vm.Status.Ended == nil || vm.Status.Ended.Generation != 1 {
		t.Fatalf("both have ended: %+v", vm.Status)
	}
	var sled2 corev1.Node
	s.ok(s.store.Get(t.Context(), client.ObjectKey{Name: "sled2"}, &sled2))
	if len(sled2.Spec.Taints) != 1 || sled2.Spec.Taints[0].Key != api.TaintFenced {
		t.Errorf("taints %+v", sled2.Spec.Taints)
	}
}
