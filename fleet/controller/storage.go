package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sledctl/sledctl/fleet/api"
	"github.com/sledctl/sledctl/fleet/fence"
)

// runOf is the run of a pod, as far as its disks say what may prove its end; of a VM without a pod,
// the one that it would have. Its spec may have changed since the run was placed: what a run has is
// what its pod says.
func runOf(vm *api.VirtualMachine, pod *corev1.Pod) fence.Run {
	next := vm.Spec.Volumes()
	local, volumes := vm.Spec.Local(), next
	if pod != nil {
		var had bool
		had, volumes = disksOf(pod)
		local = local || had
	}
	return fence.Run{
		Policy: fence.Policy(vm.Spec.Restart), Local: local,
		Crucible: len(volumes) > 0 && fence.Missing(volumes, next) == "",
	}
}

// disksOf says whether the run of a pod has a disk on its sled, and to which volumes in a Crucible it
// may write. A document that cannot be read has a disk on its sled.
func disksOf(pod *corev1.Pod) (local bool, volumes []string) {
	var d document
	if err := json.Unmarshal([]byte(pod.Annotations[api.AnnotationSpec]), &d); err != nil {
		return true, nil
	}
	for _, v := range d.Crucible {
		if !v.ReadOnly {
			volumes = append(volumes, v.ID)
		}
	}
	return len(d.Disks) > 0, volumes
}

// keysOf are the Secrets of a VM's volumes as those of its pod: so its sled may read them, and no
// other sled.
func keysOf(vm *api.VirtualMachine) (all []corev1.Volume) {
	for i, d := range vm.Spec.Disks {
		if d.Crucible != nil && d.Crucible.Secret != "" {
			all = append(all, corev1.Volume{
				Name: "key-" + strconv.Itoa(i), VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: d.Crucible.Secret}},
			})
		}
	}
	return all
}

// leftovers lets go of pods of earlier generations, and of a move that was given up. Their ends
// are proven; they stay until their sleds have removed what is left. A run with volumes in a Crucible
// may go on, without writing, on a sled that does not answer: its pod stays, so that its sled ends it when
// it answers. Kept is a volume of one that the VM is not to have any longer, and that it may still write to.
func (c *Controller) leftovers(ctx context.Context, vm *api.VirtualMachine) (left int, kept string, err error) {
	var pods corev1.PodList
	if err := c.Client.List(ctx, &pods, client.InNamespace(vm.Namespace), client.MatchingFields{byVM: string(vm.UID)}); err != nil {
		return 0, "", err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		generation := generationOf(pod)
		if generation > vm.Status.Raised || vm.Status.Moving != nil && vm.Status.Moving.Generation == generation {
			continue
		}
		_, p, _, _ := c.known(ctx, vm, pod, generation)
		_, volumes := disksOf(pod)
		gone := p.Ended || p.Sled == "" || p.Lost || isAhead(pod, generation)
		if volume := fence.Missing(volumes, vm.Spec.Volumes()); volume != "" && !gone {
			kept = fmt.Sprintf("generation %d may write to volume %s until sled %s reports its end: the VM has to keep that volume, or the sled to be stated as lost", generation, volume, p.Sled)
		}
		if generation == vm.Status.Generation {
			continue
		}
		left++
		switch {
		case gone || p.Silent && len(volumes) == 0:
			err = c.release(ctx, pod)
		case !p.Deleting:
			err = client.IgnoreNotFound(c.Client.Delete(ctx, pod))
		}
		if err != nil {
			return left, kept, fmt.Errorf("let pod %s go: %w", pod.Name, err)
		}
	}
	return left, kept, nil
}

// isAhead reports whether the sled of a pod has had a higher generation, before which it has removed
// that of the pod.
func isAhead(pod *corev1.Pod, generation int64) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == api.ConditionAhead && condition.Status == corev1.ConditionTrue {
			n, err := strconv.ParseInt(condition.Message, 10, 64)
			return err == nil && n > generation
		}
	}
	return false
}
