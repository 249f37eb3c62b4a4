// Package node is the part of a fleet on a sled: it makes the sled known as a Node, renews its
// lease, and has the agent run what pods claim that are bound to it. It ends no VM because it
// ends itself, or because the API server does not answer.
package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/sledctl/sledctl/fleet/api"
	"github.com/sledctl/sledctl/fleet/fence"
)

// Node is the node of one sled.
type Node struct {
	Name   string // of the sled
	Client client.Client
	Sled   Sled
	Memory Memory // what survives a restart
	Guard  Guard  // nil: no VM runs under a lease here
	Log    *slog.Logger
	Now    func() time.Time

	adopted    adopted
	answered   fence.Answer          // of the loop that answers, only
	lease      *coordinationv1.Lease // as it was written last; of the loop that renews, only
	restored   chan struct{}         // Run's watch is to begin again; nil: nobody watches
	settled    settled
	room       room
	wake       chan event.GenericEvent // pods to look at
	cached     client.Reader           // what the watch of pods has; nil: nobody watches
	said       *corev1.Node            // as it was written or read last; of the loop that registers, only
	read       time.Time               // when that was
	looked     time.Time               // when the VMs were looked at before that
	lastChange lastChange
	doubt      atomic.Bool // others may have written the Node since
	renewed    time.Time   // when the lease was; of the loop that renews, only
	// arriving is held while a run is asked for that comes from another sled.
	arriving sync.Mutex
	// changed is set when something has ended here that the Node still names.
	changed atomic.Bool
	// reading is held while a claim is read and acted on. A sled that answers a census has
	// no claim in its hand that it read before.
	reading sync.RWMutex
}

// pollEvery is how often the VMs are looked at that claims are for.
const pollEvery = time.Second

// Reconcile does what Decide says about one pod.
func (n *Node) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ctx, done := context.WithTimeout(ctx, patience)
	defer done()
	if !n.adopted.Load() { // adopt before anything else
		return reconcile.Result{RequeueAfter: pollEvery / 4}, nil
	}
	if left := n.settled.stands(request.NamespacedName, n.watched(ctx, request.NamespacedName)); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	n.reading.RLock()
	defer n.reading.RUnlock()
	read, looked := n.clock(), time.Now()
	var pod corev1.Pod
	if err := n.Client.Get(ctx, request.NamespacedName, &pod); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	claim, ok := claimOf(&pod)
	if !ok || pod.Spec.NodeName != n.Name {
		return reconcile.Result{}, nil
	}
	runs, err := n.Sled.Runs(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	var here *Run
	if at := slices.IndexFunc(runs, func(r Run) bool { return r.VM == claim.VM }); at >= 0 {
		here = &runs[at]
	}
	act := Decide(claim, here)
	again, err := n.do(ctx, act, &pod, claim, here, read, looked)
	if err != nil {
		n.Log.Warn("could not "+string(act), "pod", claim.Pod, "generation", claim.Generation, "cause", err)
	}
	return reconcile.Result{RequeueAfter: again}, err
}

// watched is the version of a pod that the watch has; none if there is no watch, or it has no such pod.
func (n *Node) watched(ctx context.Context, pod types.NamespacedName) string {
	if n.cached == nil {
		return ""
	}
	var has corev1.Pod
	if err := n.cached.Get(ctx, pod, &has); err != nil {
		return ""
	}
	return has.ResourceVersion
}

// claimOf reads a pod; false: it is no run of a VM.
func claimOf(pod *corev1.Pod) (Claim, bool) {
	generation, err := strconv.ParseInt(pod.Annotations[api.AnnotationRun], 10, 64)
	vm, bad := api.InstanceID(types.UID(pod.Annotations[api.AnnotationVM]))
	if err != nil || bad != nil || generation < 1 {
		return Claim{}, false
	}
	c := Claim{
		Pod: pod.Namespace + "/" + pod.Name, VM: vm, Generation: generation,
		Deleting: pod.DeletionTimestamp != nil,
		Ended:    api.HasEnded(pod),
	}
	if from := pod.Annotations[api.AnnotationFrom]; from != "" {
		id, err := api.MigrationID(types.UID(vm), generation)
		if err != nil {
			return Claim{}, false
		}
		c.From = Origin{Migration: id, Address: from}
	}
	for _, condition := range pod.Status.Conditions {
		c.Arrived = c.Arrived || condition.Type == api.ConditionArrived && condition.Status == corev1.ConditionTrue
	}
	return c, true
}

// do does one act about a claim that was read at a time of the guard's clock, and whose VM was looked at after
// another one. It says when to look again; 0: when the pod changes.
func (n *Node) do(ctx context.Context, act Act, pod *corev1.Pod, c Claim, here *Run, read int64, looked time.Time) (time.Duration, error) {
	switch act {
	case Start:
		return pollEvery, n.start(ctx, pod, c, read)
	case Arrive:
		return pollEvery / 4, n.arrive(ctx, pod, c, read)
	case Welcome:
		_, err := n.report(ctx, pod, here, api.ConditionArrived)
		return pollEvery, err
	case Refuse:
		return 0, n.finish(ctx, pod, true, api.ReasonStayed, fmt.Sprintf("generation %d of the VM is on this sled", here.Generation))
	case Report:
		now, err := n.report(ctx, pod, here)
		switch {
		case here.Moves == Arriving:
			return pollEvery / 4, err
		case err != nil || !said(now, here):
			return pollEvery, err
		}
		if claim, ok := claimOf(now); !ok || claim != c { // another has written it meanwhile
			return pollEvery, nil
		}
		return n.settle(now, *here, looked), nil
	case Stop:
		return pollEvery, n.Sled.Stop(ctx, *here)
	case Clear:
		return pollEvery, n.Sled.Remove(ctx, *here)
	case Remove:
		failed := here.State == "failed"
		if err := n.Sled.Remove(ctx, *here); err != nil {
			return 0, err
		}
		return 0, n.finish(ctx, pod, failed, api.ReasonEnded, "the VM was "+here.State)
	case Forgone:
		return 0, n.finish(ctx, pod, false, api.ReasonNever, "it was deleted before it was started here, or nothing of it is left")
	case Ahead:
		return 10 * pollEvery, n.condition(ctx, pod, api.ConditionAhead, corev1.ConditionTrue, "HigherGeneration", strconv.FormatInt(here.Generation, 10))
	}
	return 0, nil
}

// clock is the guard's, if there is one.
func (n *Node) clock() int64 {
	if n.Guard == nil {
		return 0
	}
	return n.Guard.Clock()
}

// start has a run started whose claim was read at a time of the guard's clock.
func (n *Node) start(ctx context.Context, pod *corev1.Pod, c Claim, read int64) error {
	run, err := c.run()
	if err != nil {
		return err
	}
	err = n.under(ctx, pod, run, read, func(ctx context.Context, document json.RawMessage) error { return n.Sled.Start(ctx, run, document) })
	if passed := new(PassedError); errors.As(err, &passed) {
		fate, err := n.Sled.Fate(ctx, run)
		if err != nil {
			return err
		}
		if fate.Left {
			return n.finish(ctx, pod, false, api.ReasonLeft, "another sled has it now")
		}
		return n.finish(ctx, pod, true, api.ReasonRefused, passed.Message)
	}
	if err != nil {
		return errors.Join(err, n.waits(ctx, pod, "NotStarted", err.Error()))
	}
	return nil
}

// run is the one that is claimed.
func (c Claim) run() (Run, error) {
	id, err := api.PropolisID(types.UID(c.VM), c.Generation)
	return Run{VM: c.VM, Generation: c.Generation, PropolisID: id}, err
}

// under has a run begin here, if the sleds are counted, and under the lease that its pod asks for.
func (n *Node) under(ctx context.Context, pod *corev1.Pod, run Run, read int64, begin func(context.Context, json.RawMessage) error) error {
	if open, err := n.Open(ctx); err != nil || !open {
		return errors.Join(err, n.waits(ctx, pod, "Uncounted", "the sleds are being counted: nothing is started before"))
	}
	document := json.RawMessage(pod.Annotations[api.AnnotationSpec])
	if !json.Valid(document) {
		return fmt.Errorf("annotation %s of pod %s/%s is no JSON", api.AnnotationSpec, pod.Namespace, pod.Name)
	}
	document, err := n.keyed(ctx, pod.Namespace, document)
	if err != nil {
		return err
	}
	if pod.Labels[api.LabelLease] == "true" {
		if n.Guard == nil {
			return errors.New("restart policy lease, and no guard runs on this sled")
		}
		left, err := n.Guard.Watch(ctx, run, read)
		if err != nil {
			return fmt.Errorf("have the guard watch it: %w", err)
		}
		var done context.CancelFunc
		ctx, done = context.WithTimeout(ctx, left)
		defer done()
	}
	if err := begin(ctx, document); err != nil {
		return err
	}
	n.Log.Info("began", "vm", run.VM, "generation", run.Generation, "propolis", run.PropolisID)
	return nil
}

// report tells the state of a VM, and what is true of it besides. It returns the pod as it is then.
func (n *Node) report(ctx context.Context, pod *corev1.Pod, here *Run, besides ...corev1.PodConditionType) (now *corev1.Pod, err error) {
	to := pod.DeepCopy()
	ready := corev1.ConditionFalse
	if here.State == stateRunning {
		ready = corev1.ConditionTrue
		to.Status.Phase = corev1.PodRunning
		if to.Status.StartTime == nil {
			now := metav1.NewTime(n.Now())
			to.Status.StartTime = &now
		}
	}
	n.set(to, api.ConditionStarted, corev1.ConditionTrue, "Started", "")
	for _, what := range besides {
		n.set(to, what, corev1.ConditionTrue, "Reported", "")
	}
	if err := n.address(ctx, to, here); err != nil {
		return nil, err
	}
	n.set(to, corev1.PodReady, ready, "", "")
	n.set(to, api.ConditionVM, ready, here.State, "")
	return to, n.write(ctx, pod, to)
}

// finish tells that a run has ended here: the sled takes the generation no second time.
func (n *Node) finish(ctx context.Context, pod *corev1.Pod, failed bool, reason, message string) error {
	to := pod.DeepCopy()
	to.Status.Phase = corev1.PodSucceeded
	if failed {
		to.Status.Phase = corev1.PodFailed
	}
	to.Status.Reason, to.Status.Message = reason, message
	n.set(to, corev1.PodReady, corev1.ConditionFalse, reason, "")
	n.set(to, api.ConditionVM, corev1.ConditionFalse, reason, message)
	n.changed.Store(true)
	n.lastChange.note("")
	return n.write(ctx, pod, to)
}

// waits reports the reason for which a VM does not run yet.
func (n *Node) waits(ctx context.Context, pod *corev1.Pod, reason, message string) error {
	return n.condition(ctx, pod, api.ConditionVM, corev1.ConditionFalse, reason, message)
}

func (n *Node) condition(ctx context.Context, pod *corev1.Pod, what corev1.PodConditionType, is corev1.ConditionStatus, reason, message string) error {
	to := pod.DeepCopy()
	n.set(to, what, is, reason, message)
	return n.write(ctx, pod, to)
}

func (n *Node) set(pod *corev1.Pod, what corev1.PodConditionType, is corev1.ConditionStatus, reason, message string) {
	c := corev1.PodCondition{Type: what, Status: is, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(n.Now().Truncate(time.Second))}
	at := slices.IndexFunc(pod.Status.Conditions, func(old corev1.PodCondition) bool { return old.Type == what })
	if at < 0 {
		pod.Status.Conditions = append(pod.Status.Conditions, c)
		return
	}
	if pod.Status.Conditions[at].Status == is {
		c.LastTransitionTime = pod.Status.Conditions[at].LastTransitionTime
	}
	pod.Status.Conditions[at] = c
}

// write writes the status of a pod if it is another one.
func (n *Node) write(ctx context.Context, from, to *corev1.Pod) error {
	patch := client.StrategicMergeFrom(from)
	data, err := patch.Data(to)
	if err != nil || string(data) == "{}" {
		return err
	}
	return n.Client.Status().Patch(ctx, to, patch)
}
