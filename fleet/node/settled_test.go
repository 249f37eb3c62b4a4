package node

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
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
	if wait := again(); wait < claimEvery/2 || wait > claimEvery {
		t.Errorf("a VM that runs as its pod says is asked about again after %v", wait)
	}
	asked := s.asked()
	s.node.cached = s.store
	if wait := again(); wait < claimEvery/2-time.Minute || wait > claimEvery {
		t.Errorf("a pod that the node itself has written is looked at again after %v", wait)
	}
	s.wants(asked, "that its own report has come by the watch")
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

// A pod that is settled is read when it has changed, when it is due, and when the store was restored.
func TestASettledPodIsReadThatMayHaveChanged(t *testing.T) {
	s := begin(t)
	s.beats(fence.Chain{{Term: "a", N: 3}}, "a")
	s.claim(1)
	s.node.cached = s.store
	key := client.ObjectKey{Namespace: "default", Name: api.PodName("web", 1)}
	asked := s.asked()
	looks := func(what string, requests ...string) {
		t.Helper()
		_, err := s.node.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
		s.ok(err)
		s.wants(asked, what, requests...)
	}
	looks("a start", "get", "get")
	looks("a report", "get", "patch status")
	looks("that nothing has changed")
	var pod corev1.Pod
	s.ok(s.store.Get(t.Context(), key, &pod))
	pod.Labels = map[string]string{"team": "blue"}
	s.ok(s.store.Update(t.Context(), &pod))
	looks("a pod that has changed", "get")
	looks("that nothing has changed")
	due := s.node.settled.by[key]
	due.due = time.Now()
	s.node.settled.by[key] = due
	looks("a pod that is due", "get")
	s.node.settled.clear()
	looks("a restored store", "get")
}

// A pod that is deleted while its node reports is not settled.
func TestAPodThatIsDeletedMeanwhileIsLookedAt(t *testing.T) {
	s := begin(t)
	s.beats(fence.Chain{{Term: "a", N: 3}}, "a")
	s.claim(1)
	s.look(1) // starts it
	s.node.cached = s.store
	s.node.Client = interceptor.NewClient(s.store.(client.WithWatch), interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := c.Delete(ctx, o.DeepCopyObject().(client.Object)); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	s.look(1) // reports it
	s.node.Client = s.store
	s.look(1) // stops it
	if s.sled.runs[vm].State != "destroyed" {
		t.Errorf("the VM is %s", s.sled.runs[vm].State)
	}
}
