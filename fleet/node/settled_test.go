package node

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/sledctl/sledctl/fleet/api"
	"github.com/sledctl/sledctl/fleet/fence"
)

// A VM that runs as its pod says costs no request: one look at the sled finds what has changed.
func TestAVMThatRunsIsNotAskedAbout(t *testing.T) {
	s := begin(t)
	s.node.wake = make(chan event.GenericEvent, 1)
	s.beats(fence.Chain{{Term: "a", N: 3}}, "a")
	s.claim(1)
	key := client.ObjectKey{Namespace: "default", Name: api.PodName("web", 1)}
	again := func() time.Duration {
		t.Helper()
		r, err := s.node.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
		s.ok(err)
		return r.RequeueAfter
	}
	s.look(1) // starts it
	if wait := again(); wait > pollEvery {
		t.Errorf("what was reported just now is read again after %v", wait)
	}
	if wait := again(); wait < claimEvery/2 || wait > claimEvery {
		t.Errorf("a VM that runs as its pod says is asked about again after %v", wait)
	}
	asked := s.asked()
	s.ok(s.node.look(t.Context()))
	if s.wants(asked, "that nothing has changed"); len(s.node.wake) != 0 {
		t.Errorf("pod %s is looked at, and nothing has changed", (<-s.node.wake).Object.GetName())
	}
	s.ok(s.sled.Stop(t.Context(), s.sled.runs[vm]))
	s.ok(s.node.look(t.Context()))
	if len(s.node.wake) != 1 {
		t.Fatal("a VM has ended, and its pod is not looked at")
	}
	if woken := (<-s.node.wake).Object; woken.GetName() != key.Name || woken.GetNamespace() != key.Namespace {
		t.Errorf("pod %s/%s is looked at", woken.GetNamespace(), woken.GetName())
	}
	again() // removes it, and reports the end
	delete(s.sled.runs, vm)
	s.ok(s.node.look(t.Context()))
	if len(s.node.wake) != 0 {
		t.Error("a pod is looked at that has ended")
	}
}
