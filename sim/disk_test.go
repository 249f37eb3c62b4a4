package sim

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
)

// A pool that has lost its only disk answers every access with EIO, with
// failmode=continue (zpoolprops(7)); the others go on.
func TestALostDiskTakesItsFilesWithIt(t *testing.T) {
	s := newSledFor(t, Options{})
	files := s.Host().Files()
	var disk, lost, other string
	change := func(fn func(*world.Tx)) {
		t.Helper()
		if err := s.World().Update(t.Context(), func(tx *world.Tx) error { fn(tx); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	change(func(tx *world.Tx) {
		disk, lost, other = tx.State.Disks[0].Name, "/"+tx.State.Disks[0].Pool, "/"+tx.State.Disks[1].Pool
	})
	open, err := files.Open(lost+"/ledger", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	write(t, files, lost+"/kept", "x")

	change(func(tx *world.Tx) { tx.LoseDisk(disk) })
	_, readErr := host.ReadFile(files, lost+"/kept")
	_, writeErr := open.Write([]byte("x"))
	_, lockErr := files.Lock(t.Context(), lost+"/lock", host.TryExclusive)
	for what, err := range map[string]error{
		"read": readErr, "write to an open file": writeErr, "lock": lockErr, "sync": open.Sync(),
		"append": files.Append(lost+"/kept", nil), "mkdir": files.Mkdir(lost+"/d", 0o755), "remove": files.Remove(lost + "/kept"),
		"rename": files.Rename(lost+"/kept", lost+"/k"), "chmod": files.Chmod(lost+"/kept", 0), "sync of a directory": files.SyncDir(lost),
	} {
		if !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := files.Mkdir(other+"/d", 0o755); err != nil {
		t.Errorf("another disk: %v", err)
	}

	change(func(tx *world.Tx) { tx.ReturnDisk(disk) })
	if data, err := host.ReadFile(files, lost+"/kept"); err != nil || string(data) != "x" {
		t.Errorf("with the disk back: %q, %v", data, err)
	}

	change(func(tx *world.Tx) { tx.LoseDisk(disk) })
	if err := s.Reboot(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := files.Stat(lost + "/kept"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after a reboot without the disk: %v", err)
	}
	change(func(tx *world.Tx) { tx.ReturnDisk(disk) })
	must(t, s, "zpool", "import", lost[1:])
	if data, err := host.ReadFile(files, lost+"/kept"); err != nil || string(data) != "x" {
		t.Errorf("imported again: %q, %v", data, err)
	}
}
