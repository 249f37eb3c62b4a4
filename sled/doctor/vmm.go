package doctor

import (
	"context"
	"errors"
	"io/fs"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/system"
)

// vmmChecks ask the kernel's devices which version of their interfaces they have.
func vmmChecks() []Check {
	const group = "vmm"
	return []Check{
		{ID: "vmm", Group: group, About: "the kernel runs VMs, with the interface that propolis-server needs", Asks: []Question{askVMM, askKernel}, Judge: judgeVMM},
		{ID: "viona", Group: group, About: "the kernel has NICs for VMs, with the interface that propolis-server needs", Asks: []Question{askViona, askKernel}, Judge: judgeViona},
	}
}

// The versions that a propolis-server asks for when it starts, or it exits
// (lib/propolis/src/vmm/mod.rs and lib/propolis/src/hw/virtio/viona.rs of
// oxidecomputer/propolis). Servers up to 2dc64374 are content with an older viona.
const (
	vmmNeeded   = 8
	vionaNeeded = 6
	vionaOlder  = 2
)

// queryDevice is the version of a device's interface; 0: there is no such device.
func queryDevice(d host.Device) func(context.Context, host.Host) (int, error) {
	return func(ctx context.Context, h host.Host) (int, error) {
		version, err := h.DeviceVersion(ctx, d)
		if errors.Is(err, fs.ErrNotExist) {
			return 0, nil
		}
		return version, err
	}
}

func judgeVMM(s Seen) Finding { return judgeDevice(s, host.VMM, s.VMM, vmmNeeded, vmmNeeded) }

func judgeViona(s Seen) Finding { return judgeDevice(s, host.Viona, s.Viona, vionaNeeded, vionaOlder) }

// judgeDevice compares a version with what a server of today needs, and with what an older
// one does.
func judgeDevice(s Seen, d host.Device, version, needed, older int) Finding {
	switch {
	case s.Kernel.Distribution == system.SmartOS:
		return fine("sledctl runs no VMs on SmartOS")
	case version == 0:
		return fails("there is no %s", d).byHand("install the package of bhyve, and turn on virtualization in the firmware").then("pkg install system/bhyve")
	case version < older:
		return fails("%s has API version %d; propolis-server needs %d", d, version, needed).byHand("upgrade the system")
	case version < needed:
		return warns("%s has API version %d; only servers up to Propolis 2dc64374 (2026-01-06) run with less than %d", d, version, needed).byHand("upgrade the system, or keep such a server")
	}
	return fine("%s has API version %d, of at least %d", d, version, needed)
}
