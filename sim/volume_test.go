package sim

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/sledctl/sledctl/host"
)

// What is written to a volume is what is read from it, by both of its devices, in a new one zeros; what
// it was when a snapshot was taken the snapshot keeps, and nothing of a volume that is destroyed is left.
func TestVolumesHoldWhatIsWritten(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	s := newSledFor(t, Options{})
	h := s.Host()
	run := func(args ...string) {
		t.Helper()
		r, err := h.Run(t.Context(), host.Command{Program: "zfs", Args: args})
		if err != nil || r.Exit != 0 {
			t.Fatalf("zfs %v: %v %s", args, err, r.Stderr)
		}
	}
	read := func(device string, at int64) []byte {
		t.Helper()
		f, err := h.Files().Open(device, os.O_RDONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		p := make([]byte, 4)
		if _, err := f.ReadAt(p, at); err != nil {
			t.Fatal(err)
		}
		return p
	}
	properties := func(names, dataset string) string {
		t.Helper()
		r, err := h.Run(t.Context(), host.Command{Program: "zfs", Args: []string{"get", "-Hp", "-o", "value", names, dataset}})
		if err != nil || r.Exit != 0 {
			t.Fatalf("%v %s", err, r.Stderr)
		}
		return strings.Join(strings.Fields(string(r.Stdout)), " ")
	}
	const raw, block = "/dev/zvol/rdsk/rpool/v", "/dev/zvol/dsk/rpool/v"
	run("create", "-s", "-V", "64M", "rpool/v")
	if got := read(raw, 32<<20); !bytes.Equal(got, make([]byte, 4)) {
		t.Errorf("a new volume has %v", got)
	}
	f, err := host.OpenDevice(h.Files(), raw, "a test")
	if err != nil {
		t.Fatal(err)
	}
	for at, text := range map[int64]string{0: "here", 32 << 20: "late"} {
		if n, err := f.WriteAt([]byte(text), at); n != 4 || err != nil {
			t.Fatal(n, err)
		}
	}
	if _, err := f.WriteAt([]byte("beyond"), 64<<20); !errors.Is(err, syscall.EIO) {
		t.Errorf("%v", err)
	}
	if n, err := f.WriteAt([]byte("across"), 64<<20-2); n != 2 || !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("%d, %v", n, err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
	run("snapshot", "rpool/v@s")
	if f, err = host.OpenDevice(h.Files(), raw, "a test"); err == nil {
		_, err = f.WriteAt([]byte("more"), 0)
		err = errors.Join(err, f.Close())
	}
	if err != nil || string(read(raw, 0)) != "more" || string(read(block, 32<<20)) != "late" {
		t.Errorf("%v: %q, %q", err, read(raw, 0), read(block, 32<<20))
	}
	run("clone", "-o", "sledctl:x=y", "rpool/v@s", "rpool/w")
	run("set", "volsize=128M", "rpool/w")
	if got := read("/dev/zvol/rdsk/rpool/w", 0); string(got) != "here" {
		t.Errorf("a clone has %q", got)
	}
	if got := read("/dev/zvol/rdsk/rpool/w", 100<<20); !bytes.Equal(got, make([]byte, 4)) {
		t.Errorf("behind the end of its origin a clone has %q", got)
	}
	if got := properties("volsize,volblocksize,refreservation,origin", "rpool/w"); got != "134217728 8192 0 rpool/v@s" {
		t.Errorf("a clone is %s", got)
	}
	run("set", "refreservation=auto", "rpool/w")
	if got := properties("refreservation", "rpool/w"); got != "140509184" {
		t.Errorf("%s bytes are kept for 128 MiB", got)
	}
	run("destroy", "rpool/w")
	trees := func() int {
		entries, err := s.World().Files().ReadDir("/.datasets")
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, e := range entries {
			if e.Mode.IsDir() {
				n++
			}
		}
		return n
	}
	before := trees()
	run("destroy", "rpool/v@s")
	run("destroy", "rpool/v")
	run("create", "-s", "-V", "64M", "rpool/v")
	if got := read(raw, 0); !bytes.Equal(got, make([]byte, 4)) || trees() > before {
		t.Errorf("%q of the one before is left, and %d trees where %d were", got, trees(), before)
	}
}
