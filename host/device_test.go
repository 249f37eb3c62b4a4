package host_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/host"
)

// A device below the root answers; a node that is no device of the kernel's is not opened.
func TestDeviceVersion(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "dev/vmm"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{string(host.VMM): "18\n", "/dev/vmm/vm": "18\n"} {
		if err := os.WriteFile(root+name, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var lines []host.Line
	h := host.Trace(host.NewIllumos(host.IllumosOptions{Root: root}), func(e host.Event) { lines = append(lines, e.Line) })
	if got, err := host.ReadOnly(h).DeviceVersion(t.Context(), host.VMM); got != 18 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
	if len(lines) != 1 || lines[0].Mutates() || lines[0].Text != "# ioctl(/dev/vmmctl, 0x564d04)" {
		t.Errorf("%+v", lines)
	}
	if _, err := h.DeviceVersion(t.Context(), host.Viona); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no node: %v", err)
	}
	if _, err := h.DeviceVersion(t.Context(), "/dev/vmm/vm"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a VM's node: %v", err)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.DeviceVersion(done, host.VMM); !errors.Is(err, context.Canceled) {
		t.Errorf("too late: %v", err)
	}
	crashed := host.Crash(h, 0, host.CrashBefore)
	if got, err := crashed.DeviceVersion(t.Context(), host.VMM); got != 18 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
	crashed.Die()
	if _, err := crashed.DeviceVersion(t.Context(), host.VMM); !errors.Is(err, host.ErrCrashed) {
		t.Errorf("after the crash: %v", err)
	}
}

// The numbers are those of the headers.
func TestDeviceRequests(t *testing.T) {
	for d, want := range map[host.Device]string{host.VMM: "0x564d04", host.Viona: "0x564303"} {
		if !strings.HasSuffix(d.Line().Text, ", "+want+")") {
			t.Errorf("%s: %s", d, d.Line().Text)
		}
	}
}
