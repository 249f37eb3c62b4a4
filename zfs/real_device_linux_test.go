package zfs_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"
)

// nameOf is BLKZNAME of OpenZFS (include/sys/fs/zfs.h): it asks a device which volume it is.
const nameOf = 0x8100127D

// deviceOf is the device of a volume. Without udev no name leads to it: each is asked.
func deviceOf(volume string) (device string, there bool) {
	devices, err := filepath.Glob("/dev/zd*")
	if err != nil {
		return "", false
	}
	for _, device := range devices {
		f, err := os.Open(device)
		if err != nil {
			continue
		}
		var name [256]byte
		_, _, failed := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), nameOf, uintptr(unsafe.Pointer(&name)))
		text, _, _ := strings.Cut(string(name[:]), "\x00")
		if err := f.Close(); err == nil && failed == 0 && text == volume {
			return device, true
		}
	}
	return "", false
}
