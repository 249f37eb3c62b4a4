package node

import (
	"context"
	"net/http"
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
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
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
	m.Add(coordinationv1.SchemeGroupVersion.WithKind("Lease"), meta.RESTScopeNamespace)
	return m
}

// Run is the node at an API server until the context ends. It reads from the server itself:
// only what wakes it goes by a watch.
func (n *Node) Run(ctx context.Context, c *rest.Config, s *runtime.Scheme, pace Pace) error {
	kinds := mapper()
	live, err := client.New(c, client.Options{Scheme: s, Mapper: kinds})
	if err != nil {
		return err
	}
	n.Client = live
	m, err := ctrl.NewManager(c, ctrl.Options{
		Scheme: s, Metrics: metricsserver.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return kinds, nil },
		Controller:     config.Controller{CacheSyncTimeout: untilItAnswers},
		NewClient:      func(*rest.Config, client.Options) (client.Client, error) { return live, nil },
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}: {Field: fields.OneTermEqualSelector("spec.nodeName", n.Name)},
		}},
	})
	if err != nil {
		return err
	}
	// Adopt before anything else: nothing is Ready before what runs is known.
	if err := m.Add(manager.RunnableFunc(func(ctx context.Context) error { return n.Live(ctx, pace.Renew, pace.Fence) })); err != nil {
		return err
	}
	if err := ctrl.NewControllerManagedBy(m).For(&corev1.Pod{}).WithOptions(Options()).Complete(n); err != nil {
		return err
	}
	return m.Start(ctx)
}
