// Package clock reads the monotonic clock of the machine, which two processes agree about and
// which nobody sets: on illumos it is gethrtime(3C). Package time gives no access to it.
package clock

import (
	_ "unsafe" // for go:linkname
)

// Now is the nanoseconds of the clock since some moment in this boot.
//
//go:linkname Now runtime.nanotime
func Now() int64
