package e2e

import (
	"context"
	"testing"
	"time"
)

const leased = `apiVersion: sledctl.dev/v1alpha1
kind: VirtualMachine
metadata: {name: leased}
spec: {cpus: 1, memory: 1Gi, restart: lease}
`

// copies counts how many copies of a VM run at most, until it is stopped.
func (f *Fleet) copies(vm string) (stop func() int) {
	ctx, cancel := context.WithCancel(context.Background())
	most := make(chan int)
	go func() {
		n := 0
		for ctx.Err() == nil {
			n = max(n, len(f.On(vm)))
			time.Sleep(20 * time.Millisecond)
		}
		most <- n
	}()
	return func() int { cancel(); return <-most }
}

// aSledIsCutOff: a VM under a lease runs elsewhere, and at no instant twice, since the guard of
// its sled has halted it before.
func aSledIsCutOff(t *testing.T, f *Fleet) {
	cut, took, most := f.cutOff("leased")
	t.Logf("it runs elsewhere %v after sled %s was cut off", took, cut.Name)
	if took > 40*time.Second { // 12 s by its terms; by what Kubernetes notices, 54 s were seen
		t.Errorf("that took %v", took)
	}
	if most != 1 {
		t.Errorf("%d copies ran at once", most)
	}
	f.rejoin(cut)
}

// withoutAGuardThereAreTwo: the test would find two copies, and it is the guard that there are
// none.
func withoutAGuardThereAreTwo(t *testing.T, f *Fleet) {
	for _, s := range f.sleds {
		s.stop["guard"]()
	}
	cut, took, most := f.cutOff("leased")
	t.Logf("without a guard, it runs elsewhere %v after sled %s was cut off", took, cut.Name)
	if most != 2 {
		t.Errorf("%d copies ran at once", most)
	}
	runs, err := cut.Runs(t.Context()) // the copy that is left is an operator's to end
	f.ok(err)
	f.ok(cut.Sledctl(t.Context(), "instance", "keeper", runs[0], "operator"))
	f.ok(cut.Sledctl(t.Context(), "instance", "delete", runs[0]))
	f.rejoin(cut)
	for _, s := range f.sleds {
		f.Run(s, "guard", s.Guard)
	}
}

// cutOff cuts the sled of a VM off, and waits until the VM runs on another one.
func (f *Fleet) cutOff(vm string) (cut *Sled, took time.Duration, most int) {
	f.t.Helper()
	f.Apply(leased)
	f.Running(vm)
	cut = f.sleds[f.On(vm)[0]]
	stop := f.copies(vm)
	cut.cable.Cut()
	took = f.elsewhere(vm, cut)
	return cut, took, stop()
}

// rejoin connects a sled again, and leaves the fleet as it was.
func (f *Fleet) rejoin(cut *Sled) {
	f.t.Helper()
	cut.cable.Join()
	f.Until("the sled may run VMs again", func() bool {
		said := f.Must("get", "node", cut.Name, "-o", "jsonpath={.spec.taints[*].key}")
		return said == "sledctl.dev/sled"
	})
	f.Must("delete", "vm", "--all", "--timeout=60s")
}
