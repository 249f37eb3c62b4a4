package zfs

import (
	"fmt"
	"slices"
	"strings"
)

// Pool is an imported pool. Sizes are bytes, and 0 where the pool's health does
// not let zpool know.
type Pool struct {
	Name string
	// GUID, a decimal number, is the pool's identity.
	GUID string
	// Health is "ONLINE", "DEGRADED", "FAULTED", "OFFLINE", "REMOVED",
	// "UNAVAIL" or "SUSPENDED" (zpool(8)).
	Health                string
	Size, Allocated, Free uint64
	// Failmode is what a pool does when its devices do not answer: "wait",
	// "continue" with errors, or "panic".
	Failmode string
	Devices  []Device
}

// Answers says whether it can be asked about its datasets. Of others zfs tells
// nothing, or waits for a disk that may never come back.
func (p Pool) Answers() bool { return p.Health == "ONLINE" || p.Health == "DEGRADED" }

// InMemory says whether the pool lies on a RAM disk: a reboot empties it.
//
// Guess ramdisk-in-device-name: the root of a system that boots into RAM lies on a pool whose
// device has `ramdisk` in its name.
// Check: `zpool list -v rpool` on a Helios that was booted from an image
func (p Pool) InMemory() bool {
	return slices.ContainsFunc(p.Devices, func(d Device) bool { return strings.Contains(d.Name, "ramdisk") })
}

// Importable is a pool that was found on devices and is not imported.
type Importable struct {
	Name, GUID string
	// State is that of a Pool's Health.
	State string
	// Status is zpool's text on why the pool should not be imported, or what is wrong
	// with it; empty for nothing.
	Status string
	// Foreign says that another system, or this one under another host id, was
	// the last to use it: importing it needs Force.
	Foreign bool
	Devices []Device
}

// Device is a disk, slice or file of a pool. What groups them is left out.
type Device struct {
	// Name is as zpool prints it: a path for imported pools, for others a disk's
	// name alone; a number for one that is missing.
	// zpool shows it without the directory /dev/dsk, and without the first slice,
	// which stands for a whole disk (zpool_vdev_name of
	// usr/src/lib/libzfs/common/libzfs_pool.c).
	Name string
	// State is "ONLINE" and so on; empty where this zpool does not tell.
	State string
	// Use is "" for data, else zpool's word: "log", "cache", "spare" …
	Use string
}

// ValidatePool says whether a pool may have this name: a first part of a
// dataset's, and none of the words that zpool keeps for itself (zpool_name_valid
// of libzfs_pool.c). The error is a *NameError.
func ValidatePool(s string) error {
	reason := badDataset(s)
	if reason == "" && strings.Contains(s, "/") {
		reason = "is a dataset's"
	}
	for _, word := range []string{"mirror", "raidz", "spare", "log"} {
		if reason == "" && strings.HasPrefix(s, word) {
			reason = fmt.Sprintf("begins with %q, which zpool keeps for itself", word)
		}
	}
	if reason != "" {
		return &NameError{What: "pool", Name: s, Reason: reason}
	}
	return nil
}

// validateDevice accepts what zpool create takes for a device and nothing that
// it would take for anything else.
func validateDevice(s string) error {
	reason := ""
	switch {
	case s == "":
		reason = "empty"
	case s[0] == '-':
		reason = "zpool would take it for an option"
	case strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		reason = "a blank or control character: listings could not be read"
	case !strings.HasPrefix(s, "/") && (grouping(s) || strings.Contains(s, "/")):
		reason = "neither a path nor a disk"
	}
	if reason != "" {
		return &NameError{What: "device", Name: s, Reason: reason}
	}
	return nil
}
