package controller

import (
	"context"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/sledctl/sledctl/fleet/api"
	"github.com/sledctl/sledctl/fleet/fence"
)

// lookAgain is when a move is looked at again.
const lookAgain = 500 * time.Millisecond

// moves does what DecideMove says about a VM that moves.
func (c *Controller) moves(ctx context.Context, vm *api.VirtualMachine, source *corev1.Pod) (reconcile.Result, error) {
	moving := vm.Status.Moving
	pod, err := c.find(ctx, vm, moving.Generation)
	if err != nil {
		return reconcile.Result{}, err
	}
	var asked api.VirtualMachineMigration
	err = c.Client.Get(ctx, client.ObjectKey{Namespace: vm.Namespace, Name: moving.Migration}, &asked)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	there := err == nil && asked.UID == moving.UID && asked.DeletionTimestamp == nil
	m := Move{Generation: moving.Generation, Wanted: there && wanted(vm), Pending: time.Since(moving.Started.Time)}
	_, from, _, _ := c.known(ctx, vm, source, vm.Status.Generation)
	_, to, run, e := c.known(ctx, vm, pod, moving.Generation)
	if from == nil || from.Ended {
		e = c.view.emptied(e, "emptied "+vm.Status.PropolisID)
	}
	step := DecideMove(m, from, targetOf(pod, to), run, e)
	switch step.Act {
	case Arrive:
		err = c.arrived(ctx, vm, &asked, there, pod, step)
	case GiveUp:
		err = c.giveUp(ctx, vm, &asked, there, pod, step)
	case Claim:
		err = c.claimMove(ctx, vm)
	case Cancel:
		version := pod.ResourceVersion // it may have been bound since
		err = client.IgnoreNotFound(c.Client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID, ResourceVersion: &version}))
		if apierrors.IsConflict(err) {
			err = nil
		}
	case Evict:
		err = client.IgnoreNotFound(c.Client.Delete(ctx, pod))
	case PowerOff:
		err = c.tellMove(ctx, vm, pod, c.powerOff(pod, step))
	default:
		err = c.tellMove(ctx, vm, pod, step)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: lookAgain}, nil
}

func wanted(vm *api.VirtualMachine) bool {
	return vm.DeletionTimestamp == nil && (vm.Spec.Running == nil || *vm.Spec.Running)
}

// targetOf is what DecideMove needs of the pod of the generation that comes.
func targetOf(pod *corev1.Pod, p *Pod) *Target {
	if pod == nil {
		return nil
	}
	return &Target{Pod: *p, Arrived: podIs(pod, api.ConditionArrived), Message: pod.Status.Message}
}

func podIs(pod *corev1.Pod, what corev1.PodConditionType) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == what {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// claimMove creates the pod of the generation that comes.
func (c *Controller) claimMove(ctx context.Context, vm *api.VirtualMachine) error {
	to := vm.DeepCopy()
	to.Status.Generation = vm.Status.Moving.Generation
	pod, err := podOf(to)
	if err != nil {
		return err
	}
	comesFrom(pod, vm.Status.Moving)
	return c.create(ctx, vm, pod)
}

// comesFrom makes a pod that of a run which comes from another sled, and goes to none but the
// target, if one was asked for.
func comesFrom(pod *corev1.Pod, m *api.Moving) {
	pod.Annotations[api.AnnotationFrom] = m.From
	requires := func(op corev1.NodeSelectorOperator, sled string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: op, Values: []string{sled}}
	}
	all := []corev1.NodeSelectorRequirement{requires(corev1.NodeSelectorOpNotIn, m.Source)}
	if m.Target != "" {
		all = append(all, requires(corev1.NodeSelectorOpIn, m.Target))
	}
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: all}}},
	}}
}

// tellMove writes down which sled was chosen.
func (c *Controller) tellMove(ctx context.Context, vm *api.VirtualMachine, pod *corev1.Pod, step Step) error {
	to := vm.DeepCopy()
	to.Status.Phase = api.PhaseMigrating
	if step.Act == Wait {
		to.Status.Phase = api.PhaseUnknown
		meta.SetStatusCondition(&to.Status.Conditions, metav1.Condition{
			Type: api.ConditionFenced, Status: metav1.ConditionFalse, Reason: "NotProven", Message: step.Reason, ObservedGeneration: vm.Generation,
		})
	}
	if pod != nil && pod.Spec.NodeName != "" {
		to.Status.Moving.Target = pod.Spec.NodeName
	}
	return c.write(ctx, vm, to)
}

// arrived writes down that the VM is on its target. The migration's end is written first:
// a VM that does not move any longer has no migration that is still to begin.
func (c *Controller) arrived(ctx context.Context, vm *api.VirtualMachine, asked *api.VirtualMachineMigration, there bool, pod *corev1.Pod, step Step) error {
	if err := c.settle(ctx, asked, there, vm.Status.Moving, pod, api.MigrationSucceeded, step.Reason); err != nil {
		return err
	}
	to, before := vm.DeepCopy(), vm.Status.Generation
	to.Status.Ended = &api.Ended{Generation: before, Proof: string(step.Proof), Time: metav1.Now()}
	to.Status.Generation, to.Status.Sled, to.Status.Moving = vm.Status.Moving.Generation, pod.Spec.NodeName, nil
	to.Status.Raised = max(to.Status.Raised, to.Status.Generation)
	id, err := api.PropolisID(vm.UID, to.Status.Generation)
	if err != nil {
		return err
	}
	to.Status.PropolisID = id
	if err := c.Client.Status().Update(ctx, to); err != nil {
		return err
	}
	c.figures.moved(vm.Status.Moving, "succeeded")
	c.Events.Eventf(to, nil, corev1.EventTypeNormal, "Moved", "Arrive", "from sled %s to sled %s: generation %d has ended by that", vm.Status.Moving.Source, pod.Spec.NodeName, before)
	return nil
}

// giveUp writes down that the generation which was to come has ended: what its own sled reports
// of the generation before is what counts again.
func (c *Controller) giveUp(ctx context.Context, vm *api.VirtualMachine, asked *api.VirtualMachineMigration, there bool, pod *corev1.Pod, step Step) error {
	if pod != nil && step.Proof != fence.Confirmed && step.Proof != fence.NeverRan {
		if err := c.taint(ctx, pod.Spec.NodeName); err != nil {
			return err
		}
	}
	if step.Proof == fence.Stated {
		by, _ := c.lost(ctx, pod.Spec.NodeName)
		step.Reason += ", by " + by
	}
	if err := c.settle(ctx, asked, there, vm.Status.Moving, pod, api.MigrationFailed, step.Reason); err != nil {
		return err
	}
	to := vm.DeepCopy()
	to.Status.Raised, to.Status.Moving = max(to.Status.Raised, vm.Status.Moving.Generation), nil
	if err := c.Client.Status().Update(ctx, to); err != nil {
		return err
	}
	c.figures.moved(vm.Status.Moving, "failed")
	c.Events.Eventf(to, nil, corev1.EventTypeWarning, "NotMoved", "GiveUp", "it stays on sled %s: %s", vm.Status.Moving.Source, step.Reason)
	return nil
}

// settle writes down how a migration has ended.
func (c *Controller) settle(ctx context.Context, asked *api.VirtualMachineMigration, there bool, m *api.Moving, pod *corev1.Pod, phase, reason string) error {
	if !there {
		return nil
	}
	to := asked.DeepCopy()
	now := metav1.Now()
	to.Status.Phase, to.Status.Reason, to.Status.Finished = phase, reason, &now
	to.Status.Generation, to.Status.Source, to.Status.Target = m.Generation, m.Source, m.Target
	if pod != nil && pod.Spec.NodeName != "" {
		to.Status.Target = pod.Spec.NodeName
	}
	if to.Status.Started == nil {
		to.Status.Started = &m.Started
	}
	done(to, phase == api.MigrationSucceeded, phase, reason)
	return client.IgnoreNotFound(c.Client.Status().Update(ctx, to))
}

// done sets the condition of a migration.
func done(to *api.VirtualMachineMigration, arrived bool, reason, message string) {
	is := metav1.ConditionFalse
	if arrived {
		is = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&to.Status.Conditions, metav1.Condition{Type: api.ConditionArrivedVM, Status: is, Reason: reason, Message: message, ObservedGeneration: to.Generation})
}

// catchUpMove takes over a move that the store has forgotten.
func (c *Controller) catchUpMove(ctx context.Context, vm *api.VirtualMachine, found Found, source *corev1.Pod) error {
	to := vm.DeepCopy()
	m := &api.Moving{Generation: found.Generation, Migration: "forgotten-" + strconv.FormatInt(found.Generation, 10), Target: found.Sled, Started: metav1.Now(), From: "unknown"}
	if source != nil {
		m.Source = source.Spec.NodeName
	}
	to.Status.Moving, to.Status.Raised = m, max(to.Status.Raised, found.Generation)
	if err := c.Client.Status().Update(ctx, to); err != nil {
		return err
	}
	c.Events.Eventf(to, nil, corev1.EventTypeWarning, "Forgotten", "CatchUp", "generation %d comes to sled %s, which this store has forgotten", found.Generation, found.Sled)
	after := to.DeepCopy()
	after.Status.Generation = found.Generation
	pod, err := podOf(after)
	if err != nil {
		return err
	}
	comesFrom(pod, m)
	pod.Spec.NodeName = found.Sled
	return c.create(ctx, to, pod)
}
