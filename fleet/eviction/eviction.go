// Package eviction says whether a VM moves, is stopped or stays when its sled is to be emptied. It is also the webhook by which `kubectl drain` learns that.
package eviction

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sledctl/sledctl/fleet/api"
)

// Act is what a VM does then.
type Act string

// The acts.
const (
	Allow  Act = "allow"  // its pod may be deleted: its sled then stops it
	Move   Act = "move"   // it moves to another sled while it runs
	Refuse Act = "refuse" // it stays
)

// Verdict is an act, and why.
type Verdict struct {
	Act    Act
	Reason string
}

// Decide says what is to happen where a pod is to be evicted that is a run of a VM; nil: the VM
// does not exist.
func Decide(vm *api.VirtualMachine, pod *corev1.Pod) Verdict {
	generation, err := strconv.ParseInt(pod.Annotations[api.AnnotationRun], 10, 64)
	over := api.HasEnded(pod)
	switch {
	case vm == nil || err != nil || over || pod.DeletionTimestamp != nil || pod.Spec.NodeName == "":
		return Verdict{Allow, "nothing runs by it"}
	case pod.Annotations[api.AnnotationVM] != string(vm.UID):
		return Verdict{Allow, "it is a run of an earlier VM of that name"}
	case vm.Status.Moving != nil && vm.Status.Moving.Generation == generation:
		return Verdict{Refuse, fmt.Sprintf("VM %s is on its way to this sled: it can leave once it is here", vm.Name)}
	case vm.Status.Generation != generation:
		return Verdict{Allow, "the VM runs by a later one"}
	case vm.Status.Moving != nil:
		return Verdict{Move, fmt.Sprintf("VM %s is moving to another sled", vm.Name)}
	}
	return byPolicy(vm)
}

func byPolicy(vm *api.VirtualMachine) Verdict {
	switch {
	case vm.DeletionTimestamp != nil || vm.Spec.Running != nil && !*vm.Spec.Running:
		return Verdict{Allow, "the VM is to end"}
	case vm.Spec.Evict == api.EvictStop:
		return Verdict{Allow, "the VM is stopped, and started again"}
	case vm.Spec.Evict == api.EvictBlock:
		return Verdict{Refuse, fmt.Sprintf("VM %s has evict: block", vm.Name)}
	case vm.Spec.Local():
		return Verdict{Refuse, fmt.Sprintf("VM %s has a volume on its sled, which cannot move: stop the VM (running: false), or set evict: stop", vm.Name)}
	}
	return Verdict{Move, fmt.Sprintf("VM %s is to move to another sled while it runs", vm.Name)}
}

// Migration is the one that is asked for where a VM is to leave its sled. It is named by the
// generation that it raises, so that there is one however often that is asked, and another one
// after it has failed.
func Migration(vm *api.VirtualMachine) *api.VirtualMachineMigration {
	return &api.VirtualMachineMigration{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: vm.Namespace, Name: api.PodName(vm.Name, vm.Status.Next()), Labels: map[string]string{api.LabelDrain: "true", api.LabelVM: vm.Name},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: api.GroupVersion.String(), Kind: "VirtualMachine", Name: vm.Name, UID: vm.UID}},
		},
		Spec: api.VirtualMachineMigrationSpec{VM: vm.Name},
	}
}

// Ask has a VM moved that does not move yet.
func Ask(ctx context.Context, c client.Client, vm *api.VirtualMachine) error {
	if vm.Status.Moving != nil {
		return nil
	}
	return client.IgnoreAlreadyExists(c.Create(ctx, Migration(vm)))
}
