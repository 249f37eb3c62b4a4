package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sledctl/sledctl/fleet/api"
	"github.com/sledctl/sledctl/fleet/fence"
	"github.com/sledctl/sledctl/fleet/node"
)

// Beats is the loop of the leading controller: it writes a beat, and reads the leases and the
// reports of the sleds. All it reads is read from the API server itself.
type Beats struct {
	Client client.Client
	Live   client.Reader // past every cache
	Every  time.Duration
	Log    *slog.Logger
	view   *view
	wakes  *wakes
	start  time.Time
}

// NeedLeaderElection has only the leader beat.
func (*Beats) NeedLeaderElection() bool { return true }

// Start beats until the context ends.
func (b *Beats) Start(ctx context.Context) error {
	b.start = time.Now()
	b.view.mu.Lock()
	b.view.term, b.view.last, b.view.read = uuid.NewString(), fence.Beat{}, false
	b.view.mu.Unlock()
	tick := time.NewTicker(b.Every)
	defer tick.Stop()
	for {
		if err := b.once(ctx, time.Since(b.start)); err != nil && ctx.Err() == nil {
			b.Log.Warn("no beat", "cause", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// once is one beat. Now is from before anything is read.
func (b *Beats) once(ctx context.Context, now time.Duration) error {
	ctx, done := context.WithTimeout(ctx, b.view.gap/2)
	defer done()
	if err := b.beat(ctx); err != nil {
		return fmt.Errorf("write a beat: %w", err)
	}
	var leases coordinationv1.LeaseList
	if err := b.Live.List(ctx, &leases, client.InNamespace("kube-node-lease")); err != nil {
		return err
	}
	renewals := make(map[string]string, len(leases.Items))
	for _, l := range leases.Items {
		if l.Spec.RenewTime != nil {
			renewals[l.Name] = string(l.UID) + " " + l.Spec.RenewTime.UTC().Format(time.RFC3339Nano)
		}
	}
	var nodes corev1.NodeList
	if err := b.Live.List(ctx, &nodes, client.HasLabels{api.LabelSled}); err != nil {
		return err
	}
	reports := make(map[string]Report, len(nodes.Items))
	for _, n := range nodes.Items {
		r := Report{Runs: parseRuns(n.Annotations[api.AnnotationRuns]), Aside: n.Spec.Unschedulable || slices.ContainsFunc(n.Spec.Taints, isFenced)}
		_ = json.Unmarshal([]byte(n.Annotations[api.AnnotationTerm]), &r.Answer) // what cannot be read is no answer
		reports[n.Name] = r
	}
	b.view.listen(now, renewals)
	b.view.learn(reports)
	return errors.Join(b.wakes.read(ctx, b.view), b.release(ctx, nodes.Items))
}

// release takes the taint off sleds that renew their leases again.
func (b *Beats) release(ctx context.Context, nodes []corev1.Node) error {
	var errs []error
	for i := range nodes {
		n := &nodes[i]
		if !slices.ContainsFunc(n.Spec.Taints, isFenced) || !b.view.renews(n.Name) {
			continue
		}
		to := n.DeepCopy()
		to.Spec.Taints = slices.DeleteFunc(to.Spec.Taints, isFenced)
		errs = append(errs, b.Client.Patch(ctx, to, client.MergeFromWithOptions(n, client.MergeFromWithOptimisticLock{})))
	}
	return errors.Join(errs...)
}

func isFenced(t corev1.Taint) bool { return t.Key == api.TaintFenced }

// beat writes the next beat, and finds out whether the one before is still there.
func (b *Beats) beat(ctx context.Context) error {
	at := corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: node.BeatNamespace, Name: node.BeatName}}
	err := b.Live.Get(ctx, client.ObjectKeyFromObject(&at), &at)
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return err
	}
	var chain fence.Chain
	if text := at.Data[node.BeatKey]; text != "" {
		if err := json.Unmarshal([]byte(text), &chain); err != nil {
			return fmt.Errorf("read the chain: %w", err)
		}
	}
	v := b.view
	v.mu.Lock()
	if !chain.Has(v.last) {
		// Answers to a term that the snapshot may hold are none: another term begins.
		v.term, v.last, v.restored, v.silence = uuid.NewString(), fence.Beat{}, true, nil
		v.read = false
		b.Log.Error("the store was restored from a snapshot: nothing is started before every sled has reported what it runs")
	}
	next := chain.Next(v.term)
	open := v.read && len(v.uncounted) == 0
	term := v.term
	v.mu.Unlock()
	data, err := json.Marshal(next)
	if err != nil {
		return err
	}
	if at.Data == nil {
		at.Data = map[string]string{}
	}
	at.Data[node.BeatKey] = string(data)
	if open {
		at.Data[node.CountedKey] = term
	}
	if missing {
		err = b.Client.Create(ctx, &at)
	} else {
		err = b.Client.Update(ctx, &at) // fails if another controller has written meanwhile
	}
	if err != nil {
		return err
	}
	v.mu.Lock()
	v.last = next.Last()
	v.mu.Unlock()
	return nil
}
