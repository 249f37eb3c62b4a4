package e2e

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sledctl/sledctl/fleet/api"
)

// aSledTouchesNothingOfOthers: a certificate that was taken from a sled leads to that sled and
// to no other.
func aSledTouchesNothingOfOthers(t *testing.T, f *Fleet) {
	f.Apply(web)
	f.Running("web")
	own := f.On("web")[0]
	thief := "sled1"
	if own == thief {
		thief = "sled2"
	}
	config, err := f.Config("system:node:"+thief, "system:nodes")
	f.ok(err)
	c, err := client.New(config, client.Options{Scheme: f.scheme})
	f.ok(err)
	ctx := t.Context()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-1"}}
	other := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: own}}
	self := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: thief}}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-node-lease", Name: own}}
	vm := &api.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	beats := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "sledctl-system", Name: "sledctl-fleet"}}
	merge := func(text string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(text)) }
	key := client.ObjectKeyFromObject
	on := func(sled string) client.ListOption { return client.MatchingFields{"spec.nodeName": sled} }

	for what, try := range map[string]func() error{
		"label another sled's node":     func() error { return c.Patch(ctx, other.DeepCopy(), merge(`{"metadata":{"labels":{"a":"b"}}}`)) },
		"annotate another sled's node":  func() error { return c.Patch(ctx, other.DeepCopy(), merge(`{"metadata":{"annotations":{"a":"b"}}}`)) },
		"write another node's status":   func() error { return c.Status().Patch(ctx, other.DeepCopy(), merge(`{"status":{"phase":"Running"}}`)) },
		"delete another sled's node":    func() error { return c.Delete(ctx, other.DeepCopy()) },
		"taint its own node":            func() error { return c.Patch(ctx, self.DeepCopy(), merge(`{"spec":{"taints":[]}}`)) },
		"read another sled's lease":     func() error { return c.Get(ctx, key(lease), lease.DeepCopy()) },
		"renew another sled's lease":    func() error { return c.Patch(ctx, lease.DeepCopy(), merge(`{"spec":{"leaseDurationSeconds":9}}`)) },
		"delete another sled's lease":   func() error { return c.Delete(ctx, lease.DeepCopy()) },
		"read a run on another sled":    func() error { return c.Get(ctx, key(pod), pod.DeepCopy()) },
		"report a run on another sled":  func() error { return c.Status().Patch(ctx, pod.DeepCopy(), merge(`{"status":{"phase":"Succeeded"}}`)) },
		"release a run on another sled": func() error { return c.Patch(ctx, pod.DeepCopy(), merge(`{"metadata":{"finalizers":null}}`)) },
		"delete a run on another sled":  func() error { return c.Delete(ctx, pod.DeepCopy()) },
		"evict a run on another sled":   func() error { return c.SubResource("eviction").Create(ctx, pod.DeepCopy(), &policyv1.Eviction{}) },
		"list all runs":                 func() error { return c.List(ctx, &corev1.PodList{}) },
		"list the runs of another sled": func() error { return c.List(ctx, &corev1.PodList{}, on(own)) },
		"read a VM":                     func() error { return c.Get(ctx, key(vm), vm.DeepCopy()) },
		"list VMs":                      func() error { return c.List(ctx, &api.VirtualMachineList{}) },
		"change a VM":                   func() error { return c.Patch(ctx, vm.DeepCopy(), merge(`{"spec":{"cpus":1}}`)) },
		"write the status of a VM":      func() error { return c.Status().Patch(ctx, vm.DeepCopy(), merge(`{"status":{"phase":"Stopped"}}`)) },
		"delete a VM":                   func() error { return c.Delete(ctx, vm.DeepCopy()) },
		"write beats":                   func() error { return c.Patch(ctx, beats.DeepCopy(), merge(`{"data":{"counted":"x"}}`)) },
		"read the account of a BMC": func() error {
			return c.Get(ctx, client.ObjectKey{Namespace: api.BMCNamespace, Name: "sled1"}, &corev1.Secret{})
		},
		"read how a BMC is reached":          func() error { return c.List(ctx, &api.SledBMCList{}) },
		"read the secrets of the controller": func() error { return c.List(ctx, &corev1.SecretList{}, client.InNamespace("sledctl-system")) },
	} {
		if err := try(); !apierrors.IsForbidden(err) {
			t.Errorf("%s may %s: %v", thief, what, err)
		}
	}
	for what, try := range map[string]func() error{
		"list its own runs": func() error { return c.List(ctx, &corev1.PodList{}, on(thief)) },
		"read its own node": func() error { return c.Get(ctx, key(self), self.DeepCopy()) },
		"read beats":        func() error { return c.Get(ctx, key(beats), beats.DeepCopy()) },
	} {
		if err := try(); err != nil {
			t.Errorf("%s may not %s: %v", thief, what, err)
		}
	}
	if on := f.On("web"); len(on) != 1 || on[0] != own {
		t.Errorf("web runs on %v", on)
	}
	f.Must("delete", "vm", "web", "--timeout=60s")
}
