package node

import (
	"context"
	"encoding/json"
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/sledctl/sledctl/fleet/api"
)

// MaxArrivals is how many VMs come to a sled at once: more of them only slow each other down.
const MaxArrivals = 2

// arrive has a run come from another sled, if few enough are coming. What the sled reports to
// be on its way counts, so that a node which was killed loses count of none.
func (n *Node) arrive(ctx context.Context, pod *corev1.Pod, c Claim, read int64) error {
	run, err := c.run()
	if err != nil {
		return err
	}
	n.arriving.Lock()
	defer n.arriving.Unlock()
	runs, err := n.Sled.Runs(ctx)
	if err != nil {
		return err
	}
	if others(runs, run) >= MaxArrivals {
		return n.waits(ctx, pod, "Waits", "other VMs are coming to this sled")
	}
	err = n.under(ctx, pod, run, read, func(ctx context.Context, document json.RawMessage) error {
		return n.Sled.Arrive(ctx, run, document, c.From)
	})
	if refused := new(RefusedError); errors.As(err, &refused) { // it may be registered
		if err := n.Sled.Remove(ctx, run); err != nil {
			return err
		}
		return n.finish(ctx, pod, true, api.ReasonStayed, refused.Message)
	}
	if passed := new(PassedError); errors.As(err, &passed) {
		fate, err := n.Sled.Fate(ctx, run)
		if err != nil {
			return err
		}
		if fate.Reason == "" {
			fate.Reason = passed.Message
		}
		return n.finish(ctx, pod, true, api.ReasonStayed, fate.Reason)
	}
	return err
}

// others counts the runs that are coming, but for one.
func others(runs []Run, but Run) (coming int) {
	for _, r := range runs {
		if r.coming() && r.PropolisID != but.PropolisID {
			coming++
		}
	}
	return coming
}

// address writes down the address of a run's Propolis, once: it stays the same.
func (n *Node) address(ctx context.Context, pod *corev1.Pod, here *Run) error {
	for _, c := range pod.Status.Conditions {
		if c.Type == api.ConditionPropolis {
			return nil
		}
	}
	if here.State != stateRunning || here.coming() {
		return nil
	}
	at, err := n.Sled.Address(ctx, *here)
	if err != nil || at == "" {
		return err
	}
	n.set(pod, api.ConditionPropolis, corev1.ConditionTrue, "Listens", at)
	return nil
}
