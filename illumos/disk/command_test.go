package disk

import (
	"testing"

	"github.com/sledctl/sledctl/host"
)

func TestLines(t *testing.T) {
	for want, c := range map[string]host.Command{
		"fstyp -a /dev/rdsk/c11t0d0s0":   contentCommand(raw("/dev/dsk/c11t0d0s0")),
		"fstyp -a '/var/tmp/u2 a.vdev'":  contentCommand(raw("/var/tmp/u2 a.vdev")),
		"fstyp -a /dev/rdsk/c11t0d0":     contentCommand(raw("/dev/rdsk/c11t0d0")),
		"fstyp -a /devices/pci@0,0:a,wd": contentCommand(raw("/devices/pci@0,0:a,wd")),
	} {
		if c.Shell() != want || !c.ReadOnly {
			t.Errorf("%s (read-only %v), want %s", c.Shell(), c.ReadOnly, want)
		}
	}
}
