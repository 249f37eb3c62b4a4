package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/sledctl/sledctl/fleet/api"
	"github.com/sledctl/sledctl/fleet/fence"
	"github.com/sledctl/sledctl/fleet/node"
)

// maxGap is that of a controller that beats every two seconds.
const maxGap = 10 * time.Second

const uid = types.UID("0f2a7c1e-6f0b-4c62-9a51-5a3a4d3f6a11")

// story is a controller with its store. Sleds are played by the test.
type story struct {
	t     *testing.T
	c     *Controller
	beats *Beats
	store client.WithWatch
	// refused makes the store refuse pods.
	refused error
	created []string // the pods that were asked for
}

func begin(t *testing.T, sleds ...string) *story {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientscheme.AddToScheme(scheme), api.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	s := &story{t: t}
	s.store = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&api.VirtualMachine{}, &api.VirtualMachineMigration{}, &api.SledMaintenance{}, &api.SledBMC{}, &corev1.Pod{}, &corev1.Node{}).
		WithIndex(&corev1.Pod{}, byVM, vmOf).WithIndex(&corev1.Pod{}, bySled, sledOf).
		WithInterceptorFuncs(interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if _, pod := o.(*corev1.Pod); pod {
				if s.created = append(s.created, o.GetName()); s.refused != nil {
					return s.refused
				}
			}
			return c.Create(ctx, o, opts...)
		}}).Build()
	for _, name := range sleds {
		s.ok(s.store.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{api.LabelSled: "true"}}}))
		s.renew(name)
	}
	s.lead()
	return s
}

// lead is another controller, which has counted the sleds.
func (s *story) lead() {
	s.t.Helper()
	s.c, s.beats = New(s.store, s.store, events.NewFakeRecorder(1000), terms(), time.Second, slog.New(slog.DiscardHandler))
	s.beats.view.gap = maxGap
	s.beats.view.term = fmt.Sprintf("term-%d", time.Now().UnixNano())
	s.beat(0)
	s.answer(false)
	s.beat(0)
}

func (s *story) ok(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *story) beat(now time.Duration) { s.t.Helper(); s.ok(s.beats.once(s.t.Context(), now)) }

// answer is what the sleds answer the census.
func (s *story) answer(restored bool, but ...string) {
	s.t.Helper()
	var nodes corev1.NodeList
	s.ok(s.store.List(s.t.Context(), &nodes))
	for _, n := range nodes.Items {
		if len(but) > 0 && n.Name == but[0] {
			continue
		}
		data, err := json.Marshal(fence.Answer{Term: s.beats.view.term, Restored: restored})
		s.ok(err)
		if n.Annotations == nil {
			n.Annotations = map[string]string{}
		}
		n.Annotations[api.AnnotationTerm] = string(data)
		s.ok(s.store.Update(s.t.Context(), &n))
	}
}

func (s *story) renew(sled string) {
	s.t.Helper()
	now := metav1.NowMicro()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-node-lease", Name: sled}}
	_ = s.store.Delete(s.t.Context(), lease.DeepCopy()) // there may be none
	lease.Spec.RenewTime = &now
	s.ok(s.store.Create(s.t.Context(), lease))
}

func (s *story) create(restart api.Restart) {
	s.t.Helper()
	s.ok(s.store.Create(s.t.Context(), &api.VirtualMachine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: uid},
		Spec:       api.VirtualMachineSpec{CPUs: 2, Memory: resource.MustParse("4Gi"), Restart: restart, NICs: []api.NIC{{Over: "net0"}}},
	}))
}

// look reconciles the VM a few times, and gives it as it is then.
func (s *story) look() *api.VirtualMachine {
	s.t.Helper()
	key := types.NamespacedName{Namespace: "default", Name: "web"}
	for range 6 {
		if _, err := s.c.Reconcile(s.t.Context(), reconcile.Request{NamespacedName: key}); err != nil && s.refused == nil {
			s.t.Fatal(err)
		}
	}
	var vm api.VirtualMachine
	if err := s.store.Get(s.t.Context(), key, &vm); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		s.t.Fatal(err)
	}
	return &vm
}

func (s *story) pod(generation int64) *corev1.Pod {
	s.t.Helper()
	var pod corev1.Pod
	err := s.store.Get(s.t.Context(), client.ObjectKey{Namespace: "default", Name: api.PodName("web", generation)}, &pod)
	if apierrors.IsNotFound(err) {
		return nil
	}
	s.ok(err)
	return &pod
}

// bind is what the scheduler does, and then the sled.
func (s *story) bind(generation int64, sled string) {
	s.t.Helper()
	pod := s.pod(generation)
	pod.Spec.NodeName = sled
	s.ok(s.store.Update(s.t.Context(), pod))
}

func (s *story) runs(generation int64) {
	s.t.Helper()
	pod := s.pod(generation)
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: api.ConditionStarted, Status: corev1.ConditionTrue}, {Type: api.ConditionVM, Status: corev1.ConditionTrue, Reason: "running"},
		{Type: api.ConditionPropolis, Status: corev1.ConditionTrue, Reason: "Listens", Message: "10.1.0.3:12400"},
	}
	s.ok(s.store.Status().Update(s.t.Context(), pod))
}

func (s *story) ends(generation int64) {
	s.t.Helper()
	pod := s.pod(generation)
	pod.Status.Phase, pod.Status.Reason = corev1.PodSucceeded, api.ReasonEnded
	s.ok(s.store.Status().Update(s.t.Context(), pod))
}

func TestAVMIsPlacedAndGoes(t *testing.T) {
	s := begin(t, "sled1")
	s.create(api.Restart(fence.Hold))
	if vm := s.look(); vm.Status.Generation != 1 || s.pod(1) == nil {
		t.Fatalf("%+v", vm.Status)
	}
	s.bind(1, "sled1")
	s.runs(1)
	vm := s.look()
	id, _ := api.PropolisID(uid, 1)
	if vm.Status.Phase != api.PhaseRunning || vm.Status.Sled != "sled1" || vm.Status.PropolisID != id || !meta.IsStatusConditionTrue(vm.Status.Conditions, api.ConditionRunning) {
		t.Fatalf("%+v", vm.Status)
	}
	s.ok(s.store.Delete(t.Context(), vm))
	if vm = s.look(); vm == nil || s.pod(1).DeletionTimestamp == nil {
		t.Fatal("the object went before its VM")
	}
	s.ends(1)
	if vm = s.look(); vm != nil || s.pod(1) != nil {
		t.Fatalf("something is left: %v, %v", vm, s.pod(1))
	}
}

// Finding 2: a controller that is refused a pod tries the same name again.
func TestARefusedPodIsTriedUnderItsName(t *testing.T) {
	s := begin(t, "sled1")
	s.create("")
	s.refused = errors.New("exceeded quota")
	s.look()
	s.refused = nil
	if vm := s.look(); vm.Status.Generation != 1 || s.pod(1) == nil || s.pod(2) != nil {
		t.Fatalf("generation %d", vm.Status.Generation)
	}
	for _, name := range s.created {
		if name != "web-1" {
			t.Errorf("pod %s was asked for", name)
		}
	}
}

func TestASilentSledUnderHoldIsWaitedFor(t *testing.T) {
	s := begin(t, "sled1", "sled2")
	s.create(api.Restart(fence.Hold))
	s.look()
	s.bind(1, "sled1")
	s.runs(1)
	for now := time.Duration(0); now < 10*time.Minute; now += 5 * time.Second {
		s.beat(now)
	}
	vm := s.look()
	if vm.Status.Generation != 1 || vm.Status.Phase != api.PhaseUnknown || s.pod(1).DeletionTimestamp != nil {
		t.Fatalf("%+v", vm.Status)
	}
	s.renew("sled1")
	s.beat(11 * time.Minute)
	if vm := s.look(); vm.Status.Phase != api.PhaseRunning {
		t.Errorf("it came back, and is %s", vm.Status.Phase)
	}
}

func TestALeaseThatIsOverStartsTheVMElsewhere(t *testing.T) {
	s := begin(t, "sled1", "sled2")
	s.create(api.Restart(fence.Lease))
	s.look()
	if s.pod(1).Labels[api.LabelLease] != "true" {
		t.Fatal("the guard is not asked for")
	}
	s.bind(1, "sled1")
	s.runs(1)
	wait := terms().Wait()
	for now := time.Duration(0); now < wait; now += 5 * time.Second {
		s.renew("sled2")
		s.beat(now)
		if vm := s.look(); vm.Status.Generation != 1 {
			t.Fatalf("generation %d after %v", vm.Status.Generation, now)
		}
	}
	s.renew("sled2")
	s.beat(wait)
	vm := s.look()
	if vm.Status.Ended == nil || vm.Status.Ended.Proof != string(fence.Expired) {
		t.Fatalf("%+v", vm.Status)
	}
	var sled1 corev1.Node
	s.ok(s.store.Get(t.Context(), client.ObjectKey{Name: "sled1"}, &sled1))
	if len(sled1.Spec.Taints) != 1 || sled1.Spec.Taints[0].Key != api.TaintFenced {
		t.Errorf("finding 3: taints %+v", sled1.Spec.Taints)
	}
	s.renew("sled1")
	s.beat(wait + time.Second)
	s.ok(s.store.Get(t.Context(), client.ObjectKey{Name: "sled1"}, &sled1))
	if len(sled1.Spec.Taints) != 0 {
		t.Errorf("it renews its lease again, and has taints %+v", sled1.Spec.Taints)
	}
}

// A sled that may have read its claim, and does not answer, may start it at any moment.
func TestAClaimThatWasNotStartedIsRevokedFirst(t *testing.T) {
	s := begin(t, "sled1", "sled2")
	s.create(api.Restart(fence.Lease))
	s.look()
	s.bind(1, "sled1")
	for now := time.Duration(0); now < time.Minute; now += 5 * time.Second {
		s.beat(now)
	}
	if vm := s.look(); vm.Status.Ended != nil || s.pod(1).DeletionTimestamp == nil {
		t.Fatalf("%+v", vm.Status)
	}
	for now := time.Minute; now < time.Minute+terms().Wait()+maxGap+5*time.Second; now += 5 * time.Second {
		s.beat(now)
	}
	if vm := s.look(); vm.Status.Ended == nil || vm.Status.Ended.Proof != string(fence.Expired) {
		t.Fatalf("%+v", vm.Status)
	}
}

// Finding 5: after a stall nothing is judged by what was read before it.
func TestAStallOfTheControllerProvesNothing(t *testing.T) {
	s := begin(t, "sled1", "sled2")
	s.create(api.Restart(fence.Lease))
	s.look()
	s.bind(1, "sled1")
	s.runs(1)
	s.beat(0)
	s.beat(time.Hour)
	if vm := s.look(); vm.Status.Generation != 1 || vm.Status.Ended != nil {
		t.Fatalf("%+v", vm.Status)
	}
}

func TestTwoControllersRaiseOnce(t *testing.T) {
	s := begin(t, "sled1")
	s.create("")
	var stale api.VirtualMachine
	key := client.ObjectKey{Namespace: "default", Name: "web"}
	s.ok(s.store.Get(t.Context(), key, &stale))
	s.ok(s.c.raise(t.Context(), stale.DeepCopy()))
	if err := s.c.raise(t.Context(), stale.DeepCopy()); !apierrors.IsConflict(err) {
		t.Errorf("a second raise from the same state: %v", err)
	}
}

// What a cache that is behind has of a VM claims nothing: the generation may have ended.
func TestAPodOfAnEarlierGenerationIsNotCreated(t *testing.T) {
	s := begin(t, "sled1")
	s.create("")
	s.look()
	key := client.ObjectKey{Namespace: "default", Name: "web"}
	var stale api.VirtualMachine
	s.ok(s.store.Get(t.Context(), key, &stale))
	s.bind(1, "sled1")
	s.runs(1)
	s.ends(1)
	s.look()
	if s.pod(1) != nil {
		t.Fatal("the pod of a generation that has ended stays")
	}
	if err := s.c.claim(t.Context(), stale.DeepCopy()); err == nil || s.pod(1) != nil {
		t.Errorf("generation 1 is claimed again: %v", err)
	}
}

func TestARestoredStoreStartsNothingBeforeEverySledIsCounted(t *testing.T) {
	s := begin(t, "sled1", "sled2", "sled3")
	var snapshot corev1.ConfigMap
	key := client.ObjectKey{Namespace: node.BeatNamespace, Name: node.BeatName}
	s.ok(s.store.Get(t.Context(), key, &snapshot))
	s.beat(time.Second)
	var now corev1.ConfigMap
	s.ok(s.store.Get(t.Context(), key, &now))
	now.Data = snapshot.Data
	s.ok(s.store.Update(t.Context(), &now))
	s.create("")

	s.beat(2 * time.Second) // it misses its own beat
	s.answer(false, "sled3")
	s.beat(3 * time.Second)
	vm := s.look()
	if vm.Status.Generation != 0 || !meta.IsStatusConditionFalse(vm.Status.Conditions, api.ConditionPlaced) {
		t.Fatalf("%+v", vm.Status)
	}
	// The third runs what the store has forgotten.
	var sled3 corev1.Node
	s.ok(s.store.Get(t.Context(), client.ObjectKey{Name: "sled3"}, &sled3))
	sled3.Annotations[api.AnnotationRuns] = string(uid) + "=4"
	s.ok(s.store.Update(t.Context(), &sled3))
	s.answer(false)
	s.beat(4 * time.Second)
	vm = s.look()
	if vm.Status.Generation != 4 || s.pod(4) == nil || s.pod(4).Spec.NodeName != "sled3" || s.pod(1) != nil {
		t.Fatalf("%+v", vm.Status)
	}
}

func TestASledThatRemembersMoreIsBelieved(t *testing.T) {
	s := begin(t, "sled1", "sled2", "sled3")
	s.beats.view.term = "another" // a controller that has seen nothing itself
	s.answer(true, "sled3")
	s.beat(time.Second)
	s.create("")
	if vm := s.look(); vm.Status.Generation != 0 {
		t.Fatalf("%+v", vm.Status)
	}
}

func TestTheDocumentIsWhatAnAgentReads(t *testing.T) {
	size := resource.MustParse("20Gi")
	vm := &api.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: uid}, Spec: api.VirtualMachineSpec{
		CPUs: 2, Memory: resource.MustParse("4Gi"), Disks: []api.Disk{{Image: "debian", Size: &size}}, NICs: []api.NIC{{Over: "net0", VLAN: 7}},
		CloudInit: &api.CloudInit{Hostname: "web"},
	}}
	got, err := documentOf(vm)
	want := `{"id":"0f2a7c1e-6f0b-4c62-9a51-5a3a4d3f6a11","name":"web.0f2a7c1e","cpus":2,"memory":4294967296,` +
		`"disks":[{"image":"debian","size":21474836480}],"nics":[{"over":"net0","vlan":7}],"cloud_init":{"hostname":"web"}}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
}

// Kubernetes marks the pods of a Node that was deleted as Failed: their VMs may run.
func TestAPodThatAnotherMarksAsFailedHasNotEnded(t *testing.T) {
	s := begin(t, "sled1", "sled2")
	s.create(api.Restart(fence.Hold))
	s.look()
	s.bind(1, "sled1")
	s.runs(1)
	pod := s.pod(1)
	pod.Status.Phase = corev1.PodFailed
	s.ok(s.store.Status().Update(t.Context(), pod))
	if vm := s.look(); vm.Status.Ended != nil || vm.Status.Generation != 1 {
		t.Errorf("%+v", vm.Status)
	}
}
