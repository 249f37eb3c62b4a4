package controller

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/sledctl/sledctl/fleet/api"
	"github.com/sledctl/sledctl/fleet/eviction"
)

// Maintenances reconciles SledMaintenances: a sled takes no VM any longer, and those on it leave.
type Maintenances struct{ *Controller }

// tryAgain is when a VM is moved again whose migration has failed.
const tryAgain = 10 * time.Second

// Reconcile empties the sled of one maintenance, or lets it take VMs again.
func (c *Maintenances) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var m api.SledMaintenance
	if err := c.Client.Get(ctx, request.NamespacedName, &m); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if m.DeletionTimestamp != nil {
		return reconcile.Result{}, c.end(ctx, &m)
	}
	if controllerutil.AddFinalizer(&m, api.FinalizerMaintenance) {
		return reconcile.Result{RequeueAfter: lookAgain}, c.Client.Update(ctx, &m)
	}
	var node corev1.Node
	err := c.Client.Get(ctx, client.ObjectKey{Name: m.Spec.Sled}, &node)
	there := err == nil
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	var left []Left
	if there {
		if err := c.cordon(ctx, &node, m.Name); err != nil {
			return reconcile.Result{}, err
		}
		if left, err = c.empty(ctx, &node, m.Spec.Lost != nil); err != nil {
			return reconcile.Result{}, err
		}
	}
	e := Empties(there, left)
	if m.Spec.Lost != nil && c.view.silent(m.Spec.Sled) < c.Terms.Fence {
		e.Phase, e.Reason = api.MaintenanceBlocked, "it answers, or has not been silent for long enough: that it is lost proves nothing"
	}
	return reconcile.Result{RequeueAfter: againAfter}, c.tellEmptied(ctx, &m, e)
}

// cordon keeps new VMs off a sled. One that an operator has cordoned stays his.
func (c *Maintenances) cordon(ctx context.Context, node *corev1.Node, by string) error {
	if node.Spec.Unschedulable {
		return nil
	}
	to := node.DeepCopy()
	to.Spec.Unschedulable = true
	if to.Annotations == nil {
		to.Annotations = map[string]string{}
	}
	to.Annotations[api.AnnotationCordoned] = by
	return c.Client.Patch(ctx, to, client.MergeFromWithOptions(node, client.MergeFromWithOptimisticLock{}))
}

// empty has what is on a sled leave it, and lists what is still there: what is claimed, and what
// the sled reports to run without a claim. Nothing leaves a sled that is lost; what is claimed there
// is until its end is written down.
func (c *Maintenances) empty(ctx context.Context, node *corev1.Node, lost bool) (left []Left, err error) {
	var pods corev1.PodList
	if err := c.Client.List(ctx, &pods, client.HasLabels{api.LabelSled}); err != nil {
		return nil, err
	}
	unclaimed := parseRuns(node.Annotations[api.AnnotationRuns])
	if lost {
		unclaimed = nil
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Spec.NodeName != node.Name {
			continue
		}
		delete(unclaimed, pod.Annotations[api.AnnotationVM])
		if api.HasEnded(pod) {
			continue
		}
		if lost {
			left = append(left, Left{VM: pod.Labels[api.LabelVM]})
			continue
		}
		one, err := c.leave(ctx, pod)
		if err != nil {
			return nil, err
		}
		left = append(left, one)
	}
	for vm := range unclaimed {
		left = append(left, Left{VM: vm})
	}
	slices.SortFunc(left, func(a, b Left) int { return strings.Compare(a.VM, b.VM) })
	return left, nil
}

// leave has one VM leave its sled.
func (c *Maintenances) leave(ctx context.Context, pod *corev1.Pod) (Left, error) {
	vm := &api.VirtualMachine{}
	name := pod.Labels[api.LabelVM]
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: name}, vm)
	if apierrors.IsNotFound(err) {
		vm, err = nil, nil
	}
	if err != nil {
		return Left{}, err
	}
	one := Left{VM: name, Verdict: eviction.Decide(vm, pod)}
	switch one.Verdict.Act {
	case eviction.Allow:
		if pod.DeletionTimestamp == nil {
			err = client.IgnoreNotFound(c.Client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID}))
		}
	case eviction.Move:
		one.Stuck, err = c.move(ctx, vm)
	}
	return one, err
}

// move asks for a migration, if none is under way and the last one did not fail just now.
func (c *Maintenances) move(ctx context.Context, vm *api.VirtualMachine) (stuck string, err error) {
	if vm.Status.Moving != nil {
		return "", nil
	}
	var asked api.VirtualMachineMigration
	err = c.Client.Get(ctx, client.ObjectKey{Namespace: vm.Namespace, Name: api.PodName(vm.Name, vm.Status.Next()-1)}, &asked)
	if client.IgnoreNotFound(err) != nil {
		return "", err
	}
	if f := asked.Status.Finished; err == nil && asked.Status.Phase == api.MigrationFailed && f != nil && time.Since(f.Time) < tryAgain {
		return asked.Status.Reason, nil
	}
	var next api.VirtualMachineMigration
	err = c.Client.Get(ctx, client.ObjectKeyFromObject(eviction.Migration(vm)), &next)
	if err == nil && next.Status.Phase == api.MigrationFailed {
		return next.Status.Reason, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return "", err
	}
	return "", eviction.Ask(ctx, c.Client, vm)
}

func (c *Maintenances) tellEmptied(ctx context.Context, m *api.SledMaintenance, e Emptied) error {
	to := m.DeepCopy()
	to.Status.Phase, to.Status.Remaining, to.Status.Reason = e.Phase, e.Remaining, e.Reason
	if m.Spec.Lost != nil && m.Status.Stated == nil {
		now := metav1.Now()
		to.Status.Stated = &now
		c.Events.Eventf(to, nil, corev1.EventTypeWarning, "Lost", "State", "%s states that sled %s is lost: %s", m.Spec.Lost.By, m.Spec.Sled, m.Spec.Lost.How)
	}
	is := metav1.ConditionFalse
	if e.Phase == api.MaintenanceReady {
		is = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&to.Status.Conditions, metav1.Condition{Type: api.ConditionEmpty, Status: is, Reason: e.Phase, Message: e.Reason, ObservedGeneration: m.Generation})
	if equality.Semantic.DeepEqual(m.Status, to.Status) {
		return nil
	}
	if m.Status.Phase != e.Phase {
		c.Events.Eventf(to, nil, corev1.EventTypeNormal, e.Phase, "Empty", "%d VMs are left on sled %s", e.Remaining, m.Spec.Sled)
	}
	return c.Client.Status().Update(ctx, to)
}

// end lets the sled take VMs again, unless it is kept empty by another maintenance or an operator.
func (c *Maintenances) end(ctx context.Context, m *api.SledMaintenance) error {
	var all api.SledMaintenanceList
	if err := c.Client.List(ctx, &all); err != nil {
		return err
	}
	other := ""
	for _, o := range all.Items {
		if o.UID != m.UID && o.DeletionTimestamp == nil && o.Spec.Sled == m.Spec.Sled {
			other = o.Name
		}
	}
	var node corev1.Node
	err := c.Client.Get(ctx, client.ObjectKey{Name: m.Spec.Sled}, &node)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil && node.Annotations[api.AnnotationCordoned] == m.Name {
		to := node.DeepCopy()
		if other != "" {
			to.Annotations[api.AnnotationCordoned] = other
		} else {
			to.Spec.Unschedulable = false
			delete(to.Annotations, api.AnnotationCordoned)
		}
		if err := c.Client.Patch(ctx, to, client.MergeFromWithOptions(&node, client.MergeFromWithOptimisticLock{})); err != nil {
			return err
		}
	}
	if controllerutil.RemoveFinalizer(m, api.FinalizerMaintenance) {
		return client.IgnoreNotFound(c.Client.Update(ctx, m))
	}
	return nil
}
