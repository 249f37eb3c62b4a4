package controller

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sledctl/sledctl/fleet/api"
	"github.com/sledctl/sledctl/fleet/fence"
	"github.com/sledctl/sledctl/fleet/node"
)

// podOf is the claim of a VM's last generation. Its container is never run: it carries what
// the scheduler counts.
func podOf(vm *api.VirtualMachine) (*corev1.Pod, error) {
	document, err := documentOf(vm)
	if err != nil {
		return nil, err
	}
	run := runOf(vm, nil)
	yes, no := true, false
	takes := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(int64(vm.Spec.CPUs), resource.DecimalSI),
		corev1.ResourceMemory: vm.Spec.Memory.DeepCopy(),
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: vm.Namespace, Name: api.PodName(vm.Name, vm.Status.Generation),
			Labels: map[string]string{
				api.LabelSled: "true", api.LabelVM: vm.Name, api.LabelLease: strconv.FormatBool(run.Effective() == fence.Lease),
			},
			Annotations: map[string]string{
				api.AnnotationVM: string(vm.UID), api.AnnotationRun: strconv.FormatInt(vm.Status.Generation, 10), api.AnnotationSpec: string(document),
			},
			Finalizers: []string{api.FinalizerRun},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: api.GroupVersion.String(), Kind: "VirtualMachine", Name: vm.Name, UID: vm.UID, Controller: &yes, BlockOwnerDeletion: &yes,
			}},
		},
		Spec: corev1.PodSpec{
			RestartPolicy:                corev1.RestartPolicyNever,
			AutomountServiceAccountToken: &no,
			EnableServiceLinks:           &no,
			PriorityClassName:            vm.Spec.PriorityClassName,
			NodeSelector:                 map[string]string{api.LabelSled: "true"},
			Containers: []corev1.Container{{
				Name: "vm", Image: "sledctl.dev/never-run", Resources: corev1.ResourceRequirements{Requests: takes, Limits: takes},
			}},
			Tolerations: []corev1.Toleration{
				{Key: api.TaintSled, Operator: corev1.TolerationOpExists},
				// A sled that does not answer may run its VMs: none is evicted for that.
				{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
				{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
			},
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{api.LabelSled: "true"}},
			}},
		},
	}
	pod.Spec.Volumes = keysOf(vm)
	for k, v := range vm.Spec.NodeSelector {
		pod.Spec.NodeSelector[k] = v
	}
	if run.Local && vm.Status.Sled != "" { // its volume is there
		pod.Spec.NodeSelector[corev1.LabelHostname] = vm.Status.Sled
	}
	return pod, nil
}

// document is the instance document of a VM, as the agent reads it.
type document struct {
	ID        string         `json:"id"`
	Name      string         `json:"name"`
	CPUs      int32          `json:"cpus"`
	Memory    int64          `json:"memory"`
	Disks     []documentDisk `json:"disks,omitempty"`
	Crucible  []node.Volume  `json:"crucible,omitempty"`
	NICs      []documentNIC  `json:"nics,omitempty"`
	CloudInit *documentInit  `json:"cloud_init,omitempty"`
}

type documentDisk struct {
	Path     string `json:"path,omitempty"`
	ReadOnly bool   `json:"readonly,omitempty"`
	Image    string `json:"image,omitempty"`
	Size     int64  `json:"size,omitempty"`
	Pool     string `json:"pool,omitempty"`
}

type documentNIC struct {
	Over string `json:"over"`
	MAC  string `json:"mac,omitempty"`
	VLAN int32  `json:"vlan,omitempty"`
}

type documentInit struct {
	Hostname string   `json:"hostname,omitempty"`
	SSHKeys  []string `json:"ssh_keys,omitempty"`
	UserData string   `json:"user_data,omitempty"`
}

func documentOf(vm *api.VirtualMachine) ([]byte, error) {
	id, err := api.InstanceID(vm.UID)
	if err != nil {
		return nil, err
	}
	d := document{ID: id, Name: api.InstanceName(vm.Name, vm.UID), CPUs: vm.Spec.CPUs, Memory: vm.Spec.Memory.Value()}
	for _, disk := range vm.Spec.Disks {
		if c := disk.Crucible; c != nil {
			d.Crucible = append(d.Crucible, node.Volume{
				ID: c.ID, Targets: c.Targets, BlockSize: c.BlockSize, BlocksPerExtent: c.BlocksPerExtent, Extents: c.Extents, ReadOnly: disk.ReadOnly, Secret: c.Secret,
			})
			continue
		}
		one := documentDisk{Path: disk.Path, ReadOnly: disk.ReadOnly, Image: disk.Image, Pool: disk.Pool}
		if disk.Size != nil {
			one.Size = disk.Size.Value()
		}
		d.Disks = append(d.Disks, one)
	}
	for _, nic := range vm.Spec.NICs {
		d.NICs = append(d.NICs, documentNIC(nic))
	}
	if c := vm.Spec.CloudInit; c != nil {
		d.CloudInit = &documentInit{c.Hostname, c.SSHKeys, c.UserData}
	}
	return json.Marshal(d)
}

// tell writes what is known of a VM into its status, if that is news.
func (c *Controller) tell(ctx context.Context, vm *api.VirtualMachine, pod *corev1.Pod, step Step) error {
	to := vm.DeepCopy()
	to.Status.ObservedGeneration = vm.Generation
	set := func(what string, is bool, reason, message string) {
		status := metav1.ConditionFalse
		if is {
			status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&to.Status.Conditions, metav1.Condition{Type: what, Status: status, Reason: reason, Message: message, ObservedGeneration: vm.Generation})
	}
	if pod != nil && generationOf(pod) == vm.Status.Generation {
		if to.Status.Sled = pod.Spec.NodeName; vm.Spec.Local() && to.Status.Sled == "" {
			to.Status.Sled = vm.Status.Sled // that of its volume
		}
		running, reason := false, "Pending"
		for _, condition := range pod.Status.Conditions {
			switch condition.Type {
			case api.ConditionVM:
				running, reason = condition.Status == corev1.ConditionTrue, "Reported"
				set(api.ConditionRunning, running, reason, strings.TrimSuffix(condition.Reason+": "+condition.Message, ": "))
			case corev1.PodScheduled:
				set(api.ConditionPlaced, condition.Status == corev1.ConditionTrue, "Scheduled", condition.Message)
			}
		}
		to.Status.Phase = api.PhaseStarting
		switch {
		case pod.Spec.NodeName == "":
			to.Status.Phase = api.PhasePending
		case running:
			to.Status.Phase = api.PhaseRunning
		}
	}
	if vm.Spec.Restart != "" && vm.Spec.Restart != api.Restart(fence.Hold) {
		why := runOf(vm, pod).Forced()
		set(api.ConditionRestart, why == "", map[bool]string{true: "AsAsked", false: "Hold"}[why == ""], why)
	}
	switch {
	case step.Act == Wait && pod != nil && !over(vm):
		to.Status.Phase = api.PhaseUnknown
		set(api.ConditionFenced, false, "NotProven", step.Reason)
	case step.Act == Wait:
		to.Status.Phase = api.PhasePending
		set(api.ConditionPlaced, false, "Waits", step.Reason)
	case vm.Status.Generation == endedOf(vm) && step.Act == Nothing:
		to.Status.Phase = api.PhaseStopped
	}
	return c.write(ctx, vm, to)
}

// write writes the status of a VM if it is another one.
func (c *Controller) write(ctx context.Context, vm, to *api.VirtualMachine) error {
	if equality.Semantic.DeepEqual(vm.Status, to.Status) {
		return nil
	}
	return c.Client.Status().Update(ctx, to)
}

// over reports whether the last generation is taken to have ended.
func over(vm *api.VirtualMachine) bool { return vm.Status.Generation == endedOf(vm) }

func endedOf(vm *api.VirtualMachine) int64 {
	if vm.Status.Ended == nil {
		return 0
	}
	return vm.Status.Ended.Generation
}
