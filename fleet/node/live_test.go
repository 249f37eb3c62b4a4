package node

import (
	"context"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

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
	s.wants(asked, "that nothing has changed", "get")
	s.sled.runs[vm] = Run{VM: vm, Generation: 1, State: "running"}
	s.ok(s.node.Register(t.Context()))
	s.wants(asked, "that a VM runs", "get", "patch")
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
