// Package device asks a device node for the version of its interface. The query changes
// nothing, and needs no privileges but those of opening the node.
package device

import (
	"io/fs"
	"syscall"
)

// notOne is the error for a node that gives no version: a version is above 0.
func notOne(name string) error { return &fs.PathError{Op: "ioctl", Path: name, Err: syscall.ENOTTY} }
