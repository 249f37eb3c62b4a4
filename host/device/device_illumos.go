package device

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// Version opens a node, asks it for its version by ioctl(2) and closes it. The request takes
// no argument, and its value is the version. The node of vmm is opened with O_EXCL only
// (vmm_open in usr/src/uts/intel/io/vmm/vmm_sol_dev.c), which keeps no other process out.
// Errors: *fs.PathError.
func Version(name string, request int) (int, error) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_EXCL|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return 0, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	defer func() { _ = unix.Close(fd) }()
	version, err := unix.IoctlSetIntRetInt(fd, request, 0)
	switch {
	case err != nil:
		return 0, &fs.PathError{Op: "ioctl", Path: name, Err: err}
	case version <= 0:
		return 0, notOne(name)
	}
	return version, nil
}
