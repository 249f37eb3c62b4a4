package node

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/sledctl/sledctl/fleet/api"
)

// settled are the pods whose VMs run as their pods say, with what was seen of each. Nothing is to be
// done about such a pod before it changes, which the watch says, or its VM does, for which one look at
// the sled is enough for all of them: neither the API server nor the agent is asked about each.
type settled struct {
	mu sync.Mutex
	by map[types.NamespacedName]settling
}

// settling is a pod that is settled.
type settling struct {
	here    Run
	version string    // of the pod, as the API server had it
	due     time.Time // when it is read again
}

// claimEvery is how often a pod is read again that is settled, in case that its watch has missed
// something.
const claimEvery = 5 * time.Minute

// keep notes what was reported, and says when to read the pod again.
func (s *settled) keep(pod *corev1.Pod, here Run) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by = map[types.NamespacedName]settling{}
	}
	again := claimEvery - time.Duration(rand.Float64()*float64(claimEvery)/2)
	s.by[client.ObjectKeyFromObject(pod)] = settling{here, pod.ResourceVersion, time.Now().Add(again)}
	return again
}

// stands is for how long a pod is still settled, if its watch has it as it was then: what woke the node
// was its own report. Else it is settled no longer, and 0 returned.
func (s *settled) stands(pod types.NamespacedName, version string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	is, known := s.by[pod]
	if left := time.Until(is.due); known && is.version == version && left > 0 {
		return left
	}
	delete(s.by, pod)
	return 0
}

// has reports whether the pod of a run is settled.
func (s *settled) has(propolis string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, is := range s.by {
		if is.here.PropolisID == propolis {
			return true
		}
	}
	return false
}

// clear forgets all: the versions of a store that was restored are given a second time.
func (s *settled) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.by = nil
}

// changed are the pods whose VMs are not as they were, of those that are settled. They are no longer.
func (s *settled) changed(runs []Run) (pods []types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for pod, was := range s.by {
		if !slices.Contains(runs, was.here) {
			pods = append(pods, pod)
			delete(s.by, pod)
		}
	}
	return pods
}

// said reports whether a pod, as it was read, has all that its node reports: that its VM runs, and where.
func said(pod *corev1.Pod, here *Run) bool {
	return here.State == stateRunning && here.Moves != Departing && pod.Status.Phase == corev1.PodRunning &&
		is(pod, api.ConditionVM) && is(pod, api.ConditionPropolis)
}

func is(pod *corev1.Pod, what corev1.PodConditionType) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == what && c.Status == corev1.ConditionTrue
	})
}

func (s *settled) none() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.by) == 0
}

// look has the pods looked at whose VMs have changed.
func (n *Node) look(ctx context.Context) error {
	if n.settled.none() {
		return nil
	}
	runs, err := n.Sled.Runs(ctx)
	if err != nil {
		return err
	}
	for _, pod := range n.settled.changed(runs) {
		wake := event.GenericEvent{Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}}
		select {
		case n.wake <- wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
