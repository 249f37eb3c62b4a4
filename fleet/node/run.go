package node

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/sledctl/sledctl/fleet/reach"
)

// Pace is how often a lease is renewed, and how long it holds.
type Pace struct{ Renew, Fence time.Duration }

// untilItAnswers is how long a node waits for the API server when it starts: it ends no VM, and
// does nothing else either.
const untilItAnswers = 365 * 24 * time.Hour

// mapper knows the kinds that a node deals with, so that nothing is asked of an API server that
// may not answer when the node starts.
func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	m.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	m.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	m.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	m.Add(coordinationv1.SchemeGroupVersion.WithKind("Lease"), meta.RESTScopeNamespace)
	return m
}

// errRestored ends a watch of pods that began in a store which is no more.
var errRestored = errors.New("the store was restored")

// Run is the node at an API server until the context ends. It reads from the server itself:
// only what wakes it goes by a watch.
func (n *Node) Run(ctx context.Context, c *rest.Config, s *runtime.Scheme, pace Pace) error {
	c = reach.Patiently(c)
	kinds := mapper()
	h, err := rest.HTTPClientFor(c) // one connection for all that the sled asks for
	if err != nil {
		return err
	}
	live, err := client.New(c, client.Options{Scheme: s, Mapper: kinds, HTTPClient: h})
	if err != nil {
		return err
	}
	n.Client, n.restored, n.wake = live, make(chan struct{}, 1), make(chan event.GenericEvent)
	ctx, stop := context.WithCancel(ctx)
	var alive sync.WaitGroup
	defer alive.Wait()
	defer stop()
	// By itself, so that the lease is renewed while a watch ends and another one begins.
	alive.Go(func() { n.Live(ctx, pace.Renew, pace.Fence) })
	for {
		if err := n.watch(ctx, c, h, s, kinds); !errors.Is(err, errRestored) {
			return err
		}
		n.Log.Warn("the store was restored: the pods of the sled are read again")
	}
}

// watch deals with the pods of the sled until the context ends, or the store is restored: its
// versions then begin again at lower ones, and a watch that goes on would hear of nothing before they are where they were.
func (n *Node) watch(ctx context.Context, c *rest.Config, h *http.Client, s *runtime.Scheme, kinds meta.RESTMapper) error {
	m, err := ctrl.NewManager(c, ctrl.Options{
		Scheme: s, Metrics: metricsserver.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return kinds, nil },
		Controller:     config.Controller{CacheSyncTimeout: untilItAnswers},
		NewClient:      func(*rest.Config, client.Options) (client.Client, error) { return n.Client, nil },
		Cache: cache.Options{HTTPClient: h, ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}: {Field: fields.OneTermEqualSelector("spec.nodeName", n.Name)},
		}},
	})
	if err != nil {
		return err
	}
	if err := ctrl.NewControllerManagedBy(m).For(&corev1.Pod{}).WithOptions(Options()).
		WatchesRawSource(source.Channel(n.wake, &handler.EnqueueRequestForObject{})).Complete(n); err != nil {
		return err
	}
	n.cached = m.GetCache()
	n.settled.clear()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		select {
		case <-n.restored:
			stop(errRestored)
		case <-ctx.Done():
		}
	}()
	err = m.Start(ctx)
	if errors.Is(context.Cause(ctx), errRestored) {
		return errRestored
	}
	return err
}
