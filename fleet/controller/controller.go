package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/sledctl/sledctl/fleet/api"
	"github.com/sledctl/sledctl/fleet/fence"
)

// Controller reconciles VMs.
type Controller struct {
	Client client.Client
	Live   client.Reader // past the cache
	Events events.EventRecorder
	Terms  fence.Terms
	Log    *slog.Logger

	view     *view
	suspects *suspects
	figures  *figures
}

// New is a controller, and the loop that it depends on.
func New(c client.Client, live client.Reader, recorder events.EventRecorder, terms fence.Terms, every time.Duration, log *slog.Logger) (*Controller, *Beats) {
	v := &view{gap: gaps * every}
	return &Controller{Client: c, Live: live, Events: recorder, Terms: terms, Log: log, view: v, suspects: newSuspects(), figures: newFigures(func() bool { return v.braked(terms.Fence) })},
		&Beats{Client: c, Live: live, Every: every, Log: log, view: v, wakes: &wakes{client: c, fence: terms.Fence}}
}

// againAfter is when a VM is decided again that waits for a proof.
const againAfter = time.Second

// rarely is when a VM is decided again about which nothing is to be done. It is drawn, so that thousands of VMs
// that were placed at once are not decided at once.
func rarely(t fence.Terms) time.Duration {
	most := max(againAfter, 4*t.Fence)
	return most - time.Duration(rand.Float64()*float64(most)/2)
}

// Reconcile does what Decide says about one VM.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var vm api.VirtualMachine
	if err := c.Client.Get(ctx, request.NamespacedName, &vm); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if vm.DeletionTimestamp == nil && controllerutil.AddFinalizer(&vm, api.FinalizerVM) {
		return reconcile.Result{}, c.Client.Update(ctx, &vm)
	}
	var pod *corev1.Pod
	if vm.Status.Generation > 0 {
		var err error
		pod, err = c.find(ctx, &vm, vm.Status.Generation)
		if taken := new(nameTakenError); errors.As(err, &taken) {
			return reconcile.Result{}, c.tell(ctx, &vm, nil, Step{Act: Wait, Reason: taken.Error()})
		}
		if err != nil {
			return reconcile.Result{}, err
		}
	}
	left, kept, err := c.leftovers(ctx, &vm)
	if err != nil {
		return reconcile.Result{}, err
	}
	if vm.Status.Moving != nil {
		return c.moves(ctx, &vm, pod)
	}
	m, p, run, e := c.known(ctx, &vm, pod, vm.Status.Generation)
	m.Kept = kept
	step := Decide(m, p, c.view.found(string(vm.UID)), run, e)
	if step.Act == Raise {
		if wait := backOff(&vm, time.Now()); wait > 0 {
			return reconcile.Result{RequeueAfter: wait}, c.tell(ctx, &vm, pod, step)
		}
	}
	if wait := startWait(vm.Status.Phase, pod, time.Now()); step.Act == Nothing && left == 0 && wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	if step.Act == Forget && left > 0 {
		return reconcile.Result{RequeueAfter: againAfter}, nil
	}
	if err := c.do(ctx, step, &vm, pod); err != nil {
		return reconcile.Result{}, err
	}
	switch {
	case left > 0:
		return reconcile.Result{RequeueAfter: againAfter}, nil
	case step.Act == Forget, step.Act == Nothing && pod == nil:
		return reconcile.Result{}, nil
	case step.Act == Nothing: // an event wakes it, or the loop of beats does
		return reconcile.Result{RequeueAfter: rarely(c.Terms)}, nil
	}
	return reconcile.Result{RequeueAfter: againAfter}, nil
}

// startsWithin is how long a VM may take to run that has just been given a sled, before its status says that it
// starts: one that runs by then is written once.
const startsWithin = 5 * time.Second

// startWait is how long the status of a VM waits for what its sled reports; 0: it does not.
func startWait(phase string, pod *corev1.Pod, now time.Time) time.Duration {
	if phase != api.PhasePending || pod == nil || pod.Spec.NodeName == "" {
		return 0
	}
	wait := time.Duration(0)
	for _, condition := range pod.Status.Conditions {
		switch since := now.Sub(condition.LastTransitionTime.Time); {
		case condition.Type == api.ConditionVM: // its sled has reported something
			return 0
		case condition.Type == corev1.PodScheduled && since >= 0:
			wait = max(0, startsWithin-since)
		}
	}
	return wait
}

// nameTakenError is a pod that has the name of the VM's, and is not the VM's.
type nameTakenError struct{ pod string }

// Error says what to do about it.
func (e *nameTakenError) Error() string {
	return fmt.Sprintf("pod %s is not of this VM: delete it, or give the VM another name", e.pod)
}

// find reads the pod of a generation; nil: there is none.
func (c *Controller) find(ctx context.Context, vm *api.VirtualMachine, generation int64) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	key := client.ObjectKey{Namespace: vm.Namespace, Name: api.PodName(vm.Name, generation)}
	err := c.Client.Get(ctx, key, pod)
	if apierrors.IsNotFound(err) { // the cache may not have it yet
		err = c.Live.Get(ctx, key, pod)
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	case pod.Annotations[api.AnnotationVM] != string(vm.UID):
		return nil, &nameTakenError{pod.Name}
	}
	return pod, nil
}

// known is what Decide needs about the run of a generation.
func (c *Controller) known(ctx context.Context, vm *api.VirtualMachine, pod *corev1.Pod, generation int64) (Machine, *Pod, fence.Run, fence.Evidence) {
	m := Machine{
		Running: vm.Spec.Running == nil || *vm.Spec.Running, Deleting: vm.DeletionTimestamp != nil,
		Generation: vm.Status.Generation, Raised: vm.Status.Next() - 1,
	}
	if vm.Status.Ended != nil {
		m.Ended, m.Proof = vm.Status.Ended.Generation, fence.Proof(vm.Status.Ended.Proof)
	}
	run := runOf(vm, pod)
	run.Generation, run.Sled, run.Terms = generation, vm.Status.Sled, c.Terms
	if pod == nil {
		return m, nil, run, c.view.evidence(run.Sled, "")
	}
	run.Sled = pod.Spec.NodeName
	revoked := ""
	run.Started = podIs(pod, api.ConditionStarted)
	if pod.DeletionTimestamp != nil && !run.Started {
		revoked = pod.Namespace + "/" + pod.Name + " " + string(pod.UID)
	}
	e := c.suspects.evidence(c.view.evidence(run.Sled, revoked), run.Sled, pod.UID)
	p := &Pod{
		Sled: run.Sled, Deleting: pod.DeletionTimestamp != nil,
		Ended:  api.HasEnded(pod),
		Silent: run.Sled != "" && c.view.silent(run.Sled) >= c.Terms.Fence,
	}
	if p.Silent {
		e.Braked = c.view.brake(run.Sled, c.Terms.Fence)
		if _, p.Lost = c.lost(ctx, run.Sled); p.Lost {
			e.Lost = run.Sled
		}
	}
	// The policy is that with which the run was started: the guard knows no other.
	if pod.Labels[api.LabelLease] != "true" && run.Policy == fence.Lease {
		run.Policy = fence.Hold
	}
	return m, p, run, e
}

// lost is who has stated that a sled never runs again. What cannot be read is no statement.
func (c *Controller) lost(ctx context.Context, sled string) (by string, stated bool) {
	var all api.SledMaintenanceList
	if err := c.Client.List(ctx, &all); err != nil {
		c.Log.Warn("it is not known which sleds are lost", "cause", err)
		return "", false
	}
	for _, m := range all.Items {
		if m.Spec.Sled == sled && m.Spec.Lost != nil && m.DeletionTimestamp == nil {
			return m.Spec.Lost.By, true
		}
	}
	return "", false
}

// powerOff has the sled of a pod powered off, and waits with what its BMC says.
func (c *Controller) powerOff(pod *corev1.Pod, step Step) Step {
	step.Act = Wait
	if said := c.suspects.want(pod.Spec.NodeName, pod.UID); said != "" {
		step.Reason += ": " + said
	}
	return step
}

// backOff is how long a VM that ends again and again waits until it is started again.
func backOff(vm *api.VirtualMachine, now time.Time) time.Duration {
	if vm.Status.Ended == nil || vm.Status.Generation < 2 {
		return 0
	}
	const pause = 5 * time.Second
	return max(0, pause-now.Sub(vm.Status.Ended.Time.Time))
}

func (c *Controller) do(ctx context.Context, step Step, vm *api.VirtualMachine, pod *corev1.Pod) error {
	switch step.Act {
	case Raise:
		return c.raise(ctx, vm)
	case Claim:
		return c.claim(ctx, vm)
	case Conclude:
		return c.conclude(ctx, vm, pod, step)
	case Release:
		return c.release(ctx, pod)
	case Evict:
		return client.IgnoreNotFound(c.Client.Delete(ctx, pod))
	case PowerOff:
		return c.tell(ctx, vm, pod, c.powerOff(pod, step))
	case CatchUp:
		return c.catchUp(ctx, vm)
	case CatchUpMove:
		return c.catchUpMove(ctx, vm, c.view.found(string(vm.UID)), pod)
	case Forget:
		if controllerutil.RemoveFinalizer(vm, api.FinalizerVM) {
			return client.IgnoreNotFound(c.Client.Update(ctx, vm))
		}
		return nil
	}
	return c.tell(ctx, vm, pod, step)
}

// raise raises the generation. The write fails if the object is not the one that was read.
func (c *Controller) raise(ctx context.Context, vm *api.VirtualMachine) error {
	to := vm.DeepCopy()
	to.Status.Generation = vm.Status.Next()
	to.Status.Raised, to.Status.Phase, to.Status.ObservedGeneration = to.Status.Generation, api.PhasePending, vm.Generation
	if !vm.Spec.Local() { // a VM with a volume on its sled stays there
		to.Status.Sled = ""
	}
	id, err := api.PropolisID(vm.UID, to.Status.Generation)
	if err != nil {
		return err
	}
	to.Status.PropolisID = id
	if err := c.Client.Status().Update(ctx, to); err != nil {
		return err
	}
	if to.Status.Generation > 1 { // the first one is no news
		c.Events.Eventf(to, nil, corev1.EventTypeNormal, "Raised", "Raise", "generation %d is to run", to.Status.Generation)
	}
	return c.claimWritten(ctx, to, "")
}

// claim creates the pod of the generation: always of the same name, so that there is one.
func (c *Controller) claim(ctx context.Context, vm *api.VirtualMachine) error {
	pod, err := podOf(vm)
	if err != nil {
		return err
	}
	return c.create(ctx, vm, pod)
}

// claimWritten is claim, of a VM as it was written just now, for a sled, or for whichever is chosen. That the write
// was taken, which fails if the VM is another one than was read, says what create reads for.
func (c *Controller) claimWritten(ctx context.Context, vm *api.VirtualMachine, sled string) error {
	pod, err := podOf(vm)
	if err != nil {
		return err
	}
	pod.Spec.NodeName = sled
	return c.put(ctx, vm, pod)
}

// create creates a pod, unless the VM is another one by now than that which was read: a cache that
// begins may be behind, and a pod of an earlier generation would be run by a sled that has not had it.
func (c *Controller) create(ctx context.Context, vm *api.VirtualMachine, pod *corev1.Pod) error {
	var now api.VirtualMachine
	if err := c.Live.Get(ctx, client.ObjectKeyFromObject(vm), &now); err != nil {
		return err
	}
	if now.UID != vm.UID || now.Status.Generation != vm.Status.Generation || endedOf(&now) != endedOf(vm) || !equality.Semantic.DeepEqual(now.Status.Moving, vm.Status.Moving) {
		return fmt.Errorf("pod %s is not created: VM %s has changed since it was read", pod.Name, vm.Name)
	}
	return c.put(ctx, vm, pod)
}

// put writes a pod, if there is none of its name.
func (c *Controller) put(ctx context.Context, vm *api.VirtualMachine, pod *corev1.Pod) error {
	if err := c.Client.Create(ctx, pod); err != nil && !apierrors.IsAlreadyExists(err) {
		c.Events.Eventf(vm, nil, corev1.EventTypeWarning, "NotClaimed", "Claim", "pod %s: %v", pod.Name, err)
		return fmt.Errorf("create pod %s: %w", pod.Name, err)
	}
	return nil
}

// conclude writes down the end of a generation. A sled by whose silence it is proven is
// tainted before, so that the next generation is not placed on it.
func (c *Controller) conclude(ctx context.Context, vm *api.VirtualMachine, pod *corev1.Pod, step Step) error {
	if pod != nil && step.Proof != fence.Confirmed && step.Proof != fence.NeverRan {
		if err := c.taint(ctx, pod.Spec.NodeName); err != nil {
			return err
		}
	}
	to := vm.DeepCopy()
	to.Status.Ended = &api.Ended{Generation: vm.Status.Generation, Proof: string(step.Proof), Time: metav1.Now()}
	if step.Proof == fence.Stated {
		to.Status.Ended.By, _ = c.lost(ctx, pod.Spec.NodeName)
		step.Reason += ", by " + to.Status.Ended.By
	}
	to.Status.Phase = api.PhaseStopped
	meta.SetStatusCondition(&to.Status.Conditions, metav1.Condition{
		Type: api.ConditionRunning, Status: metav1.ConditionFalse, Reason: "Ended", Message: step.Reason, ObservedGeneration: vm.Generation,
	})
	if pod != nil && pod.Status.Reason == api.ReasonRefused {
		meta.SetStatusCondition(&to.Status.Conditions, metav1.Condition{
			Type: api.ConditionAgreed, Status: metav1.ConditionFalse, Reason: api.ReasonRefused, Message: pod.Status.Message, ObservedGeneration: vm.Generation,
		})
	}
	if err := c.Client.Status().Update(ctx, to); err != nil {
		return err
	}
	c.Events.Eventf(to, nil, corev1.EventTypeNormal, "Ended", "Conclude", "generation %d has ended: %s", vm.Status.Generation, step.Reason)
	return nil
}

// taint keeps new pods off a sled until it renews its lease again.
func (c *Controller) taint(ctx context.Context, sled string) error {
	var node corev1.Node
	if err := c.Client.Get(ctx, client.ObjectKey{Name: sled}, &node); err != nil {
		return client.IgnoreNotFound(err)
	}
	for _, t := range node.Spec.Taints {
		if t.Key == api.TaintFenced {
			return nil
		}
	}
	to := node.DeepCopy()
	to.Spec.Taints = append(to.Spec.Taints, corev1.Taint{Key: api.TaintFenced, Effect: corev1.TaintEffectNoSchedule})
	return c.Client.Patch(ctx, to, client.MergeFromWithOptions(&node, client.MergeFromWithOptimisticLock{}))
}

// release lets the pod of a generation go that has ended.
func (c *Controller) release(ctx context.Context, pod *corev1.Pod) error {
	if controllerutil.ContainsFinalizer(pod, api.FinalizerRun) {
		to := pod.DeepCopy()
		controllerutil.RemoveFinalizer(to, api.FinalizerRun)
		if err := c.Client.Patch(ctx, to, client.MergeFromWithOptions(pod, client.MergeFromWithOptimisticLock{})); err != nil {
			return client.IgnoreNotFound(err)
		}
		pod = to
	}
	uid := pod.UID
	return client.IgnoreNotFound(c.Client.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &uid}))
}

// catchUp takes over a generation that the store has forgotten: the one before it has ended,
// or it would not have been started.
func (c *Controller) catchUp(ctx context.Context, vm *api.VirtualMachine) error {
	found := c.view.found(string(vm.UID))
	to := vm.DeepCopy()
	to.Status.Generation, to.Status.Sled = found.Generation, found.Sled
	to.Status.Raised = max(to.Status.Raised, found.Generation)
	to.Status.Ended = &api.Ended{Generation: found.Generation - 1, Proof: string(fence.Confirmed), Time: metav1.Now()}
	id, err := api.PropolisID(vm.UID, found.Generation)
	if err != nil {
		return err
	}
	to.Status.PropolisID = id
	if err := c.Client.Status().Update(ctx, to); err != nil {
		return err
	}
	c.Events.Eventf(to, nil, corev1.EventTypeWarning, "Forgotten", "CatchUp", "sled %s runs generation %d, which this store has forgotten", found.Sled, found.Generation)
	return c.claimWritten(ctx, to, found.Sled)
}

// generationOf is the one that a pod is for; 0: none.
func generationOf(pod *corev1.Pod) int64 {
	n, err := strconv.ParseInt(pod.Annotations[api.AnnotationRun], 10, 64)
	if err != nil {
		return 0
	}
	return n
}
