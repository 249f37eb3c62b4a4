package controller

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/sledctl/sledctl/fleet/api"
	"github.com/sledctl/sledctl/fleet/bmc"
	"github.com/sledctl/sledctl/fleet/fence"
)

// Powers reconciles SledBMCs: it reads the power of each sled, and has one powered off by whose
// end that of a run is proven. It powers none on.
type Powers struct {
	*Controller
	After time.Duration // how long a sled is silent before it is powered off
	Open  func(bmc.Config) (bmc.BMC, error)
}

const (
	bmcAnswers = 20 * time.Second // how long a BMC has for all that it is asked at once
	bmcIsAsked = time.Minute      // how often a BMC is asked whose sled is not suspected
)

// Reconcile asks one BMC.
func (p *Powers) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var o api.SledBMC
	if err := p.Client.Get(ctx, request.NamespacedName, &o); err != nil {
		if apierrors.IsNotFound(err) {
			p.suspects.say(request.Name, "there is no SledBMC of that name")
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, err
	}
	to := o.DeepCopy()
	wanted, err := p.ask(ctx, to)
	answers := metav1.Condition{Type: api.ConditionAnswers, Status: metav1.ConditionTrue, Reason: "Answers", ObservedGeneration: o.Generation}
	if err != nil {
		answers.Status, answers.Reason, answers.Message = metav1.ConditionFalse, reasonOf(err), plain(err)
		p.suspects.say(o.Name, "its BMC: "+answers.Message)
	}
	meta.SetStatusCondition(&to.Status.Conditions, answers)
	again := reconcile.Result{RequeueAfter: bmcIsAsked}
	if wanted {
		again.RequeueAfter = againAfter
	}
	if equality.Semantic.DeepEqual(o.Status, to.Status) {
		return again, nil
	}
	err = p.Client.Status().Update(ctx, to)
	if apierrors.IsConflict(err) { // what was read is known, and is written next time
		err = nil
	}
	return again, client.IgnoreNotFound(err)
}

// ask reads the power of a sled and, if that is to prove an end and the sled is on, has it powered off.
func (p *Powers) ask(ctx context.Context, o *api.SledBMC) (wanted bool, err error) {
	ctx, done := context.WithTimeout(ctx, bmcAnswers)
	defer done()
	begun, wanted := p.suspects.asks(o.Name)
	asked := p.suspects.now()
	b, err := p.open(ctx, o)
	var r bmc.Report
	if err == nil {
		r, err = b.Power(ctx)
	}
	if err != nil {
		r = bmc.Report{}
	}
	o.Status.Power = string(r.State)
	p.suspects.answered(o.Name, begun, asked, r.State == bmc.Off)
	switch {
	case err != nil || !wanted:
		return wanted, err
	case r.State != bmc.On:
		p.suspects.say(o.Name, "")
		return wanted, nil
	}
	return wanted, p.cut(ctx, o, b)
}

// cut has a sled powered off that is on, if nothing is against it.
func (p *Powers) cut(ctx context.Context, o *api.SledBMC, b bmc.BMC) error {
	why, err := p.spares(ctx, o)
	if why != "" {
		p.suspects.say(o.Name, why)
	}
	if err != nil || why != "" || !p.suspects.cuts(o.Name) {
		return err
	}
	now := metav1.Now()
	o.Status.PoweredOff = &now
	p.suspects.say(o.Name, "it was asked to power it off")
	p.Log.Warn("a sled is powered off, so that its VMs can be started elsewhere", "sled", o.Name)
	p.Events.Eventf(o, nil, corev1.EventTypeWarning, "PowerOff", "PowerOff", "sled %s does not answer: its BMC is asked to power it off", o.Name)
	return b.PowerOff(ctx)
}

// open is the BMC of an object, with what its Secret has.
func (p *Powers) open(ctx context.Context, o *api.SledBMC) (bmc.BMC, error) {
	var secret corev1.Secret
	if err := p.Live.Get(ctx, client.ObjectKey{Namespace: api.BMCNamespace, Name: o.Spec.Secret}, &secret); err != nil {
		return nil, &bmc.InputError{Field: "secret", Problem: err.Error()}
	}
	var all api.SledBMCList
	if err := p.Client.List(ctx, &all); err != nil {
		return nil, err
	}
	for _, other := range all.Items {
		if other.Name != o.Name && other.Spec.Address == o.Spec.Address && other.Spec.System == o.Spec.System {
			return nil, &bmc.InputError{Field: "address", Problem: fmt.Sprintf("it is that of SledBMC %s, too: one of them is of another sled", other.Name)}
		}
	}
	return p.Open(bmc.Config{
		Protocol: bmc.Protocol(o.Spec.Protocol), Address: o.Spec.Address, System: o.Spec.System, UUID: o.Spec.UUID, Fingerprint: o.Spec.Fingerprint,
		Username: string(secret.Data[api.SecretUsername]), Password: string(secret.Data[api.SecretPassword]), CA: secret.Data[api.SecretCA],
	})
}

// spares is why a sled is not powered off now, although that would prove an end; empty: it is.
func (p *Powers) spares(ctx context.Context, o *api.SledBMC) (string, error) {
	if why := p.view.brake(o.Name, p.Terms.Fence); why != "" {
		return why, nil
	}
	if p.view.silent(o.Name) < p.After {
		return fmt.Sprintf("it is powered off once it was silent for %v", p.After), nil
	}
	if o.Spec.Held == api.HeldEnd {
		return "", nil
	}
	var pods corev1.PodList
	if err := p.Client.List(ctx, &pods, client.HasLabels{api.LabelSled}); err != nil {
		return "", err
	}
	unclaimed := p.view.reported(o.Name)
	for _, pod := range pods.Items {
		if pod.Spec.NodeName != o.Name {
			continue
		}
		delete(unclaimed, pod.Annotations[api.AnnotationVM])
		var vm api.VirtualMachine
		err := p.Client.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: pod.Labels[api.LabelVM]}, &vm)
		if err != nil && !apierrors.IsNotFound(err) {
			return "", err
		}
		if !api.HasEnded(&pod) && runOf(&vm, &pod).Effective() == fence.Hold {
			return fmt.Sprintf("VM %s/%s, whose restart is hold, is on it too", pod.Namespace, pod.Labels[api.LabelVM]), nil
		}
	}
	if len(unclaimed) > 0 {
		return fmt.Sprintf("it has reported %d VMs which no pod claims", len(unclaimed)), nil
	}
	return "", nil
}

// reasonOf is one word for why a BMC does not answer.
func reasonOf(err error) string {
	switch {
	case errors.As(err, new(*bmc.InputError)):
		return "Invalid"
	case errors.As(err, new(*bmc.MistakenError)):
		return "OtherSled"
	}
	return "Fails"
}

// plain is an error without the number of a port, which is another one each time.
func plain(err error) string {
	if op := new(net.OpError); errors.As(err, &op) {
		return fmt.Sprintf("%s: %v", op.Op, op.Err)
	}
	return err.Error()
}
