package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sledctl/sledctl/fleet/bmc/bmctest"
)

const powered = `apiVersion: sledctl.dev/v1alpha1
kind: VirtualMachine
metadata: {name: powered}
spec: {cpus: 1, memory: 1Gi, restart: power}
`

// boards are BMCs of all sleds, and their SledBMCs. Each cuts the power of its sled.
func (f *Fleet) boards(protocol string) map[string]*bmctest.Sled {
	f.t.Helper()
	all := map[string]*bmctest.Sled{}
	for name, s := range f.sleds {
		board := &bmctest.Sled{ID: fmt.Sprintf("4c4c4544-0039-4a10-8054-b7c04f5835%s2", name[len(name)-1:]), Cut: func() { f.cutPower(s) }}
		all[name] = board
		address, more := "", ""
		if protocol == "redfish" {
			r := bmctest.StartRedfish(board)
			f.t.Cleanup(r.Close)
			address, more = r.Address, ", fingerprint: "+r.Fingerprint
		} else {
			i, err := bmctest.StartIPMI(board)
			f.ok(err)
			f.t.Cleanup(func() { _ = i.Close() })
			address = i.Address
		}
		f.Apply(fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata: {name: %[1]s, namespace: sledctl-bmcs}
stringData: {username: %[2]s, password: %[3]s}
---
apiVersion: sledctl.dev/v1alpha1
kind: SledBMC
metadata: {name: %[1]s}
spec: {protocol: %[4]s, address: "%[5]s", secret: %[1]s, uuid: %[6]s%[7]s}
`, name, bmctest.Username, bmctest.Password, protocol, address, board.ID, more))
	}
	f.Until("every BMC answers", func() bool {
		return strings.Count(f.Must("get", "bmc", "--no-headers"), " On ") == len(f.sleds)
	})
	f.t.Cleanup(func() {
		if f.t.Context().Err() == nil { // else the fleet ends, too
			f.Must("delete", "bmc", "--all")
		}
	})
	return all
}

// cutPower is what a sled is without power: its machine stops at once, and with it all that runs on it.
func (f *Fleet) cutPower(s *Sled) {
	s.mu.Lock()
	s.dark = true
	for _, stop := range s.stop {
		stop()
	}
	s.mu.Unlock()
	if err := s.CutPower(context.Background()); err != nil {
		f.t.Errorf("cut the power of sled %s: %v", s.Name, err)
	}
	s.parts.Wait()
}

// powerOn is the button: the machine boots, and its services start.
func (f *Fleet) powerOn(s *Sled) {
	f.t.Helper()
	s.mu.Lock()
	s.dark = false
	s.mu.Unlock()
	f.ok(s.Sledctl(f.t.Context(), "bootstrap"))
	f.Run(s, "agent", s.Agent)
	f.ok(s.Answers(f.t.Context()))
	f.Run(s, "node", s.node)
	f.Run(s, "guard", s.Guard)
}

// said is a field of the VM.
func (f *Fleet) said(path string) string {
	f.t.Helper()
	return f.Must("get", "vm", "powered", "-o", "jsonpath={"+path+"}")
}

// runsPowered has a VM under power, and counts its copies: the sled that it runs on, with its BMC.
func (f *Fleet) runsPowered(protocol string) (on *Sled, board *bmctest.Sled, stop func() int) {
	f.t.Helper()
	boards := f.boards(protocol)
	f.Apply(powered)
	f.Running("powered")
	on = f.sleds[f.On("powered")[0]]
	return on, boards[on.Name], f.copies("powered")
}

// aSledIsPoweredOff: a VM under power holds while the BMC of its sled refuses, and says so. It runs
// elsewhere once the sled is off, and never twice, although the BMC reports that too early; and the
// sled that is powered on again does not run it.
func aSledIsPoweredOff(t *testing.T, f *Fleet) {
	cut, board, stop := f.runsPowered("redfish")

	board.Fail(bmctest.Faults{Refuses: true, Slow: 200 * time.Millisecond})
	cut.cable.Cut()
	const fenced = `.status.conditions[?(@.type=="Fenced")].message`
	f.Until("the VM says that the BMC refuses", func() bool { return strings.Contains(f.said(fenced), "insufficient privileges") })
	board.Fail(bmctest.Faults{Gone: true})
	f.Until("the VM says that the BMC does not answer", func() bool { return strings.Contains(f.said(fenced), "its BMC: Get") })
	time.Sleep(5 * time.Second)
	if on := f.On("powered"); len(on) != 1 || on[0] != cut.Name || f.said(".status.generation") != "1" || f.said(".status.phase") != "Unknown" {
		t.Fatalf("it runs on %v, and not only on sled %s: %s", on, cut.Name, f.said(".status"))
	}
	board.Fail(bmctest.Faults{})
	cut.cable.Join()
	f.Running("powered")
	asked := board.Asked()

	board.Fail(bmctest.Faults{Late: time.Second})
	cut.cable.Cut()
	took := f.elsewhere("powered", cut)
	t.Logf("it runs elsewhere %v after sled %s was cut off, whose BMC was asked %d times to power it off, %d of them in vain", took, cut.Name, board.Asked(), asked)
	if got := f.said(".status.ended.proof"); got != "power" || !board.Off() {
		t.Errorf("the proof is %q; off: %v", got, board.Off())
	}
	board.Fail(bmctest.Faults{})
	board.On()
	f.powerOn(cut)
	cut.cable.Join()
	f.Until("the sled is Ready", f.Ready)
	time.Sleep(3 * time.Second)
	if most := stop(); most != 1 {
		t.Errorf("%d copies ran at once", most)
	}
	if on := f.On("powered"); len(on) != 1 || on[0] == cut.Name || f.said(".status.generation") != "2" {
		t.Errorf("it runs on %v, as generation %s", on, f.said(".status.generation"))
	}
	f.rejoin(cut)
}

// aBMCThatLiesTooLong: the story would find two copies. A BMC that reports a sled off for longer than
// --settle while it runs breaks what the rule rests on.
func aBMCThatLiesTooLong(t *testing.T, f *Fleet) {
	cut, board, stop := f.runsPowered("ipmi")
	board.Fail(bmctest.Faults{Late: 5 * time.Minute})
	cut.cable.Cut()
	f.elsewhere("powered", cut)
	if most := stop(); most != 2 {
		t.Errorf("%d copies ran at once", most)
	}
	board.Fail(bmctest.Faults{})
	board.On()
	f.powerOn(cut)
	f.rejoin(cut)
}

// elsewhere waits until a VM runs on another sled.
func (f *Fleet) elsewhere(vm string, than *Sled) time.Duration {
	f.t.Helper()
	return f.Until(vm+" runs elsewhere", func() bool {
		words := strings.Fields(f.Must("get", "vm", vm, "--no-headers"))
		return len(words) > 2 && words[1] == "Running" && words[2] != than.Name
	})
}

// The account of a BMC is the controller's to read, and no other Secret.
func theControllerReadsNoOtherSecret(t *testing.T, f *Fleet) {
	for namespace, want := range map[string]string{"sledctl-bmcs": "yes", "sledctl-system": "no", "kube-system": "no", "default": "no"} {
		said, err := f.Try("auth", "can-i", "get", "secrets/one", "-n", namespace, "--as", "system:serviceaccount:sledctl-system:sledctl-fleet")
		if got := strings.TrimSpace(said); got != want {
			t.Errorf("it may read a Secret in %s: %s, %v", namespace, got, err)
		}
	}
	if said, err := f.Try("auth", "can-i", "list", "secrets", "-n", "sledctl-bmcs", "--as", "system:serviceaccount:sledctl-system:sledctl-fleet"); err == nil {
		t.Errorf("it may list them: %s", said)
	}
	for field, bad := range map[string]string{
		"spec.protocol": "protocol: telnet, address: a, secret: a", "spec.address": `protocol: ipmi, address: "https://a", secret: a`,
		"fingerprint": "protocol: ipmi, address: a, secret: a, fingerprint: " + strings.Repeat("0", 64), "spec.uuid": "protocol: ipmi, address: a, secret: a, uuid: sled1",
		"spec.secret": "protocol: ipmi, address: a", "spec.held": "protocol: ipmi, address: a, secret: a, held: perhaps",
	} {
		err := f.Refused("apiVersion: sledctl.dev/v1alpha1\nkind: SledBMC\nmetadata: {name: sled1}\nspec: {" + bad + "}\n")
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if err := f.Refused("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: good}\n"); err != nil {
		t.Error(errors.Join(errors.New("all is refused"), err))
	}
}
