package controller

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/sledctl/sledctl/fleet/api"
	"github.com/sledctl/sledctl/fleet/fence"
)

// Migrations reconciles VirtualMachineMigrations: it begins moves, which the Controller ends.
// One of it runs at a time, so that it counts well.
type Migrations struct {
	*Controller
	// begun has what this process has raised, and may not read yet.
	begun map[types.UID]*api.Moving
}

// keepDrained is for how long a migration is kept that a drain has asked for.
const keepDrained = time.Hour

// Reconcile does what DecideMigration says about one migration.
func (c *Migrations) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var asked api.VirtualMachineMigration
	if err := c.Client.Get(ctx, request.NamespacedName, &asked); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if asked.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	var vm *api.VirtualMachine
	var have api.VirtualMachine
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: asked.Namespace, Name: asked.Spec.VM}, &have)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	if err == nil {
		vm = &have
	}
	a, from, err := c.asked(ctx, &asked, vm)
	if err != nil {
		return reconcile.Result{}, err
	}
	step := DecideMigration(a)
	switch step.Act {
	case Nothing:
		return c.forget(ctx, &asked)
	case Begin:
		if err := c.begin(ctx, &asked, vm, a.Source, from); err != nil {
			if apierrors.IsConflict(err) { // the VM is another one by now
				return reconcile.Result{RequeueAfter: lookAgain}, nil
			}
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{RequeueAfter: lookAgain}, c.tellAsked(ctx, &asked, vm, step)
}

// asked is what DecideMigration needs, and where the VM's Propolis listens.
func (c *Migrations) asked(ctx context.Context, asked *api.VirtualMachineMigration, vm *api.VirtualMachine) (a Asked, from string, err error) {
	a = Asked{Phase: asked.Status.Phase, Target: asked.Spec.Target, There: vm != nil}
	if vm == nil || a.Phase == api.MigrationSucceeded || a.Phase == api.MigrationFailed {
		return a, "", nil
	}
	moving := vm.Status.Moving
	a.Mine = moving != nil && moving.UID == asked.UID
	a.Moving = moving != nil && !a.Mine
	a.Stale = asked.Labels[api.LabelDrain] != "" && asked.Name != api.PodName(vm.Name, vm.Status.Next())
	a.Wanted, a.Volumes = wanted(vm), vm.Spec.Local()
	var pod *corev1.Pod
	if vm.Status.Generation > 0 {
		if pod, err = c.find(ctx, vm, vm.Status.Generation); err != nil {
			return a, "", err
		}
	}
	_, p, _, e := c.known(ctx, vm, pod, vm.Status.Generation)
	if v := fence.Decide(fence.Run{}, fence.Evidence{Uncounted: e.Uncounted}); !v.Proven() {
		a.Uncounted = v.Reason
	}
	if p == nil {
		return a, "", nil
	}
	a.Source, a.Silent = p.Sled, p.Silent
	for _, condition := range pod.Status.Conditions {
		if condition.Type == api.ConditionPropolis {
			from = condition.Message
		}
	}
	a.Running = !p.Ended && !p.Deleting && podIs(pod, api.ConditionVM) && from != ""
	a.Leaving, a.Coming, err = c.count(ctx, a.Source, a.Target)
	return a, from, err
}

// count counts the VMs that leave a sled, and those that come to one.
func (c *Migrations) count(ctx context.Context, source, target string) (leaving, coming int, err error) {
	var all api.VirtualMachineList
	if err := c.Client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return 0, 0, err
	}
	for i := range all.Items {
		vm := &all.Items[i]
		m := vm.Status.Moving
		if begun := c.begun[vm.UID]; begun != nil && vm.Status.Raised < begun.Generation {
			m = begun
		} else if begun != nil {
			delete(c.begun, vm.UID)
		}
		if m == nil || m.Target != "" && c.view.silent(m.Target) >= c.Terms.Fence { // nothing is sent to a sled that is gone
			continue
		}
		if m.Source == source {
			leaving++
		}
		if m.Target == target {
			coming++
		}
	}
	return leaving, coming, nil
}

// begin raises the next generation of a VM as one that comes. The write fails if the VM is not
// the one that was read; and as the end of a migration is written before that of the move, a VM
// that does not move, next to a migration that is not over, has not moved by it.
func (c *Migrations) begin(ctx context.Context, asked *api.VirtualMachineMigration, vm *api.VirtualMachine, source, from string) error {
	var now api.VirtualMachineMigration
	if err := c.Live.Get(ctx, client.ObjectKeyFromObject(asked), &now); err != nil {
		return client.IgnoreNotFound(err)
	}
	if now.UID != asked.UID || now.DeletionTimestamp != nil || now.Status.Finished != nil {
		return nil
	}
	to := vm.DeepCopy()
	to.Status.Moving = &api.Moving{
		Generation: vm.Status.Next(), Migration: asked.Name, UID: asked.UID, Source: source, Target: asked.Spec.Target, From: from, Started: metav1.Now(),
	}
	to.Status.Raised, to.Status.Phase = to.Status.Moving.Generation, api.PhaseMigrating
	if err := c.Client.Status().Update(ctx, to); err != nil {
		return err
	}
	if c.begun == nil {
		c.begun = map[types.UID]*api.Moving{}
	}
	c.begun[vm.UID] = to.Status.Moving
	*vm = *to
	c.Events.Eventf(to, asked, corev1.EventTypeNormal, "Moves", "Begin", "generation %d comes from sled %s", to.Status.Moving.Generation, to.Status.Moving.Source)
	return c.claimMove(ctx, to)
}

// tellAsked writes down how far a migration is, or that it has failed before it was begun.
func (c *Migrations) tellAsked(ctx context.Context, asked *api.VirtualMachineMigration, vm *api.VirtualMachine, step Step) error {
	to := asked.DeepCopy()
	to.Status.Phase, to.Status.Reason = api.MigrationPending, step.Reason
	switch {
	case step.Act == Fail:
		now := metav1.Now()
		to.Status.Phase, to.Status.Finished = api.MigrationFailed, &now
		done(to, false, api.MigrationFailed, step.Reason)
	case vm != nil && vm.Status.Moving != nil && vm.Status.Moving.UID == asked.UID:
		m := vm.Status.Moving
		to.Status.Phase, to.Status.Reason, to.Status.Started = api.MigrationRunning, "", &m.Started
		to.Status.Generation, to.Status.Source, to.Status.Target = m.Generation, m.Source, m.Target
	}
	if equality.Semantic.DeepEqual(asked.Status, to.Status) {
		return nil
	}
	if step.Act == Fail {
		c.Events.Eventf(to, nil, corev1.EventTypeWarning, "NotMoved", "Fail", "%s", step.Reason)
	}
	err := c.Client.Status().Update(ctx, to)
	if apierrors.IsConflict(err) { // its end was written meanwhile
		return nil
	}
	return client.IgnoreNotFound(err)
}

// forget removes a migration that a drain has asked for, some time after it is over.
func (c *Migrations) forget(ctx context.Context, asked *api.VirtualMachineMigration) (reconcile.Result, error) {
	if asked.Labels[api.LabelDrain] == "" || asked.Status.Finished == nil {
		return reconcile.Result{}, nil
	}
	if left := keepDrained - time.Since(asked.Status.Finished.Time); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(c.Client.Delete(ctx, asked))
}
