package controller

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/sledctl/sledctl/fleet/api"
	"github.com/sledctl/sledctl/fleet/bmc"
	"github.com/sledctl/sledctl/fleet/fence"
)

// board is a BMC that a test plays.
type board struct {
	state   bmc.State
	fails   error // each request
	refuses error // to power it off
	cuts    int
	asked   bmc.Config
}

func (b *board) Power(context.Context) (bmc.Report, error) {
	return bmc.Report{State: b.state}, b.fails
}

func (b *board) PowerOff(context.Context) error {
	b.cuts++
	return errors.Join(b.fails, b.refuses)
}

// dark is a story in which sled1 has a VM with policy power and falls silent.
type dark struct {
	*story
	powers *Powers
	board  *board
	now    time.Duration
}

func darken(t *testing.T, restart fence.Policy, sleds ...string) *dark {
	t.Helper()
	d := &dark{story: begin(t, append([]string{"sled1"}, sleds...)...), board: &board{state: bmc.On}}
	d.c.suspects.now = func() time.Duration { return d.now }
	d.powers = &Powers{Controller: d.c, After: time.Minute, Open: func(c bmc.Config) (bmc.BMC, error) { d.board.asked = c; return d.board, nil }}
	d.ok(d.store.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: api.BMCNamespace, Name: "bmc1"}, Data: map[string][]byte{"username": []byte("fleet"), "password": []byte("secret")},
	}))
	d.name("sled1", "10.0.0.5", nil)
	d.create(api.Restart(restart))
	d.look()
	d.bind(1, "sled1")
	d.runs(1)
	d.look()
	return d
}

// name names the BMC of a sled.
func (d *dark) name(sled, address string, change func(*api.SledBMC)) {
	d.t.Helper()
	o := &api.SledBMC{ObjectMeta: metav1.ObjectMeta{Name: sled}, Spec: api.SledBMCSpec{Protocol: "redfish", Address: address, Secret: "bmc1"}}
	if change != nil {
		change(o)
	}
	d.ok(d.store.Create(d.t.Context(), o))
}

// wait lets time pass in which all sleds but these renew, and the BMC is asked as often as it may be.
func (d *dark) wait(during time.Duration, silent ...string) *api.VirtualMachine {
	d.t.Helper()
	for end := d.now + during; d.now < end; {
		d.now += 2 * time.Second
		for sled := range d.c.view.reports {
			if !strings.Contains(strings.Join(silent, " "), sled) {
				d.renew(sled)
			}
		}
		d.beat(d.now)
		d.look()
		if _, wanted := d.c.suspects.asks("sled1"); wanted {
			d.bmc("sled1")
		}
	}
	return d.look()
}

// bmc reconciles a BMC, and gives it as it is then.
func (d *dark) bmc(sled string) *api.SledBMC {
	d.t.Helper()
	key := types.NamespacedName{Name: sled}
	if _, err := d.powers.Reconcile(d.t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
		d.t.Fatal(err)
	}
	var o api.SledBMC
	d.ok(client.IgnoreNotFound(d.store.Get(d.t.Context(), key, &o)))
	return &o
}

// holds checks that nothing is started elsewhere, and that the VM says why.
func (d *dark) holds(vm *api.VirtualMachine, cuts int, says string) {
	d.t.Helper()
	fenced := meta.FindStatusCondition(vm.Status.Conditions, api.ConditionFenced)
	if vm.Status.Generation != 1 || vm.Status.Ended != nil || fenced == nil || !strings.Contains(fenced.Message, says) {
		d.t.Errorf("%+v, want it to hold with %q", vm.Status, says)
	}
	if d.board.cuts != cuts {
		d.t.Errorf("its sled was powered off %d times, want %d", d.board.cuts, cuts)
	}
}

func TestASilentSledIsPoweredOffAndItsVMStartsElsewhere(t *testing.T) {
	d := darken(t, fence.Power, "sled2", "sled3")
	d.holds(d.wait(58*time.Second, "sled1"), 0, "once it was silent for 1m0s")
	d.holds(d.wait(6*time.Second, "sled1"), 1, "was asked to power it off")
	d.board.state = "PoweringOff"
	d.holds(d.wait(time.Minute, "sled1"), 1, "does not report that it is off")
	d.board.state = bmc.Off
	d.holds(d.wait(terms().Settle, "sled1"), 1, "for 8s")
	vm := d.wait(4*time.Second, "sled1")
	if vm.Status.Ended == nil || vm.Status.Ended.Proof != string(fence.PowerOff) || d.board.cuts != 1 {
		t.Fatalf("%+v", vm.Status)
	}
	var sled1 corev1.Node
	d.ok(d.store.Get(t.Context(), client.ObjectKey{Name: "sled1"}, &sled1))
	if len(sled1.Spec.Taints) != 1 || sled1.Spec.Taints[0].Key != api.TaintFenced {
		t.Errorf("taints %+v", sled1.Spec.Taints)
	}
	if o := d.bmc("sled1"); o.Status.Power != "Off" || o.Status.PoweredOff == nil || !meta.IsStatusConditionTrue(o.Status.Conditions, api.ConditionAnswers) {
		t.Errorf("%+v", o.Status)
	}
	if c := d.board.asked; c.Username != "fleet" || c.Password != "secret" || c.Address != "10.0.0.5" {
		t.Errorf("the BMC is asked by %+v", c)
	}
}

// A BMC that is back on, or does not answer, meanwhile has not reported its sled off all the time.
func TestABreakBeginsTheCountAgain(t *testing.T) {
	for what, breaks := range map[string]func(*board){
		"on":        func(b *board) { b.state = bmc.On },
		"no answer": func(b *board) { b.fails = errors.New("it is busy") },
	} {
		d := darken(t, fence.Power, "sled2", "sled3")
		d.wait(64*time.Second, "sled1")
		for range 3 {
			d.board.state, d.board.fails = bmc.Off, nil
			d.wait(terms().Settle-2*time.Second, "sled1")
			breaks(d.board)
			if vm := d.wait(2*time.Second, "sled1"); vm.Status.Ended != nil {
				t.Errorf("%s: %+v", what, vm.Status)
			}
		}
	}
}

func TestABMCThatRefusesIsSaidOnTheVM(t *testing.T) {
	d := darken(t, fence.Power, "sled2", "sled3")
	d.board.refuses = errors.New("403 Forbidden: insufficient privileges")
	d.holds(d.wait(61*time.Second, "sled1"), 1, "insufficient privileges")
	d.holds(d.wait(9*time.Second, "sled1"), 2, "insufficient privileges")
	d.board.fails = &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}
	d.holds(d.wait(time.Minute, "sled1"), 2, "its BMC: dial: i/o timeout")
	if o := d.bmc("sled1"); o.Status.Power != "" || !meta.IsStatusConditionFalse(o.Status.Conditions, api.ConditionAnswers) {
		t.Errorf("%+v", o.Status)
	}
	d.board.fails, d.board.refuses = nil, nil
	d.wait(2*time.Second, "")
	d.runs(1)
	if vm := d.look(); vm.Status.Phase != api.PhaseRunning {
		t.Errorf("its sled is back, and it is %s", vm.Status.Phase)
	}
	if d.wait(time.Minute, ""); d.board.cuts != 2 {
		t.Errorf("a sled that answers was powered off: %d times", d.board.cuts)
	}
}

func TestASledIsSpared(t *testing.T) {
	t.Run("most sleds are silent", func(t *testing.T) {
		d := darken(t, fence.Power, "sled2", "sled3")
		d.holds(d.wait(2*time.Minute, "sled1", "sled2"), 0, "2 of 3 sleds are silent")
		var sled2 corev1.Node
		d.ok(d.store.Get(t.Context(), client.ObjectKey{Name: "sled2"}, &sled2))
		sled2.Spec.Unschedulable = true // it is being repaired
		d.ok(d.store.Update(t.Context(), &sled2))
		d.holds(d.wait(2*time.Second, "sled1", "sled2"), 1, "was asked to power it off")
	})
	t.Run("a VM under hold is on it", func(t *testing.T) {
		d := darken(t, fence.Power, "sled2", "sled3")
		d.ok(d.store.Create(t.Context(), &api.VirtualMachine{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "held"}, Spec: api.VirtualMachineSpec{CPUs: 1, Memory: resource.MustParse("1Gi"), Restart: "hold"},
		}))
		d.ok(d.store.Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "held-1", Labels: map[string]string{api.LabelSled: "true", api.LabelVM: "held"}}, Spec: corev1.PodSpec{NodeName: "sled1"},
		}))
		d.holds(d.wait(2*time.Minute, "sled1"), 0, "VM default/held, whose restart is hold")
		o := d.bmc("sled1")
		o.Spec.Held = api.HeldEnd
		d.ok(d.store.Update(t.Context(), o))
		d.holds(d.wait(2*time.Second, "sled1"), 1, "was asked to power it off")
	})
	t.Run("its policy is hold", func(t *testing.T) {
		d := darken(t, fence.Hold, "sled2", "sled3")
		d.board.state = bmc.Off
		d.holds(d.wait(5*time.Minute, "sled1"), 0, "policy hold waits")
	})
	t.Run("the leases are not read", func(t *testing.T) {
		d := darken(t, fence.Power, "sled2", "sled3")
		d.wait(50*time.Second, "sled1")
		d.c.view.silence["sled1"] = fence.Silence{Counted: time.Hour}
		d.c.view.heard = time.Now().Add(-time.Minute)
		d.look()
		if o := d.bmc("sled1"); o.Status.PoweredOff != nil {
			t.Errorf("%+v", o.Status)
		}
		d.holds(d.look(), 0, "cannot read the leases")
	})
	t.Run("it has no BMC", func(t *testing.T) {
		d := darken(t, fence.Power, "sled2", "sled3")
		d.ok(d.store.Delete(t.Context(), &api.SledBMC{ObjectMeta: metav1.ObjectMeta{Name: "sled1"}}))
		d.holds(d.wait(2*time.Minute, "sled1"), 0, "there is no SledBMC of that name")
	})
}

func TestWhatIsWrongWithABMCIsNamed(t *testing.T) {
	d := darken(t, fence.Power, "sled2", "sled3")
	d.name("sled2", "10.0.0.5", nil)
	d.name("sled3", "10.0.0.7", func(o *api.SledBMC) { o.Spec.Secret = "none" })
	for sled, says := range map[string]string{"sled1": "address: it is that of SledBMC sled2", "sled3": "secret: "} {
		is := meta.FindStatusCondition(d.bmc(sled).Status.Conditions, api.ConditionAnswers)
		if is == nil || is.Status != metav1.ConditionFalse || is.Reason != "Invalid" || !strings.HasPrefix(is.Message, says) {
			t.Errorf("%s: %+v", sled, is)
		}
	}
	d.board.state = bmc.Off
	d.holds(d.wait(2*time.Minute, "sled1"), 0, "one of them is of another sled")
}

// What a BMC was asked for before a run is known to be started proves nothing about the run.
func TestAnEarlierAnswerIsAboutNoLaterRun(t *testing.T) {
	var now time.Duration
	s := newSuspects()
	s.now = func() time.Duration { return now }
	off := func(run types.UID) time.Duration { return s.evidence(fence.Evidence{}, "sled1", run).OffFor }
	s.want("sled1", "a")
	for ; now < 10*time.Second; now += time.Second {
		begun, wanted := s.asks("sled1")
		s.answered("sled1", begun, now, wanted)
	}
	if off("a") != 9*time.Second || off("b") != 0 {
		t.Fatalf("a %v, b %v", off("a"), off("b"))
	}
	begun, _ := s.asks("sled1")
	asked := now
	s.want("sled1", "b")
	now += time.Second
	s.answered("sled1", begun, asked, true)
	if off("a") != 0 || off("b") != 0 {
		t.Errorf("an answer that was asked for before: a %v, b %v", off("a"), off("b"))
	}
	now += isWanted + time.Second
	if _, wanted := s.asks("sled1"); wanted {
		t.Error("it is asked on for nothing")
	}
}

// A claim that was not started is revoked before its sled is powered off.
func TestAClaimIsRevokedBeforeItsSledIsPoweredOff(t *testing.T) {
	d := darken(t, fence.Power, "sled2", "sled3")
	pod := d.pod(1)
	pod.Status = corev1.PodStatus{}
	d.ok(d.store.Status().Update(t.Context(), pod))
	d.board.state = bmc.Off
	if vm := d.wait(14*time.Second, "sled1"); vm.Status.Ended != nil || d.pod(1).DeletionTimestamp != nil {
		t.Fatalf("%+v", vm.Status)
	}
	if _, wanted := d.c.suspects.asks("sled1"); wanted {
		t.Error("the BMC is asked before the claim is revoked")
	}
	d.wait(2*time.Second, "sled1")
	if d.pod(1).DeletionTimestamp == nil {
		t.Error("its claim stands")
	}
	if vm := d.wait(terms().Settle+4*time.Second, "sled1"); vm.Status.Ended == nil || vm.Status.Ended.Proof != string(fence.PowerOff) {
		t.Fatalf("%+v", vm.Status)
	}
}
