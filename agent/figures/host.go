package figures

import (
	"maps"
	"slices"
	"time"

	"github.com/sledctl/sledctl/sled/doctor"
)

// VM is a VM with the processor time that its zone has used.
type VM struct {
	Instance string
	CPU      time.Duration
}

// CPU writes the processor time of VMs.
func CPU(out *Page, vms []VM) {
	out.Family("sledctl_vm_cpu_seconds_total", "counter", "Processor time that the zone of a VM has used since it started.")
	for _, vm := range vms {
		out.Sample("sledctl_vm_cpu_seconds_total", vm.CPU.Seconds(), "vm", vm.Instance)
	}
}

// Counts writes a family of gauges, by a label.
func Counts[K ~string](out *Page, name, help, label string, counts map[K]int) {
	out.Family(name, "gauge", help)
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		out.Sample(name, float64(counts[k]), label, string(k))
	}
}

// Doctor writes what each check came to when doctor last ran.
func Doctor(out *Page, last *doctor.Result) {
	if last == nil {
		return
	}
	out.Family("sledctl_doctor_check", "gauge", "What each check of doctor came to when it last ran: 1 at that result.")
	for _, c := range slices.SortedFunc(slices.Values(last.Checks), func(a, b doctor.Checked) int {
		return map[bool]int{true: -1, false: 1}[a.ID < b.ID]
	}) {
		out.Sample("sledctl_doctor_check", 1, "check", c.ID, "result", string(c.Verdict))
	}
}
