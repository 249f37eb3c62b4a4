package controller

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/sledctl/sledctl/fleet/api"
	"github.com/sledctl/sledctl/fleet/fence"
)

// state is a person who states that a sled is lost.
func (s *story) state(sled string) {
	s.t.Helper()
	s.ok(s.store.Create(s.t.Context(), &api.SledMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: "gone"}, Spec: api.SledMaintenanceSpec{Sled: sled, Lost: &api.Lost{By: "Ada", How: "it burnt"}},
	}))
}

// stated reconciles the statement, and gives it as it is then.
func (s *story) stated() *api.SledMaintenance {
	s.t.Helper()
	key := types.NamespacedName{Name: "gone"}
	for range 3 {
		_, err := (&Maintenances{Controller: s.c}).Reconcile(s.t.Context(), reconcile.Request{NamespacedName: key})
		s.ok(err)
	}
	var m api.SledMaintenance
	s.ok(s.store.Get(s.t.Context(), key, &m))
	return &m
}

// pass lets time pass in which these sleds renew their leases.
func (s *story) pass(from, to time.Duration, renew ...string) {
	s.t.Helper()
	for now := from; now <= to; now += 5 * time.Second {
		for _, sled := range renew {
			s.renew(sled)
		}
		s.beat(now)
	}
}

func TestAVMOfALostSledStartsElsewhere(t *testing.T) {
	s, _ := moving(t, fence.Hold)
	s.state("sled2")
	s.pass(5*time.Second, time.Minute, "sled2", "sled3")
	if vm := s.look(); vm.Status.Ended != nil || vm.Status.Phase != api.PhaseUnknown {
		t.Fatalf("another sled is lost: %+v", vm.Status)
	}
	s.ok(s.store.Delete(t.Context(), &api.SledMaintenance{ObjectMeta: metav1.ObjectMeta{Name: "gone"}}))
	s.state("sled1")
	vm := s.look()
	if e := vm.Status.Ended; e == nil || e.Proof != "stated" || e.By != "Ada" || e.Generation != 1 {
		t.Fatalf("%+v", vm.Status)
	}
	if m := s.stated(); m.Status.Phase != api.MaintenanceReady || m.Status.Stated == nil {
		t.Errorf("%+v", m.Status)
	}
}

// A sled that answers is not lost, whatever was stated.
func TestAStatementAboutASledThatAnswersProvesNothing(t *testing.T) {
	s, _ := moving(t, fence.Hold)
	s.state("sled1")
	s.pass(5*time.Second, time.Minute, "sled1", "sled2", "sled3")
	if vm := s.look(); vm.Status.Ended != nil || vm.Status.Phase != api.PhaseRunning || s.pod(1).DeletionTimestamp != nil {
		t.Errorf("%+v", vm.Status)
	}
	if m := s.stated(); m.Status.Phase != api.MaintenanceBlocked || !strings.Contains(m.Status.Reason, "answers") || m.Status.Remaining != 1 {
		t.Errorf("%+v", m.Status)
	}
	if s.pod(1).DeletionTimestamp != nil {
		t.Error("a statement has the VM stopped")
	}
	var vmms api.VirtualMachineMigrationList
	if s.ok(s.store.List(t.Context(), &vmms)); len(vmms.Items) > 0 {
		t.Error("a statement has the VM moved")
	}
}

// A target that is lost in the middle of a move has it no longer, and gets it no longer: what the
// source reports counts again.
func TestAMoveToALostTargetIsGivenUp(t *testing.T) {
	for _, c := range []struct {
		name  string
		ended bool
	}{{"the VM is still on its source", false}, {"the VM had left", true}} {
		s, m := moving(t, fence.Hold)
		s.ask("sled2")
		s.asked(m)
		s.look()
		s.bind(2, "sled2")
		s.reports(2, begins)
		if c.ended {
			s.ends(1)
		}
		s.pass(5*time.Second, time.Minute, "sled1", "sled3")
		if vm := s.look(); vm.Status.Moving == nil || vm.Status.Phase != api.PhaseUnknown {
			t.Fatalf("%s: %+v", c.name, vm.Status)
		}
		s.state("sled2")
		vm := s.look()
		if vm.Status.Moving != nil || (vm.Status.Ended != nil) != c.ended {
			t.Errorf("%s: %+v", c.name, vm.Status)
		}
		var asked api.VirtualMachineMigration
		s.ok(s.store.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "away"}, &asked))
		if asked.Status.Phase != api.MigrationFailed || !strings.HasSuffix(asked.Status.Reason, "by Ada") {
			t.Errorf("%s: %+v", c.name, asked.Status)
		}
		if !c.ended && (vm.Status.Phase != api.PhaseRunning || vm.Status.Sled != "sled1" || s.pod(1).DeletionTimestamp != nil) {
			t.Errorf("%s: %+v", c.name, vm.Status)
		}
	}
}
