package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
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
	if n.isFresh() && !n.lastChange.since(n.looked) && n.Sled.Answers(ctx) == nil {
		return nil
	}
	return n.register(ctx, nil)
}

// register is Register, with further annotations that are written together with what runs.
func (n *Node) register(ctx context.Context, besides map[string]string) error {
	n.looked = time.Now()
	runs, silent := n.Sled.Runs(ctx)
	var room Capacity
	if silent == nil {
		room, silent = n.capacity(ctx)
	}
	says := map[string]string{api.AnnotationAgent: apiVersion}
	if silent == nil {
		says[api.AnnotationRuns] = runsText(runs)
		maps.Copy(says, besides)
	}
	if silent == nil && besides == nil && n.isFresh() && !n.statusDiffers(room) {
		return n.annotateKnown(ctx, says)
	}
	n.said = nil
	n.doubt.Store(false) // before it is read
	have, err := n.known(ctx, says)
	if err != nil {
		return fmt.Errorf("register the sled: %w", err)
	}
	n.read = time.Now()
	to := have.DeepCopy()
	if silent != nil {
		n.ready(to, corev1.ConditionFalse, "AgentSilent", silent.Error())
		return errors.Join(silent, n.Client.Status().Patch(ctx, to, client.StrategicMergeFrom(have)))
	}
	n.fill(to, room)
	if n.isNews(have, to) {
		if err := n.Client.Status().Patch(ctx, to, client.StrategicMergeFrom(have)); err != nil {
			return fmt.Errorf("write the status of the sled: %w", err)
		}
	}
	if err := n.annotate(ctx, to, says); err != nil {
		return err
	}
	n.said = to
	return nil
}

// readEvery is how often the Node is read that has all that is to be said, in case that another has
// changed or deleted it.
const readEvery = time.Minute

// isFresh reports whether the Node is known well enough to be compared with. When the lease was not renewed for a
// while, Kubernetes may have said since that the sled does not answer.
func (n *Node) isFresh() bool {
	return n.said != nil && !n.doubt.Load() && time.Since(n.read) < readEvery
}

// statusDiffers reports whether the status of the Node is to be written, which is known.
func (n *Node) statusDiffers(room Capacity) bool {
	to := n.said.DeepCopy()
	n.fill(to, room)
	return n.isNews(n.said, to)
}

// annotateKnown writes annotations of the Node that differ from those that are known. It does not read the Node: the
// same is written whatever it has.
func (n *Node) annotateKnown(ctx context.Context, says map[string]string) error {
	lacks := map[string]string{}
	for key, text := range says {
		if n.said.Annotations[key] != text {
			lacks[key] = text
		}
	}
	if len(lacks) == 0 {
		return nil
	}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": lacks}})
	if err != nil {
		return err
	}
	to := n.said.DeepCopy()
	n.said = nil // until it is known again
	if err := n.Client.Patch(ctx, to, client.RawPatch(types.MergePatchType, data)); err != nil {
		return fmt.Errorf("write what the sled runs: %w", err)
	}
	n.said = to
	return nil
}

// known is the sled's Node; one that says this is created, if there is none.
func (n *Node) known(ctx context.Context, says map[string]string) (*corev1.Node, error) {
	var have corev1.Node
	err := n.Client.Get(ctx, client.ObjectKey{Name: n.Name}, &have)
	if apierrors.IsNotFound(err) {
		have = corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Annotations: says, Labels: map[string]string{
			api.LabelSled: "true", corev1.LabelHostname: n.Name, corev1.LabelOSStable: "illumos", corev1.LabelArchStable: "amd64",
		}}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: api.TaintSled, Effect: corev1.TaintEffectNoSchedule}}}}
		err = n.Client.Create(ctx, &have)
	}
	return &have, err
}

// capacityEvery is how often the sled is asked for what it can hold: for that, it lists its pools.
const capacityEvery = time.Minute

// capacity is what the sled can hold, as it was said a minute ago at most.
func (n *Node) capacity(ctx context.Context) (Capacity, error) {
	n.room.Lock()
	defer n.room.Unlock()
	if n.room.asked.IsZero() || time.Since(n.room.asked) >= capacityEvery {
		now := time.Now()
		room, err := n.Sled.Capacity(ctx)
		if err != nil {
			n.room.asked = time.Time{}
			return Capacity{}, err
		}
		n.room.is, n.room.asked = room, now
	}
	return n.room.is, nil
}

// room is what a sled said that it can hold.
type room struct {
	sync.Mutex
	is    Capacity
	asked time.Time
}

// statusEvery is how often the status of the sled is written that has not changed. That the sled
// answers is what its lease says.
const statusEvery = 5 * time.Minute

// isNews reports whether a status says more than that time has passed.
func (n *Node) isNews(have, to *corev1.Node) bool {
	var last time.Time
	was := have.DeepCopy()
	for i := range was.Status.Conditions {
		for _, c := range to.Status.Conditions {
			if c.Type == was.Status.Conditions[i].Type {
				last = was.Status.Conditions[i].LastHeartbeatTime.Time
				was.Status.Conditions[i].LastHeartbeatTime = c.LastHeartbeatTime
			}
		}
	}
	since := n.Now().Sub(last)
	return since >= statusEvery || since < 0 || !equality.Semantic.DeepEqual(was.Status, to.Status)
}

// annotate sets annotations of the sled's Node that differ.
func (n *Node) annotate(ctx context.Context, node *corev1.Node, values map[string]string) error {
	was := node.DeepCopy()
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	maps.Copy(node.Annotations, values)
	if maps.Equal(was.Annotations, node.Annotations) {
		return nil
	}
	return n.Client.Patch(ctx, node, client.MergeFrom(was))
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
	err := n.renew(ctx, metav1.NewMicroTime(n.Now()), int32(holds/time.Second))
	if err != nil || time.Since(n.renewed) > holds {
		n.doubt.Store(true)
	}
	if err != nil {
		return fmt.Errorf("renew the lease of the sled: %w", err)
	}
	n.renewed = time.Now()
	if n.Guard != nil {
		return n.Guard.Renewed(ctx, asked)
	}
	return nil
}

// renew writes the lease. The one that was written last is written again, without reading it: if
// another has written it since, that fails, and it is read.
func (n *Node) renew(ctx context.Context, now metav1.MicroTime, seconds int32) error {
	spec := coordinationv1.LeaseSpec{HolderIdentity: &n.Name, LeaseDurationSeconds: &seconds, RenewTime: &now}
	if lease := n.lease; lease != nil {
		n.lease = nil
		if lease.Spec = spec; n.Client.Update(ctx, lease) == nil {
			n.lease = lease
			return nil
		}
		n.doubt.Store(true) // another has written it, or the store was restored
	}
	lease := &coordinationv1.Lease{}
	err := n.Client.Get(ctx, client.ObjectKey{Namespace: leaseNamespace, Name: n.Name}, lease)
	switch {
	case apierrors.IsNotFound(err):
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: leaseNamespace, Name: n.Name}, Spec: spec}
		err = n.Client.Create(ctx, lease)
	case err == nil:
		lease.Spec = spec
		err = n.Client.Update(ctx, lease)
	}
	if err == nil {
		n.lease = lease
	}
	return err
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
// answer it reports what runs, with no claim in its hand. Settled is whether the term is one in which
// enough sleds have answered.
func (n *Node) Answer(ctx context.Context) (settled bool, err error) {
	chain, counted, err := n.chain(ctx)
	if err != nil || len(chain) == 0 {
		return false, err
	}
	remembered, err := n.Memory.Chain()
	if err != nil {
		return false, fmt.Errorf("remember the beats: %w", err)
	}
	known := n.answered.Restored
	answer := chain.Answer(remembered, n.answered, counted)
	if answer != n.answered {
		if err := n.census(ctx, answer); err != nil {
			return false, err
		}
		n.answered = answer
		if answer.Restored && !known {
			select {
			case n.restored <- struct{}{}:
			default: // it is known, or nobody watches
			}
		}
	}
	settled = counted == chain.Last().Term && !answer.Restored
	if answer.Restored || chain.Last() == remembered.Last() {
		return settled, nil
	}
	return settled, n.Memory.Remember(chain)
}

// census reports what runs, and answers.
func (n *Node) census(ctx context.Context, answer fence.Answer) error {
	n.reading.Lock()
	defer n.reading.Unlock()
	data, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	return n.register(ctx, map[string]string{api.AnnotationTerm: string(data)})
}
