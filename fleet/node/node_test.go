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

	arrivals []int64
	refuses  string
	fate     Fate
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

func (s *sled) Arrive(_ context.Context, r Run, _ json.RawMessage, from Origin) error {
	if _, here := s.runs[r.VM]; !here && r.Generation <= s.last[r.VM] {
		return &PassedError{"generation " + strconv.FormatInt(r.Generation, 10) + " has passed"}
	}
	if s.refuses != "" {
		return &RefusedError{s.refuses}
	}
	if _, here := s.runs[r.VM]; !here {
		s.last[r.VM], s.arrivals = r.Generation, append(s.arrivals, r.Generation)
	}
	r.State, r.Moves, r.Migration = "migrating", Arriving, from.Migration
	s.runs[r.VM] = r
	return nil
}

func (s *sled) Fate(context.Context, Run) (Fate, error) { return s.fate, nil }

func (s *sled) Address(context.Context, Run) (string, error) { return "10.1.0.3:12400", nil }

func (s *sled) Stop(_ context.Context, r Run) error {
	r.State = "destroyed"
	s.runs[r.VM] = r
	return nil
}

func (s *sled) Remove(_ context.Context, r Run) error { delete(s.runs, r.VM); return nil }

func (s *sled) Changes(ctx context.Context, begun func(), _ func(string)) error {
	begun()
	<-ctx.Done()
	return ctx.Err()
}

func (s *sled) Answers(context.Context) error { return s.broken }

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

// answer has the node answer, and is whether enough sleds have.
func (s *story) answer() (settled bool) {
	s.t.Helper()
	settled, err := s.node.Answer(s.t.Context())
	s.ok(err)
	return settled
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

// comes is a claim of a run that comes from another sled.
func (s *story) comes(name, vm string, generation int64) client.ObjectKey {
	s.t.Helper()
	key := client.ObjectKey{Namespace: "default", Name: api.PodName(name, generation)}
	s.ok(s.store.Create(s.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Finalizers: []string{api.FinalizerRun}, Annotations: map[string]string{
			api.AnnotationVM: vm, api.AnnotationRun: strconv.FormatInt(generation, 10), api.AnnotationSpec: `{"cpus":1}`, api.AnnotationFrom: "10.1.0.9:12400",
		}},
		Spec: corev1.PodSpec{NodeName: "sled1", Containers: []corev1.Container{{Name: "vm", Image: "x"}}},
	}))
	return key
}

func (s *story) has(pod *corev1.Pod, what corev1.PodConditionType) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == what {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func TestAVMComesFromAnotherSled(t *testing.T) {
	s := begin(t)
	s.beats(fence.Chain{{Term: "a", N: 3}}, "a")
	s.comes("web", vm, 2)
	s.look(2)
	if pod := s.look(2); len(s.sled.arrivals) != 1 || len(s.sled.starts) != 0 || s.has(pod, api.ConditionArrived) || pod.Status.Phase == corev1.PodRunning {
		t.Fatalf("%+v, arrivals %v, starts %v", pod.Status, s.sled.arrivals, s.sled.starts)
	}
	s.restart()
	s.look(2)
	r := s.sled.runs[vm]
	if want, _ := api.MigrationID(vm, 2); len(s.sled.arrivals) != 1 || r.Migration != want {
		t.Fatalf("arrivals %v, %+v", s.sled.arrivals, r)
	}
	r.State, r.Moves = stateRunning, Arrived
	s.sled.runs[vm] = r
	if pod := s.look(2); !s.has(pod, api.ConditionArrived) || pod.Status.Phase != corev1.PodRunning {
		t.Fatalf("%+v", pod.Status)
	}
}

func TestAVMThatDoesNotComeIsTold(t *testing.T) {
	s := begin(t)
	s.beats(fence.Chain{{Term: "a", N: 3}}, "a")
	s.comes("web", vm, 2)
	s.look(2)
	delete(s.sled.runs, vm) // as the agent does with what has not come
	s.sled.fate = Fate{Reason: "the source has let go"}
	if pod := s.look(2); pod.Status.Phase != corev1.PodFailed || pod.Status.Reason != api.ReasonStayed || pod.Status.Message != "the source has let go" || s.has(pod, api.ConditionArrived) {
		t.Fatalf("%+v", pod.Status)
	}
	s.sled.refuses = "a volume does not move"
	s.comes("web", vm, 3)
	if pod := s.look(3); pod.Status.Phase != corev1.PodFailed || pod.Status.Message != "a volume does not move" {
		t.Fatalf("%+v", pod.Status)
	}
}

func TestAVMThatHasLeftIsTold(t *testing.T) {
	s := begin(t)
	s.beats(fence.Chain{{Term: "a", N: 3}}, "a")
	s.claim(1)
	s.look(1)
	s.look(1)
	delete(s.sled.runs, vm)
	s.sled.fate = Fate{Left: true}
	if pod := s.look(1); pod.Status.Phase != corev1.PodSucceeded || pod.Status.Reason != api.ReasonLeft {
		t.Fatalf("%+v", pod.Status)
	}
}

func TestTwoVMsComeAtOnce(t *testing.T) {
	s := begin(t)
	s.beats(fence.Chain{{Term: "a", N: 3}}, "a")
	var keys []client.ObjectKey
	for _, last := range []string{"1", "2", "3"} {
		keys = append(keys, s.comes("web"+last, vm[:len(vm)-1]+last, 2))
	}
	look := func() {
		t.Helper()
		for _, key := range keys {
			_, err := s.node.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
			s.ok(err)
		}
	}
	look()
	s.restart()
	look()
	if len(s.sled.arrivals) != 2 {
		t.Fatalf("%d come at once", len(s.sled.arrivals))
	}
	for id, r := range s.sled.runs {
		r.State, r.Moves = stateRunning, Arrived
		s.sled.runs[id] = r
	}
	look()
	if len(s.sled.arrivals) != 3 {
		t.Errorf("%d have come", len(s.sled.arrivals))
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
			s.ok(s.node.Memory.Remember(fence.Chain{c.remembers}))
			if c.chain != nil {
				s.beats(c.chain, c.counted)
			}
			s.claim(1)
			if pod := s.look(1); len(s.sled.starts) != 0 || pod.Status.Phase == corev1.PodRunning {
				t.Errorf("starts %v", s.sled.starts)
			} else if s.has(pod, api.ConditionVM) {
				t.Errorf("it waits, and is reported to run: %+v", pod.Status.Conditions)
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
		s.answer()
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
	if c, err := s.node.Memory.Chain(); err != nil || c.Last() != (fence.Beat{Term: "b", N: 6}) {
		t.Errorf("%v, %v", c, err)
	}
}

// Found by a store that was restored on real servers: it says, too, that all were counted in its term.
func TestACountFromBeforeARestoreDoesNotCount(t *testing.T) {
	s := begin(t)
	s.node.restored = make(chan struct{}, 1)
	s.beats(fence.Chain{{Term: "a", N: 9}}, "a")
	s.answer()
	s.beats(fence.Chain{{Term: "a", N: 3}}, "a")
	for range 3 {
		s.answer()
		if open, err := s.node.Open(t.Context()); open || err != nil {
			t.Errorf("open: %v, %v", open, err)
		}
	}
	s.beats(fence.Chain{{Term: "a", N: 3}, {Term: "b", N: 1}}, "a")
	s.answer()
	if want := (fence.Answer{Term: "b", Restored: true}); s.node.answered != want {
		t.Errorf("it answers %+v", s.node.answered)
	}
	if len(s.node.restored) != 1 {
		t.Error("the watch goes on")
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
