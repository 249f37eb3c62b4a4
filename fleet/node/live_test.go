package node

import (
	"context"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/sledctl/sledctl/fleet/api"
	"github.com/sledctl/sledctl/fleet/fence"
)

// asked are the requests of the node from now on, until they are read.
func (s *story) asked() (read func() []string) {
	s.t.Helper()
	var all []string
	s.node.Client = interceptor.NewClient(s.store.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			all = append(all, "get")
			return c.Get(ctx, key, o, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			all = append(all, "create")
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			all = append(all, "update")
			return c.Update(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			all = append(all, "patch")
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			all = append(all, "patch "+sub)
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	return func() []string { was := all; all = nil; return was }
}

func (s *story) wants(read func() []string, what string, requests ...string) {
	s.t.Helper()
	if got := read(); !slices.Equal(got, requests) {
		s.t.Errorf("%s takes %q, not %q", what, got, requests)
	}
}

// A thousand sleds renew their leases, and ask whether anything is new: each request counts.
func TestWhatASledAsksFor(t *testing.T) {
	s := begin(t)
	asked := s.asked()
	renew := func() { t.Helper(); s.ok(s.node.Renew(t.Context(), 15*time.Second)) }
	renew()
	s.wants(asked, "the first renewal", "get", "create")
	renew()
	s.wants(asked, "a renewal", "update")
	var lease coordinationv1.Lease
	s.ok(s.store.Get(t.Context(), client.ObjectKey{Namespace: leaseNamespace, Name: "sled1"}, &lease))
	s.ok(s.store.Update(t.Context(), &lease))
	renew()
	s.wants(asked, "a renewal after another has written the lease", "update", "get", "update")

	s.ok(s.node.Register(t.Context()))
	s.wants(asked, "to be made known", "get", "create", "patch status")
	s.ok(s.node.Register(t.Context()))
	s.wants(asked, "that nothing has changed")
	s.sled.runs[vm] = Run{VM: vm, Generation: 1, State: "running"}
	s.ok(s.node.Register(t.Context()))
	s.wants(asked, "that a VM runs", "patch")
	s.beats(fence.Chain{{Term: "a", N: 3}}, "")
	if s.answer() {
		t.Error("it is settled before enough sleds have answered")
	}
	s.wants(asked, "an answer", "get", "get", "patch")
	s.beats(fence.Chain{{Term: "a", N: 4}}, "a")
	if !s.answer() {
		t.Error("it is not settled once enough sleds have answered")
	}
	s.wants(asked, "a beat", "get")
}

// What a controller of Kubernetes has written over a Node is written again, and so is what is old.
func TestTheStatusIsWrittenThatIsNotTrue(t *testing.T) {
	s := begin(t)
	s.ok(s.node.Register(t.Context()))
	var node corev1.Node
	s.ok(s.store.Get(t.Context(), client.ObjectKey{Name: "sled1"}, &node))
	node.Status.Conditions[0].Status, node.Status.Conditions[0].Reason = corev1.ConditionUnknown, "NodeStatusUnknown"
	s.ok(s.store.Status().Update(t.Context(), &node))
	asked := s.asked()
	s.ok(s.node.Register(t.Context()))
	s.wants(asked, "what was not noticed")
	s.node.doubt.Store(true)
	s.ok(s.node.Register(t.Context()))
	s.wants(asked, "to be Ready again", "get", "patch status")
	s.ok(s.store.Get(t.Context(), client.ObjectKey{Name: "sled1"}, &node))
	if c := node.Status.Conditions[0]; c.Status != corev1.ConditionTrue {
		t.Errorf("%+v", c)
	}
	now := time.Now()
	s.node.Now = func() time.Time { return now.Add(statusEvery + time.Second) }
	s.ok(s.node.Register(t.Context()))
	s.wants(asked, "that the sled still answers", "get", "patch status")
}

// A Node is read when another may have written it: after a lease that was not renewed, and once a minute.
func TestWhenANodeIsRead(t *testing.T) {
	s := begin(t)
	const holds = 15 * time.Second
	asked := s.asked()
	registers := func(what string, requests ...string) {
		t.Helper()
		s.ok(s.node.Register(t.Context()))
		s.wants(asked, what, requests...)
	}
	renew := func() { t.Helper(); s.ok(s.node.Renew(t.Context(), holds)); asked() }
	renew()
	registers("to be made known", "get", "create", "patch status")
	renew()
	registers("after a renewal")
	s.node.renewed = time.Now().Add(-holds - time.Second)
	renew()
	registers("after a renewal that was late", "get")
	registers("after it was read")
	var lease coordinationv1.Lease
	s.ok(s.store.Get(t.Context(), client.ObjectKey{Namespace: leaseNamespace, Name: "sled1"}, &lease))
	s.ok(s.store.Update(t.Context(), &lease))
	renew()
	registers("after another has written the lease", "get")
	ended, end := context.WithCancel(t.Context())
	end()
	s.node.Client = interceptor.NewClient(s.store.(client.WithWatch), interceptor.Funcs{Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error {
		return ended.Err()
	}})
	if s.node.Renew(t.Context(), holds) == nil {
		t.Fatal("a renewal that fails does not")
	}
	asked = s.asked()
	registers("after a renewal that failed", "get")
	s.node.read = time.Now().Add(-readEvery)
	registers("after a minute", "get")
	s.ok(s.store.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "sled1"}}))
	registers("what was not noticed")
	s.node.read = time.Now().Add(-readEvery)
	registers("to be made known again", "get", "create", "patch status")

	s.ok(s.store.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "sled1"}}))
	s.sled.runs[vm] = Run{VM: vm, Generation: 1, State: "running"}
	if s.node.Register(t.Context()) == nil {
		t.Error("what runs is written to a Node that is gone")
	}
	s.wants(asked, "what runs", "patch")
	registers("to be made known once more", "get", "create", "patch status")
	var node corev1.Node
	s.ok(s.store.Get(t.Context(), client.ObjectKey{Name: "sled1"}, &node))
	if got := node.Annotations[api.AnnotationRuns]; got != vm+"=1" {
		t.Errorf("it runs %q", got)
	}
	node.Status.Conditions[0].Status = corev1.ConditionUnknown
	s.ok(s.store.Status().Update(t.Context(), &node))
	delete(s.sled.runs, vm)
	registers("what runs", "patch")
	registers("what the answer to that has told", "get", "patch status")
}
