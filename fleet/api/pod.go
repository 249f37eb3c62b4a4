package api

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// What Nodes, Pods and their parts are called. The prefix is the fleet's group.
const (
	LabelSled       = Group + "/sled"       // on a Node: it is a sled; on a Pod: it is a run of a VM
	LabelVM         = Group + "/vm"         // on a Pod: the name of the VM
	LabelLease      = Group + "/lease"      // on a Pod: its VM runs under the lease of its sled
	AnnotationVM    = Group + "/vm-uid"     // on a Pod: the UID of the VM
	AnnotationRun   = Group + "/generation" // on a Pod: the generation
	AnnotationSpec  = Group + "/document"   // on a Pod: the instance document
	AnnotationFrom  = Group + "/from"       // on a Pod: where the Propolis of the generation before listens; the run comes from there
	AnnotationRuns  = Group + "/runs"       // on a Node: what the sled runs, as Runs
	AnnotationTerm  = Group + "/census"     // on a Node: its fence.Answer
	AnnotationAgent = Group + "/agent-api"  // on a Node: the versions of the agent's API

	TaintSled   = Group + "/sled"   // on a Node: only runs of VMs may be placed there
	TaintFenced = Group + "/fenced" // on a Node: the fleet has proven ends by its silence

	FinalizerRun = Group + "/run" // on a Pod: it stays until the end of its run is proven
	FinalizerVM  = Group + "/vm"  // on a VirtualMachine: it stays until its last run has ended

	LabelDrain           = Group + "/drain"       // on a VirtualMachineMigration: a drain or a maintenance has asked for it
	AnnotationCordoned   = Group + "/cordoned-by" // on a Node: the SledMaintenance that has cordoned it
	FinalizerMaintenance = Group + "/maintenance" // on a SledMaintenance: it stays until its sled takes VMs again

	// ConditionAhead is the condition of a Pod whose sled has had a higher generation than
	// the Pod's. Its message is that generation.
	ConditionAhead = Group + "/Ahead"
	// ConditionStarted is the condition of a Pod whose sled has started the generation: it does
	// so once.
	ConditionStarted = Group + "/Started"
	// ConditionArrived is the condition of a Pod whose run has come from another sled: the
	// generation before has ended by that.
	ConditionArrived = Group + "/Arrived"
	// ConditionPropolis is the condition of a Pod whose Propolis listens at its message, ADDRESS:PORT.
	ConditionPropolis = Group + "/Propolis"
	// ConditionVM is the condition of a Pod with the state of its VM as reason.
	ConditionVM = Group + "/VM"
)

// The reasons of a Pod that has ended.
const (
	ReasonEnded   = "Ended"             // the VM ran, and has ended
	ReasonRefused = "GenerationRefused" // the sled has had the generation, or a higher one
	ReasonNever   = "NeverStarted"      // it was deleted before it was started
	ReasonLeft    = "Left"              // another sled has the VM, by a migration
	ReasonStayed  = "Stayed"            // the VM has not come here: it is where it was
)

// HasEnded reports whether the sled of a Pod has reported the end of its run. That a Pod is Failed
// says less: Kubernetes' controllers mark those of a deleted Node so, and the VM may run.
func HasEnded(pod *corev1.Pod) bool {
	switch pod.Status.Phase {
	case corev1.PodSucceeded, corev1.PodFailed:
		return slices.Contains([]string{ReasonEnded, ReasonRefused, ReasonNever, ReasonLeft, ReasonStayed}, pod.Status.Reason)
	}
	return false
}
