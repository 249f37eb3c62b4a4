package controller

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/sledctl/sledctl/fleet/api"
	"github.com/sledctl/sledctl/fleet/fence"
)

// woken is what the loop of beats has had decided again since.
func (s *story) woken() (read func() int) {
	s.t.Helper()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	s.t.Cleanup(queue.ShutDown)
	s.ok(s.beats.wakes.into(s.t.Context(), queue))
	return func() int {
		n := queue.Len()
		for range n {
			one, _ := queue.Get()
			if one.Namespace != "default" || one.Name != "web" {
				s.t.Errorf("%v is woken", one)
			}
			queue.Done(one)
		}
		return n
	}
}

// placed is a VM that runs on sled1.
func (s *story) placed(restart api.Restart) {
	s.t.Helper()
	s.create(restart)
	s.look()
	s.bind(1, "sled1")
	s.runs(1)
	s.look()
}

// A VM is decided again once its sled falls silent, at once, and not before.
func TestAVMIsWokenWhenItsSledFallsSilent(t *testing.T) {
	s := begin(t, "sled1", "sled2")
	s.placed(api.Restart(fence.Hold))
	woken := s.woken()
	now := time.Duration(0)
	for ; now < terms().Fence; now += time.Second {
		s.beat(now)
		if n := woken(); n != 0 {
			t.Fatalf("%d VMs are woken after %v", n, now)
		}
	}
	s.beat(now)
	if n := woken(); n != 1 {
		t.Fatalf("%d VMs are woken when sled1 falls silent", n)
	}
	s.beat(now + time.Second)
	if n := woken(); n != 0 {
		t.Errorf("%d VMs are woken again", n)
	}
	s.renew("sled1")
	s.beat(now + 2*time.Second)
	for end := now + 2*time.Second + terms().Fence; now <= end; now += time.Second {
		s.beat(now)
	}
	if n := woken(); n != 1 {
		t.Errorf("%d VMs are woken when sled1 falls silent once more", n)
	}
}

// A VM is decided again as long as a sled reports a generation that no pod is known of.
func TestAVMIsWokenByARunWithoutAPod(t *testing.T) {
	s := begin(t, "sled1")
	s.placed(api.Restart(fence.Hold))
	woken := s.woken()
	reports := func(runs string) {
		t.Helper()
		var n corev1.Node
		s.ok(s.store.Get(t.Context(), client.ObjectKey{Name: "sled1"}, &n))
		n.Annotations[api.AnnotationRuns] = runs
		s.ok(s.store.Update(t.Context(), &n))
		s.renew("sled1")
		s.beat(time.Second)
	}
	reports(string(uid) + "=1")
	if n := woken(); n != 0 {
		t.Errorf("%d VMs are woken by a run that is claimed", n)
	}
	for range 2 {
		reports(string(uid) + "=2")
		if n := woken(); n != 1 {
			t.Errorf("%d VMs are woken by a run that is not", n)
		}
	}
	if vm := s.look(); vm.Status.Generation != 2 {
		t.Fatalf("generation %d", vm.Status.Generation)
	}
	reports(string(uid) + "=2")
	if n := woken(); n != 0 {
		t.Errorf("%d VMs are woken by a run that is claimed by now", n)
	}
}

// A VM about which nothing is to be done is decided again rarely; it is read live for no pod that follows a write.
func TestAVMThatRunsIsDecidedRarely(t *testing.T) {
	s := begin(t, "sled1")
	read := 0
	s.c.Live = interceptor.NewClient(s.store, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if _, vm := o.(*api.VirtualMachine); vm {
			read++
		}
		return c.Get(ctx, key, o, opts...)
	}})
	s.placed(api.Restart(fence.Hold))
	if read != 0 {
		t.Errorf("the VM was read live %d times", read)
	}
	again, err := s.c.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "default", Name: "web"}})
	s.ok(err)
	if most := 4 * terms().Fence; again.RequeueAfter < most/2 || again.RequeueAfter > most {
		t.Errorf("it is decided again after %v", again.RequeueAfter)
	}
	s.ok(s.store.Delete(t.Context(), s.pod(1)))
	pod := s.pod(1)
	pod.Finalizers = nil
	s.ok(s.store.Update(t.Context(), pod))
	s.look()
	if s.pod(1) == nil || read == 0 {
		t.Errorf("its pod is created again without a live read of the VM: %v, %d reads", s.pod(1), read)
	}
}

// A VM is written twice until it runs: when its generation is raised, and when it runs. One that takes longer is
// said to start.
func TestAVMIsWrittenTwiceUntilItRuns(t *testing.T) {
	s := begin(t, "sled1")
	writes := 0
	s.c.Client = interceptor.NewClient(s.store, interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			writes++
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
	})
	s.create(api.Restart(fence.Hold))
	s.look()
	s.bind(1, "sled1")
	pod := s.pod(1)
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
	s.ok(s.store.Status().Update(t.Context(), pod))
	if vm := s.look(); writes != 1 || vm.Status.Phase != api.PhasePending {
		t.Errorf("%d writes, and it is %s", writes, vm.Status.Phase)
	}
	s.runs(1)
	if vm := s.look(); writes != 2 || vm.Status.Phase != api.PhaseRunning {
		t.Errorf("%d writes, and it is %s", writes, vm.Status.Phase)
	}

	now := time.Now()
	for _, c := range []struct {
		what       string
		phase      string
		conditions []corev1.PodCondition
		wait       time.Duration
	}{
		{"placed just now", api.PhasePending, []corev1.PodCondition{{Type: corev1.PodScheduled, LastTransitionTime: metav1.NewTime(now)}}, startsWithin},
		{"placed a while ago", api.PhasePending, []corev1.PodCondition{{Type: corev1.PodScheduled, LastTransitionTime: metav1.NewTime(now.Add(-startsWithin))}}, 0},
		{"placed by a clock that is ahead", api.PhasePending, []corev1.PodCondition{{Type: corev1.PodScheduled, LastTransitionTime: metav1.NewTime(now.Add(time.Hour))}}, 0},
		{"placed without a condition", api.PhasePending, nil, 0},
		{"said to start", api.PhaseStarting, []corev1.PodCondition{{Type: corev1.PodScheduled, LastTransitionTime: metav1.NewTime(now)}}, 0},
		{"reported by its sled", api.PhasePending, []corev1.PodCondition{{Type: corev1.PodScheduled, LastTransitionTime: metav1.NewTime(now)}, {Type: api.ConditionVM}}, 0},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "sled1"}, Status: corev1.PodStatus{Conditions: c.conditions}}
		if wait := startWait(c.phase, pod, now); wait != c.wait {
			t.Errorf("a VM %s waits %v", c.what, wait)
		}
	}
	if wait := startWait(api.PhasePending, nil, now); wait != 0 {
		t.Errorf("a VM without a pod waits %v", wait)
	}
}
