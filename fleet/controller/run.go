package controller

import (
	"context"
	"errors"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/sledctl/sledctl/fleet/api"
	"github.com/sledctl/sledctl/fleet/bmc"
	"github.com/sledctl/sledctl/fleet/eviction"
	"github.com/sledctl/sledctl/fleet/fence"
	"github.com/sledctl/sledctl/fleet/node"
	"github.com/sledctl/sledctl/fleet/reach"
)

// Options are those of a controller.
type Options struct {
	Terms   fence.Terms
	Every   time.Duration // how often it reads leases
	After   time.Duration // how long a sled is silent before it is powered off
	Elect   bool          // one of several leads
	Metrics string        // where Prometheus reads; 0: nowhere
	Health  string        // where probes ask; 0: nowhere
	Webhook Webhook
}

// Webhook is where the API server asks about evictions.
type Webhook struct {
	Certs string // the directory of tls.crt and tls.key; empty: it is not served
	Host  string // empty: every address
	Port  int
}

// asksAtOnce is how many BMCs are asked at once: some of them take seconds, and one that is gone
// takes all that it has.
const asksAtOnce = 16

// vmsAtOnce is how many VMs are reconciled at once: nearly all of the time they wait for the API server.
const vmsAtOnce = 32

// byVM is the index of pods by the UID of their VM: a look at one VM is not one at all pods.
const byVM = "vm"

// bySled is the index of pods by their sled.
const bySled = "sled"

func sledOf(pod client.Object) []string {
	if p, is := pod.(*corev1.Pod); is && p.Spec.NodeName != "" {
		return []string{p.Spec.NodeName}
	}
	return nil
}

func vmOf(pod client.Object) []string {
	if vm := pod.GetAnnotations()[api.AnnotationVM]; vm != "" {
		return []string{vm}
	}
	return nil
}

// Run is a controller at an API server until the context ends.
func Run(ctx context.Context, c *rest.Config, s *runtime.Scheme, o Options, log *slog.Logger) error {
	m, err := ctrl.NewManager(reach.Patiently(c), ctrl.Options{
		WebhookServer: webhook.NewServer(webhook.Options{Host: o.Webhook.Host, Port: o.Webhook.Port, CertDir: o.Webhook.Certs}),
		Scheme:        s, LeaderElection: o.Elect, LeaderElectionID: "sledctl-fleet-leader", LeaderElectionNamespace: node.BeatNamespace,
		LeaderElectionReleaseOnCancel: false, // what is under way may still be written
		Metrics:                       metricsserver.Options{BindAddress: o.Metrics}, HealthProbeBindAddress: o.Health,
	})
	if err != nil {
		return err
	}
	if err := errors.Join(m.AddHealthzCheck("ping", healthz.Ping), m.AddReadyzCheck("ping", healthz.Ping)); err != nil {
		return err
	}
	one, beats := New(m.GetClient(), m.GetAPIReader(), m.GetEventRecorder("sledctl-fleet"), o.Terms, o.Every, log)
	if err := errors.Join(m.Add(beats), one.figures.register(metrics.Registry)); err != nil {
		return err
	}
	if err := errors.Join(m.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, byVM, vmOf), m.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, bySled, sledOf)); err != nil {
		return err
	}
	if err := ctrl.NewControllerManagedBy(m).For(&api.VirtualMachine{}).Owns(&corev1.Pod{}).
		WatchesRawSource(source.Func(beats.wakes.into)).WithOptions(ctrlcontroller.Options{MaxConcurrentReconciles: vmsAtOnce}).Complete(one); err != nil {
		return err
	}
	if err := ctrl.NewControllerManagedBy(m).For(&api.VirtualMachineMigration{}).Complete(&Migrations{Controller: one}); err != nil {
		return err
	}
	if err := ctrl.NewControllerManagedBy(m).For(&api.SledMaintenance{}).Complete(&Maintenances{Controller: one}); err != nil {
		return err
	}
	powers := &Powers{Controller: one, After: o.After, Open: bmc.Open}
	if err := ctrl.NewControllerManagedBy(m).For(&api.SledBMC{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Channel(one.suspects.wake, &handler.TypedEnqueueRequestForObject[*api.SledBMC]{})).
		WithOptions(ctrlcontroller.Options{MaxConcurrentReconciles: asksAtOnce}).Complete(powers); err != nil {
		return err
	}
	if o.Webhook.Certs != "" {
		hook := &eviction.Webhook{Client: m.GetClient(), Live: m.GetAPIReader(), Log: log}
		m.GetWebhookServer().Register(eviction.Path, &webhook.Admission{Handler: hook})
	}
	return m.Start(ctx)
}
