package node

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/sledctl/sledctl/fleet/api"
	"github.com/sledctl/sledctl/fleet/fence"
)

const vm = "0f2a7c1e-6f0b-4c62-9a51-5a3a4d3f6a11"

// sled is a Sled in memory that keeps to the agent's rules: a generation is taken once.
type sled struct {
	runs   map[string]Run
	last   map[string]int64
	starts []int64
	broken error
}

func newSled() *sled { return &sled{runs: map[string]Run{}, last: map[string]int64{}} }

func (s *sled) Runs(context.Context) (all []Run, err error) {
	for _, r := range s.runs {
		all = append(all, r)
	}
	return all, s.broken
}

func (s *sled) Start(_ context.Context, r Run, _ json.RawMessage) error {
	if r.Generation <= s.last[r.VM] {
		return &PassedError{"generation " + strconv.FormatInt(r.Generation, 10) + " has passed"}
	}
	if _, here := s.runs[r.VM]; here {
		return errors.New("a VM of the instance exists")
	}
	s.last[r.VM], s.starts = r.Generation, append(s.starts, r.Generation)
	r.State = "running"
	s.runs[r.VM] = r
	return nil
}

func (s *sled) Stop(_ context.Context, r Run) error {
	r.State = "destroyed"
	s.runs[r.VM] = r
	return nil
}

func (s *sled) Remove(_ context.Context, r Run) error { delete(s.runs, r.VM); return nil }

func (s *sled) Capacity(context.Context) (Capacity, error) {
	return Capacity{CPUs: 16, Memory: 64 << 30, Pools: map[string]uint64{"oxp_1": 1 << 40}}, s.broken
}

// story is one node with its sled and its store.
type story struct {
	t     *testing.T
	node  *Node
	sled  *sled
	store client.Client
}

func begin(t *testing.T) *story {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientscheme.AddToScheme(scheme), api.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	store := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&corev1.Pod{}, &corev1.Node{}).Build()
	s := &story{t: t, sled: newSled(), store: store}
	s.restart()
	return s
}

// restart is another process of the node.
func (s *story) restart() {
	file := filepath.Join(s.t.TempDir(), "beat.json")
	if s.node != nil {
		file = string(s.node.Memory.(File))
	}
	s.node = &Node{Name: "sled1", Client: s.store, Sled: s.sled, Memory: File(file), Log: slog.New(slog.DiscardHandler), Now: time.Now}
	s.node.adopted.Store(true)
}

func (s *story) ok(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// beats writes a chain, and the term in which enough sleds have answered.
func (s *story) beats(c fence.Chain, counted string) {
	s.t.Helper()
	data, err := json.Marshal(c)
	s.ok(err)
	at := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: BeatNamespace, Name: BeatName}, Data: map[string]string{BeatKey: string(data), CountedKey: counted}}
	_ = s.store.Delete(s.t.Context(), at.DeepCopy()) // there may be none
	s.ok(s.store.Create(s.t.Context(), at))
}

func (s *story) claim(generation int64) {
	s.t.Helper()
	s.ok(s.store.Create(s.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: api.PodName("web", generation), Finalizers: []string{api.FinalizerRun}, Annotations: map[string]string{
			api.AnnotationVM: vm, api.AnnotationRun: strconv.FormatInt(generation, 10), api.AnnotationSpec: `{"cpus":1}`,
		}},
		Spec: corev1.PodSpec{NodeName: "sled1", Containers: []corev1.Container{{Name: "vm", Image: "x"}}},
	}))
}

// look reconciles the pod of a generation, and gives it as it is then.
func (s *story) look(generation int64) *corev1.Pod {
	s.t.Helper()
	key := client.ObjectKey{Namespace: "default", Name: api.PodName("web", generation)}
	if _, err := s.node.Reconcile(s.t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
		s.t.Fatal(err)
	}
	var pod corev1.Pod
	s.ok(s.store.Get(s.t.Context(), key, &pod))
	return &pod
}

func TestAClaimIsRunAndItsEndIsTold(t *testing.T) {
	s := begin(t)
	s.beats(fence.Chain{{Term: "a", N: 3}}, "a")
	s.claim(1)
	s.look(1)
	if pod := s.look(1); pod.Status.Phase != corev1.PodRunning || len(s.sled.starts) != 1 {
		t.Fatalf("%s, starts %v", pod.Status.Phase, s.sled.starts)
	}
	s.restart() // it finds its VM, and starts none
	if pod := s.look(1); pod.Status.Phase != corev1.PodRunning || len(s.sled.starts) != 1 {
		t.Fatalf("after a restart: %s, starts %v", pod.Status.Phase, s.sled.starts)
	}
	s.ok(s.store.Delete(t.Context(), s.look(1)))
	s.look(1) // stops
	if pod := s.look(1); pod.Status.Phase != corev1.PodSucceeded || len(s.sled.runs) != 0 {
		t.Fatalf("%s, runs %v", pod.Status.Phase, s.sled.runs)
	}
}

func TestAGenerationThatHasPassedIsRefused(t *testing.T) {
	s := begin(t)
	s.beats(fence.Chain{{Term: "a", N: 3}}, "a")
	s.sled.last[vm] = 4
	s.claim(3)
	if pod := s.look(3); pod.Status.Phase != corev1.PodFailed || pod.Status.Reason != api.ReasonRefused || len(s.sled.starts) != 0 {
		t.Fatalf("%s %s, starts %v", pod.Status.Phase, pod.Status.Reason, s.sled.starts)
	}
}

func TestNothingIsStartedWhileSledsAreCounted(t *testing.T) {
	for name, c := range map[string]struct {
		remembers fence.Beat
		chain     fence.Chain
		counted   string
	}{
		"no beat":         {},
		"a new leader":    {fence.Beat{Term: "a", N: 3}, fence.Chain{{Term: "a", N: 3}, {Term: "b", N: 1}}, "a"},
		"a store of old":  {fence.Beat{Term: "a", N: 3}, fence.Chain{{Term: "a", N: 2}}, "a"},
		"and its new one": {fence.Beat{Term: "a", N: 3}, fence.Chain{{Term: "a", N: 2}, {Term: "b", N: 9}}, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t)
			s.ok(s.node.Memory.Remember(c.remembers))
			if c.chain != nil {
				s.beats(c.chain, c.counted)
			}
			s.claim(1)
			if pod := s.look(1); len(s.sled.starts) != 0 || pod.Status.Phase == corev1.PodRunning {
				t.Errorf("starts %v", s.sled.starts)
			}
		})
	}
}

func TestASledAnswersACensus(t *testing.T) {
	s := begin(t)
	s.sled.runs[vm] = Run{VM: vm, Generation: 7, State: "running"}
	s.ok(s.node.Register(t.Context()))
	answer := func() (a fence.Answer, runs string) {
		t.Helper()
		s.ok(s.node.Answer(t.Context()))
		var node corev1.Node
		s.ok(s.store.Get(t.Context(), client.ObjectKey{Name: "sled1"}, &node))
		s.ok(json.Unmarshal([]byte(node.Annotations[api.AnnotationTerm]), &a))
		return a, node.Annotations[api.AnnotationRuns]
	}
	s.beats(fence.Chain{{Term: "a", N: 3}}, "")
	if a, runs := answer(); a != (fence.Answer{Term: "a"}) || runs != vm+"=7" {
		t.Errorf("%+v, %s", a, runs)
	}
	s.beats(fence.Chain{{Term: "a", N: 2}, {Term: "b", N: 5}}, "a")
	s.restart() // what it remembers is on its disk
	if a, _ := answer(); a != (fence.Answer{Term: "b", Restored: true}) {
		t.Errorf("in a restored store: %+v", a)
	}
	s.beats(fence.Chain{{Term: "a", N: 2}, {Term: "b", N: 6}}, "b")
	if a, _ := answer(); a != (fence.Answer{Term: "b"}) {
		t.Errorf("once all are counted: %+v", a)
	}
	if b, err := s.node.Memory.Beat(); err != nil || b != (fence.Beat{Term: "b", N: 6}) {
		t.Errorf("%v, %v", b, err)
	}
}

func TestASledIsMadeKnown(t *testing.T) {
	s := begin(t)
	s.sled.broken = errors.New("the agent does not answer")
	if err := s.node.Register(t.Context()); err == nil {
		t.Error("a sled is made known whose agent does not answer")
	}
	var silent corev1.Node
	s.ok(s.store.Get(t.Context(), client.ObjectKey{Name: "sled1"}, &silent))
	if c := silent.Status.Conditions; len(c) != 1 || c[0].Status != corev1.ConditionFalse {
		t.Errorf("%+v: VMs would be placed there", c)
	}
	s.sled.broken = nil
	s.ok(s.node.Register(t.Context()))
	s.ok(s.node.Renew(t.Context(), 15*time.Second))
	s.ok(s.node.Renew(t.Context(), 15*time.Second))
	var node corev1.Node
	s.ok(s.store.Get(t.Context(), client.ObjectKey{Name: "sled1"}, &node))
	if got := node.Status.Allocatable.Cpu().Value(); got != 16 || node.Status.Conditions[0].Status != corev1.ConditionTrue {
		t.Errorf("%d CPUs, %+v", got, node.Status.Conditions)
	}
	if len(node.Spec.Taints) != 1 || node.Spec.Taints[0].Key != api.TaintSled {
		t.Errorf("%+v: other pods would be placed here", node.Spec.Taints)
	}
	var lease coordinationv1.Lease
	s.ok(s.store.Get(t.Context(), client.ObjectKey{Namespace: leaseNamespace, Name: "sled1"}, &lease))
	if *lease.Spec.LeaseDurationSeconds != 15 || !strings.HasPrefix(*lease.Spec.HolderIdentity, "sled1") {
		t.Errorf("%+v", lease.Spec)
	}
}
