package sim

import (
	"context"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/boot"
)

// deviceFaults are the faults that a query of a device can suffer. Words: ioctl, the node.
func deviceFaults() []string {
	return []string{world.FaultOldKernel, world.FaultNoDevice, world.FaultFail}
}

// DeviceVersion asks the simulated kernel.
func (h *simHost) DeviceVersion(ctx context.Context, d host.Device) (version int, err error) {
	if d.Request() == 0 {
		return 0, &fs.PathError{Op: "ioctl", Path: string(d), Err: syscall.ENOTTY}
	}
	if _, err := h.sled.files.Stat(string(d)); err != nil {
		return 0, err
	}
	words := []string{"ioctl", string(d)}
	look, fault := h.sled.world.View, (*world.Fault)(nil)
	if err := h.sled.world.View(ctx, func(tx *world.Tx) error {
		if tx.Expects(words, deviceFaults()...) {
			look = h.sled.world.Update
		}
		return nil
	}); err != nil {
		return 0, fmt.Errorf("%s does not answer: %w", d, err)
	}
	err = look(ctx, func(tx *world.Tx) error {
		if tx.Expects(words, deviceFaults()...) {
			fault = tx.TakeFault(words, deviceFaults()...)
		}
		version = boot.DeviceVersion(tx.State.Mode, d, fault != nil && fault.Name == world.FaultOldKernel)
		return nil
	})
	switch {
	case err != nil:
		return 0, fmt.Errorf("%s does not answer: %w", d, err)
	case fault != nil && fault.Name == world.FaultNoDevice:
		return 0, &fs.PathError{Op: "open", Path: string(d), Err: syscall.ENOENT}
	case fault != nil && fault.Name == world.FaultFail:
		return 0, &fs.PathError{Op: "ioctl", Path: string(d), Err: syscall.EIO}
	}
	return version, nil
}
