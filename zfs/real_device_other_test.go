//go:build !linux

package zfs_test

import "os"

// deviceOf is the device of a volume.
func deviceOf(volume string) (device string, there bool) {
	device = "/dev/zvol/rdsk/" + volume
	_, err := os.Stat(device)
	return device, err == nil
}
