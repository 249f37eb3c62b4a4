package doctor

import (
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/system"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/hosttest"
)

func TestTheDevices(t *testing.T) {
	on := func(kernel string, vmm, viona int) Seen {
		return Seen{Kernel: system.ParseKernel(kernel), VMM: vmm, Viona: viona}
	}
	const omnios = "omnios-r151058-1"
	judgeAll(t, map[string]judged{
		"VMM":            {"vmm", on(omnios, 18, 0), OK, "/dev/vmmctl has API version 18"},
		"VMM at least":   {"vmm", on(omnios, 8, 0), OK, ""},
		"VMM old":        {"vmm", on(omnios, 7, 0), Fail, "has API version 7; propolis-server needs 8; upgrade the system"},
		"no VMM":         {"vmm", on(omnios, 0, 0), Fail, "there is no /dev/vmmctl; install the package of bhyve"},
		"viona":          {"viona", on("helios-3.0.1", 0, 7), OK, "/dev/viona has API version 7"},
		"viona older":    {"viona", on(omnios, 0, 5), Warn, "up to Propolis 2dc64374"},
		"viona too old":  {"viona", on(omnios, 0, 1), Fail, "propolis-server needs 6"},
		"no viona":       {"viona", on(omnios, 0, 0), Fail, "then run: pkg install system/bhyve"},
		"none is needed": {"viona", on("joyent_20240111T000000Z", 0, 0), OK, "no VMs on SmartOS"},
	})
}

// The queries pass a host that changes nothing, and each mode answers what its page asks for.
func TestEachModeHasTheDevices(t *testing.T) {
	for _, mode := range []world.Mode{world.OmniOS, world.Helios} {
		sled := sim.New(sim.Options{Mode: mode}, hosttest.Files)
		t.Cleanup(sled.Close)
		for d, least := range map[host.Device]int{host.VMM: vmmNeeded, host.Viona: vionaNeeded} {
			if got, err := queryDevice(d)(t.Context(), host.ReadOnly(sled.Host())); got < least || err != nil {
				t.Errorf("%s on %s: %d, %v", d, mode, got, err)
			}
		}
		if got, err := queryDevice("/dev/vmm/vm")(t.Context(), sled.Host()); got != 0 || err == nil {
			t.Errorf("a VM was opened: %d, %v", got, err)
		}
	}
}
