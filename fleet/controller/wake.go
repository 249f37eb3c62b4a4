package controller

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/sledctl/sledctl/fleet/api"
)

// wakes has VMs decided again when the loop of beats has read something about them. The API server sends no event
// when a sled falls silent, nor when a sled reports a run that the store has forgotten.
type wakes struct {
	client client.Reader // the cache
	fence  time.Duration
	queue  atomic.Pointer[workqueue.TypedRateLimitingInterface[reconcile.Request]] // of the reconciler; nil before it has begun

	// Of the loop only.
	silent  map[string]bool  // the sleds that were silent
	runs    map[string]Found // what was reported
	unknown map[string]bool  // the VMs of which a run is reported that no pod is known of
}

// into is a source of events that only hands over the queue of the reconciler. All VMs are decided once when it
// begins: what is found before that is missed by none.
func (w *wakes) into(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	w.queue.Store(&queue)
	return nil
}

// read wakes the VMs of the sleds that have fallen silent, and those of which a sled reports a generation without
// a pod. The latter are woken by each read until there is one: the cache may be behind.
func (w *wakes) read(ctx context.Context, v *view) error {
	silent, runs := v.heardOf(w.fence)
	var errs []error
	for sled := range silent {
		if !w.silent[sled] {
			errs = append(errs, w.all(ctx, client.MatchingFields{bySled: sled}))
		}
	}
	if w.unknown == nil {
		w.unknown = map[string]bool{}
	}
	for vm, found := range runs {
		if was := w.runs[vm]; was != found {
			w.unknown[vm] = true
		}
	}
	for vm := range w.unknown {
		claimed, err := w.claimed(ctx, vm, runs[vm].Generation)
		if claimed {
			delete(w.unknown, vm)
			continue
		}
		errs = append(errs, err, w.all(ctx, client.MatchingFields{byVM: vm}))
	}
	if err := errors.Join(errs...); err != nil {
		return err // what was not woken is woken by the next read
	}
	w.silent, w.runs = silent, runs
	return nil
}

// claimed reports whether there is a pod of a generation of a VM, or nothing is reported of the VM any longer.
func (w *wakes) claimed(ctx context.Context, vm string, generation int64) (bool, error) {
	if generation == 0 {
		return true, nil
	}
	var pods corev1.PodList
	if err := w.client.List(ctx, &pods, client.MatchingFields{byVM: vm}); err != nil {
		return false, err
	}
	for i := range pods.Items {
		if generationOf(&pods.Items[i]) == generation {
			return true, nil
		}
	}
	return false, nil
}

// all wakes the VMs of some pods.
func (w *wakes) all(ctx context.Context, those client.ListOption) error {
	queue := w.queue.Load()
	if queue == nil {
		return nil
	}
	var pods corev1.PodList
	if err := w.client.List(ctx, &pods, those); err != nil {
		return err
	}
	for i := range pods.Items {
		if vm := pods.Items[i].Labels[api.LabelVM]; vm != "" {
			(*queue).Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: pods.Items[i].Namespace, Name: vm}})
		}
	}
	return nil
}
