package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sledctl/sledctl/fleet/api"
	"github.com/sledctl/sledctl/fleet/fence"
)

// maxRuns is how many pods a sled takes: its VNICs and zones set the limit before.
const maxRuns = 1000

// Register makes the sled known, or writes what has changed of it. It is not Ready before
// every VM on it is adopted.
func (n *Node) Register(ctx context.Context) error {
	var have corev1.Node
	err := n.Client.Get(ctx, client.ObjectKey{Name: n.Name}, &have)
	if apierrors.IsNotFound(err) {
		have = corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: map[string]string{
			api.LabelSled: "true", corev1.LabelHostname: n.Name, corev1.LabelOSStable: "illumos", corev1.LabelArchStable: "amd64",
		}}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: api.TaintSled, Effect: corev1.TaintEffectNoSchedule}}}}
		err = n.Client.Create(ctx, &have)
	}
	if err != nil {
		return fmt.Errorf("register the sled: %w", err)
	}
	runs, err := n.Sled.Runs(ctx)
	var room Capacity
	if err == nil {
		room, err = n.Sled.Capacity(ctx)
	}
	to := have.DeepCopy()
	if err != nil {
		n.ready(to, corev1.ConditionFalse, "AgentSilent", err.Error())
		return errors.Join(err, n.Client.Status().Patch(ctx, to, client.StrategicMergeFrom(&have)))
	}
	n.fill(to, room)
	if err := n.Client.Status().Patch(ctx, to, client.StrategicMergeFrom(&have)); err != nil {
		return fmt.Errorf("write the status of the sled: %w", err)
	}
	return n.annotate(ctx, to, map[string]string{api.AnnotationRuns: runsText(runs), api.AnnotationAgent: apiVersion})
}

// annotate sets annotations of the sled's Node that differ.
func (n *Node) annotate(ctx context.Context, node *corev1.Node, values map[string]string) error {
	to := node.DeepCopy()
	if to.Annotations == nil {
		to.Annotations = map[string]string{}
	}
	maps.Copy(to.Annotations, values)
	if maps.Equal(node.Annotations, to.Annotations) {
		return nil
	}
	return n.Client.Patch(ctx, to, client.MergeFrom(node))
}

// runsText is what a sled runs, in few letters: VM=GENERATION,VM=GENERATION. One that is not
// here yet, since it comes from another sled, is VM>GENERATION.
func runsText(runs []Run) string {
	var all []string
	for _, r := range Unclaimed(nil, runs) { // in order
		switch {
		case r.coming():
			all = append(all, fmt.Sprintf("%s>%d", r.VM, r.Generation))
		case !r.over():
			all = append(all, fmt.Sprintf("%s=%d", r.VM, r.Generation))
		}
	}
	return strings.Join(all, ",")
}

// fill sets what a sled is and can hold.
func (n *Node) fill(node *corev1.Node, c Capacity) {
	all := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(int64(c.CPUs), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(int64(c.Memory), resource.BinarySI),
		corev1.ResourcePods:   *resource.NewQuantity(maxRuns, resource.DecimalSI),
	}
	for pool, free := range c.Pools {
		all[corev1.ResourceName(api.Group+"/pool-"+pool)] = *resource.NewQuantity(int64(free), resource.BinarySI)
	}
	node.Status.Capacity, node.Status.Allocatable = all, all
	node.Status.NodeInfo.OperatingSystem, node.Status.NodeInfo.Architecture = "illumos", "amd64"
	n.ready(node, corev1.ConditionTrue, "AgentAnswers", "the sled's agent answers")
}

// ready sets whether VMs can be placed on the sled.
func (n *Node) ready(node *corev1.Node, is corev1.ConditionStatus, reason, message string) {
	now := metav1.NewTime(n.Now())
	c := corev1.NodeCondition{Type: corev1.NodeReady, Status: is, Reason: reason, Message: message, LastHeartbeatTime: now, LastTransitionTime: now}
	for i, old := range node.Status.Conditions {
		if old.Type == corev1.NodeReady {
			if old.Status == is {
				c.LastTransitionTime = old.LastTransitionTime
			}
			node.Status.Conditions[i] = c
			return
		}
	}
	node.Status.Conditions = append(node.Status.Conditions, c)
}

// leaseNamespace is where Kubernetes keeps the leases of Nodes.
const leaseNamespace = "kube-node-lease"

// Renew renews the lease of the sled. Asked is when it was asked for, on the guard's clock:
// what the store takes later counts from there.
func (n *Node) Renew(ctx context.Context, holds time.Duration) error {
	var asked int64
	if n.Guard != nil {
		asked = n.Guard.Clock()
	}
	now, seconds := metav1.NewMicroTime(n.Now()), int32(holds/time.Second)
	var lease coordinationv1.Lease
	err := n.Client.Get(ctx, client.ObjectKey{Namespace: leaseNamespace, Name: n.Name}, &lease)
	switch {
	case apierrors.IsNotFound(err):
		lease = coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: leaseNamespace, Name: n.Name}}
		lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &n.Name, LeaseDurationSeconds: &seconds, RenewTime: &now}
		err = n.Client.Create(ctx, &lease)
	case err == nil:
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &n.Name, &seconds, &now
		err = n.Client.Update(ctx, &lease)
	}
	if err != nil {
		return fmt.Errorf("renew the lease of the sled: %w", err)
	}
	if n.Guard != nil {
		return n.Guard.Renewed(ctx, asked)
	}
	return nil
}

// Where the controller writes its beats.
const (
	BeatNamespace = "sledctl-system"
	BeatName      = "sledctl-fleet"
	BeatKey       = "chain"
	CountedKey    = "counted" // the last term in which enough sleds have answered
)

// Open reports whether anything may be started now: the store lacks no beat that this sled
// remembers, and enough sleds have answered the term of its last beat.
func (n *Node) Open(ctx context.Context) (bool, error) {
	chain, counted, err := n.chain(ctx)
	if err != nil || len(chain) == 0 {
		return false, err
	}
	remembered, err := n.Memory.Chain()
	return counted == chain.Last().Term && chain.Has(remembered.Last()), err
}

// chain reads the beats, and the last term in which enough sleds have answered.
func (n *Node) chain(ctx context.Context) (chain fence.Chain, counted string, err error) {
	var at corev1.ConfigMap
	if err := n.Client.Get(ctx, types.NamespacedName{Namespace: BeatNamespace, Name: BeatName}, &at); err != nil {
		return nil, "", client.IgnoreNotFound(err)
	}
	if err := json.Unmarshal([]byte(at.Data[BeatKey]), &chain); err != nil {
		return nil, "", fmt.Errorf("read the chain of beats: %w", err)
	}
	return chain, at.Data[CountedKey], nil
}

// Answer reads the chain of beats, remembers its last one, and answers its term. Before an
// answer it reports what runs, with no claim in its hand.
func (n *Node) Answer(ctx context.Context) error {
	chain, counted, err := n.chain(ctx)
	if err != nil || len(chain) == 0 {
		return err
	}
	remembered, err := n.Memory.Chain()
	if err != nil {
		return fmt.Errorf("remember the beats: %w", err)
	}
	known := n.answered.Restored
	answer := chain.Answer(remembered, n.answered, counted)
	if answer != n.answered {
		if err := n.census(ctx, answer); err != nil {
			return err
		}
		n.answered = answer
		if answer.Restored && !known {
			select {
			case n.restored <- struct{}{}:
			default: // it is known, or nobody watches
			}
		}
	}
	if answer.Restored || chain.Last() == remembered.Last() {
		return nil
	}
	return n.Memory.Remember(chain)
}

// census reports what runs, and answers.
func (n *Node) census(ctx context.Context, answer fence.Answer) error {
	n.reading.Lock()
	defer n.reading.Unlock()
	if err := n.Register(ctx); err != nil {
		return err
	}
	data, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	var node corev1.Node
	if err := n.Client.Get(ctx, client.ObjectKey{Name: n.Name}, &node); err != nil {
		return err
	}
	return n.annotate(ctx, &node, map[string]string{api.AnnotationTerm: string(data)})
}
