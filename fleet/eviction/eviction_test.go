package eviction

import (
	"errors"
	"log/slog"
	"net/http"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/sledctl/sledctl/fleet/api"
)

func run() (*api.VirtualMachine, *corev1.Pod) {
	vm := &api.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u"}, Status: api.VirtualMachineStatus{Generation: 3, Raised: 4}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "web-3", Labels: map[string]string{api.LabelSled: "true", api.LabelVM: "web"}, Annotations: map[string]string{api.AnnotationRun: "3", api.AnnotationVM: "u"},
	}, Spec: corev1.PodSpec{NodeName: "sled1"}}
	return vm, pod
}

func TestWhetherAVMLeaves(t *testing.T) {
	no := false
	now := metav1.Now()
	for name, c := range map[string]struct {
		change func(*api.VirtualMachine, *corev1.Pod)
		want   Act
	}{
		"it runs":                {func(*api.VirtualMachine, *corev1.Pod) {}, Move},
		"migrate":                {func(vm *api.VirtualMachine, _ *corev1.Pod) { vm.Spec.Evict = api.EvictMigrate }, Move},
		"stop":                   {func(vm *api.VirtualMachine, _ *corev1.Pod) { vm.Spec.Evict = api.EvictStop }, Allow},
		"block":                  {func(vm *api.VirtualMachine, _ *corev1.Pod) { vm.Spec.Evict = api.EvictBlock }, Refuse},
		"a volume in a Crucible": {func(vm *api.VirtualMachine, _ *corev1.Pod) { vm.Spec.Disks = []api.Disk{{Crucible: &api.Crucible{}}} }, Move},
		"one of each": {func(vm *api.VirtualMachine, _ *corev1.Pod) {
			vm.Spec.Disks = []api.Disk{{Crucible: &api.Crucible{}}, {Path: "/x"}}
		}, Refuse},
		"a volume":      {func(vm *api.VirtualMachine, _ *corev1.Pod) { vm.Spec.Disks = []api.Disk{{Path: "/x"}} }, Refuse},
		"it is to stop": {func(vm *api.VirtualMachine, _ *corev1.Pod) { vm.Spec.Running = &no }, Allow},
		"it is to go":   {func(vm *api.VirtualMachine, _ *corev1.Pod) { vm.DeletionTimestamp = &now }, Allow},
		"it moves":      {func(vm *api.VirtualMachine, _ *corev1.Pod) { vm.Status.Moving = &api.Moving{Generation: 4} }, Move},
		"it moves, though stop": {func(vm *api.VirtualMachine, _ *corev1.Pod) {
			vm.Status.Moving, vm.Spec.Evict = &api.Moving{Generation: 4}, api.EvictStop
		}, Move},
		"it comes": {func(vm *api.VirtualMachine, pod *corev1.Pod) {
			vm.Status.Generation, vm.Status.Moving = 2, &api.Moving{Generation: 3}
		}, Refuse},
		"it has left":   {func(vm *api.VirtualMachine, _ *corev1.Pod) { vm.Status.Generation = 4 }, Allow},
		"an earlier VM": {func(vm *api.VirtualMachine, _ *corev1.Pod) { vm.UID = "v" }, Allow},
		"it has ended": {func(_ *api.VirtualMachine, pod *corev1.Pod) {
			pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, api.ReasonRefused
		}, Allow},
		"it goes":         {func(_ *api.VirtualMachine, pod *corev1.Pod) { pod.DeletionTimestamp = &now }, Allow},
		"it has no sled":  {func(_ *api.VirtualMachine, pod *corev1.Pod) { pod.Spec.NodeName = "" }, Allow},
		"it is no run":    {func(_ *api.VirtualMachine, pod *corev1.Pod) { pod.Annotations = nil }, Allow},
		"a run that ends": {func(vm *api.VirtualMachine, pod *corev1.Pod) { vm.Status.Generation, vm.Status.Raised = 5, 5 }, Allow},
	} {
		vm, pod := run()
		c.change(vm, pod)
		if got := Decide(vm, pod); got.Act != c.want || got.Reason == "" {
			t.Errorf("%s: %+v, want %s", name, got, c.want)
		}
	}
	_, pod := run()
	if got := Decide(nil, pod); got.Act != Allow {
		t.Errorf("without a VM: %+v", got)
	}
}

// A drain is told 429, which it takes for "later"; and the VM is asked to move, once.
func TestADrainIsToldToAskAgain(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientscheme.AddToScheme(scheme), api.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	vm, pod := run()
	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other"}}
	store := fake.NewClientBuilder().WithScheme(scheme).WithObjects(vm, pod, other).Build()
	hook := &Webhook{Client: store, Live: store, Log: slog.New(slog.DiscardHandler)}
	ask := func(name string, dry bool) admission.Response {
		return hook.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			Namespace: "default", Name: name, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"}, SubResource: "eviction", DryRun: &dry,
		}})
	}
	moves := func() []api.VirtualMachineMigration {
		t.Helper()
		var all api.VirtualMachineMigrationList
		if err := store.List(t.Context(), &all); err != nil {
			t.Fatal(err)
		}
		return all.Items
	}
	for _, name := range []string{"other", "none"} {
		if got := ask(name, false); !got.Allowed {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := ask("web-3", true); got.Allowed || len(moves()) != 0 {
		t.Errorf("a dry run: %+v, %v", got, moves())
	}
	for range 2 {
		got := ask("web-3", false)
		if got.Allowed || got.Result.Code != http.StatusTooManyRequests || got.Result.Message == "" {
			t.Errorf("%+v", got)
		}
	}
	if all := moves(); len(all) != 1 || all[0].Name != "web-5" || all[0].Spec.VM != "web" {
		t.Errorf("%+v", all)
	}
}
