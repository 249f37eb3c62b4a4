package image_test

import (
	"bytes"
	"io"
	"os"
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/image"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/test/hosttest"
	"github.com/sledctl/sledctl/test/steptest"
)

// What is written to a volume is the disk; its holes are not written.
func TestSteps(t *testing.T) {
	const device = "/dev/zvol/rdsk/rpool/v"
	disk := make([]byte, 1<<20)
	copy(disk, "a disk")
	copy(disk[700<<10:], "that is mostly zeros")
	i, err := image.Open(t.Context(), "disk.raw", bytes.NewReader(disk), int64(len(disk)))
	if err != nil {
		t.Fatal(err)
	}
	var done int64
	step := image.Write{Image: i, From: "disk.raw", Device: device, Progress: func(n int64) { done = n }}
	read := func(h host.Host) []byte {
		f, err := h.Files().Open(device, os.O_RDONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		got := make([]byte, len(disk))
		if _, err := f.ReadAt(got, 0); err != nil && err != io.EOF {
			t.Fatal(err)
		}
		return got
	}
	steptest.Conform(t, steptest.Case{Step: step, Sled: func(t *testing.T) steptest.Sled {
		s := sim.New(sim.Options{}, hosttest.Files)
		t.Cleanup(s.Close)
		h := s.Host()
		r, err := h.Run(t.Context(), host.Command{Program: "zfs", Args: []string{"create", "-s", "-V", "2M", "rpool/v"}})
		if err != nil || r.Exit != 0 {
			t.Fatal(err, r)
		}
		return steptest.Sled{Host: h, State: func() any { return string(read(h)) }}
	}})
	s := sim.New(sim.Options{}, hosttest.Files)
	defer s.Close()
	if _, err := s.Host().Run(t.Context(), host.Command{Program: "zfs", Args: []string{"create", "-s", "-V", "2M", "rpool/v"}}); err != nil {
		t.Fatal(err)
	}
	if err := step.Do(t.Context(), s.Host()); err != nil || done != int64(len(disk)) || !bytes.Equal(read(s.Host()), disk) {
		t.Errorf("%d of %d bytes: %v", done, len(disk), err)
	}
}
