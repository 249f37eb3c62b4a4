package eviction

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/sledctl/sledctl/fleet/api"
)

// Path is where the API server finds the webhook.
const Path = "/evict"

// Webhook answers the API server, which asks about each eviction of a pod. A drain that is told
// 429 asks again, until the pod is gone.
type Webhook struct {
	Client client.Client
	Live   client.Reader // past every cache: a VM that has just moved is not asked for again
	Log    *slog.Logger
}

// Handle is part of admission.Handler.
func (w *Webhook) Handle(ctx context.Context, r admission.Request) admission.Response {
	if r.Resource.Resource != "pods" || r.SubResource != "eviction" {
		return admission.Allowed("no eviction")
	}
	var pod corev1.Pod
	err := w.Live.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Name}, &pod)
	if apierrors.IsNotFound(err) {
		return admission.Allowed("it is gone")
	}
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("read the pod: %w", err))
	}
	name := pod.Labels[api.LabelVM]
	if name == "" || pod.Labels[api.LabelSled] == "" {
		return admission.Allowed("no run of a VM")
	}
	vm := &api.VirtualMachine{}
	err = w.Live.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, vm)
	if apierrors.IsNotFound(err) {
		vm, err = nil, nil
	}
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("read the VM: %w", err))
	}
	v := Decide(vm, &pod)
	if v.Act == Allow {
		return admission.Allowed(v.Reason)
	}
	if v.Act == Move && (r.DryRun == nil || !*r.DryRun) {
		if err := Ask(ctx, w.Client, vm); err != nil {
			return admission.Errored(http.StatusInternalServerError, fmt.Errorf("ask for a migration: %w", err))
		}
	}
	w.Log.Info("not evicted", "pod", r.Namespace+"/"+r.Name, "act", v.Act, "reason", v.Reason)
	response := admission.Denied(v.Reason)
	response.Result.Code, response.Result.Reason, response.Result.Message = http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, v.Reason
	return response
}
