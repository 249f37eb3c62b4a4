package sim

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
	"github.com/sledctl/sledctl/test/hosttest"
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

	change(func(tx *world.Tx) { zfs.LoseDisk(tx, disk) })
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

	change(func(tx *world.Tx) {
		zfs.InsertDisk(tx, disk)
		for _, p := range tx.State.Pools {
			if p.Imported && zfs.Lost(p) {
				_ = zfs.ClearPool(tx, p.Name) // what another disk keeps down stays down
			}
		}
	})
	if data, err := host.ReadFile(files, lost+"/kept"); err != nil || string(data) != "x" {
		t.Errorf("with the disk back: %q, %v", data, err)
	}

	change(func(tx *world.Tx) { zfs.LoseDisk(tx, disk) })
	if err := s.Reboot(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := files.Stat(lost + "/kept"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after a reboot without the disk: %v", err)
	}
	// The system knows of the pool from its cache, and opens it when it is told to
	// (zfs_ioc_clear in usr/src/uts/common/fs/zfs/zfs_ioctl.c).
	if got := output(t, s, "zpool", "list", "-Hpo", "name,size,health", lost[1:]); got != lost[1:]+"\t-\tFAULTED\n" {
		t.Errorf("after a reboot without the disk: %q", got)
	}
	change(func(tx *world.Tx) { zfs.InsertDisk(tx, disk) })
	must(t, s, "zpool", "clear", lost[1:])
	must(t, s, "zfs", "mount", "-a")
	if data, err := host.ReadFile(files, lost+"/kept"); err != nil || string(data) != "x" {
		t.Errorf("opened again: %q, %v", data, err)
	}
}

// update changes the world behind the sled's back.
func update(t *testing.T, s *Sled, fn func(*world.Tx) error) {
	t.Helper()
	if err := s.World().Update(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

// first is the first U.2 disk of a fresh sled, and its pool.
func first(t *testing.T, s *Sled) (disk, pool string) {
	t.Helper()
	update(t, s, func(tx *world.Tx) error {
		i := slices.IndexFunc(tx.State.Disks, func(d *world.Disk) bool { return d.Kind == "u2" })
		disk, pool = tx.State.Disks[i].Name, tx.State.Disks[i].Pool
		return nil
	})
	return disk, pool
}

// failmode=wait blocks all input and output until the device is back and the
// errors are cleared (zpoolprops(7)).
func TestFilesOfASuspendedPoolWaitForItsClearing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{M2: -1, U2: 1, Links: -1}, hosttest.Files)
		defer s.Close()
		disk, pool := first(t, s)
		must(t, s, "zpool", "set", "failmode=wait", pool)
		write(t, s.Host().Files(), "/"+pool+"/kept", "x")
		update(t, s, func(tx *world.Tx) error { zfs.LoseDisk(tx, disk); return nil })
		ended := make(chan error, 1)
		go func() {
			_, err := host.ReadFile(s.Host().Files(), "/"+pool+"/kept")
			ended <- err
		}()
		time.Sleep(time.Hour)
		update(t, s, func(tx *world.Tx) error { zfs.InsertDisk(tx, disk); return nil })
		time.Sleep(time.Hour)
		select {
		case err := <-ended:
			t.Fatalf("it did not wait: %v", err)
		default:
		}
		must(t, s, "zpool", "clear", pool)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A file system with readonly=on (zfsprops(7)): EROFS.
func TestNothingIsWrittenToWhatIsReadOnly(t *testing.T) {
	s := newSledFor(t, Options{})
	_, pool := first(t, s)
	files := s.Host().Files()
	write(t, files, "/"+pool+"/kept", "x")
	tried := func() map[string]error {
		_, create := files.Open("/"+pool+"/new", os.O_CREATE|os.O_WRONLY, 0o600)
		_, open := files.Open("/"+pool+"/kept", os.O_WRONLY, 0)
		return map[string]error{
			"create": create, "open": open, "append": files.Append("/"+pool+"/kept", []byte("y")), "mkdir": files.Mkdir("/"+pool+"/d", 0o755),
			"remove": files.Remove("/" + pool + "/kept"), "rename": files.Rename("/"+pool+"/kept", "/"+pool+"/k"),
			"chmod": files.Chmod("/"+pool+"/kept", 0o600),
		}
	}
	check := func(why string) {
		t.Helper()
		for what, err := range tried() {
			if !errors.Is(err, syscall.EROFS) {
				t.Errorf("%s, %s: %v", why, what, err)
			}
		}
		if data, err := host.ReadFile(files, "/"+pool+"/kept"); err != nil || string(data) != "x" {
			t.Errorf("%s: read %q, %v", why, data, err)
		}
	}
	must(t, s, "zfs", "set", "readonly=on", pool)
	check("a file system")
}

// A quota gives EDQUOT, a full pool and what is reserved for others
// ENOSPC (dsl_dir_tempreserve_impl in usr/src/uts/common/fs/zfs/dsl_dir.c).
func TestWritingEndsWhereTheRoomEnds(t *testing.T) {
	s := newSledFor(t, Options{})
	disk, pool := first(t, s)
	files := s.Host().Files()
	must(t, s, "zfs", "create", "-o", "quota=1M", pool+"/q")
	must(t, s, "zfs", "create", pool+"/q/inner")
	must(t, s, "zfs", "create", pool+"/free")
	block := make([]byte, 300<<10)
	fill := func(name string) error {
		f, err := files.Open(name, os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer f.Close()
		for range 10 {
			if _, err := f.Write(block); err != nil {
				return err
			}
		}
		return nil
	}
	if err := fill("/" + pool + "/q/inner/big"); !errors.Is(err, syscall.EDQUOT) {
		t.Errorf("below a quota: %v", err)
	}
	if err := files.Mkdir("/"+pool+"/q/d", 0o755); err != nil {
		t.Errorf("there is a little room: %v", err)
	}
	if used := strings.TrimSpace(output(t, s, "zfs", "get", "-Hpo", "value", "used", pool+"/q")); len(used) != len("800000") {
		t.Errorf("%s bytes are used", used)
	}
	if err := fill("/" + pool + "/free/big"); err != nil {
		t.Errorf("without a quota: %v", err)
	}
	must(t, s, "zfs", "set", "quota=none", pool+"/q")
	if err := fill("/" + pool + "/q/inner/big"); err != nil {
		t.Errorf("with the quota gone: %v", err)
	}

	update(t, s, func(tx *world.Tx) error { return zfs.FillDisk(tx, disk, 100<<10) })
	if err := files.Append("/"+pool+"/free/big", block); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("in a full pool: %v", err)
	}
	update(t, s, func(tx *world.Tx) error { return zfs.FillDisk(tx, disk, 0) })
	for _, words := range [][]string{{"create", pool + "/more"}, {"create", "-V", "1M", pool + "/vol"}, {"snapshot", pool + "/free@now"}} {
		got, err := s.Host().Run(t.Context(), host.Command{Program: "zfs", Args: words})
		if err != nil || got.Exit != 1 || !strings.HasSuffix(string(got.Stderr), ": out of space\n") {
			t.Errorf("zfs %q: exit %d, %q, %v", words, got.Exit, got.Stderr, err)
		}
	}
	if err := files.Remove("/" + pool + "/free/big"); err != nil {
		t.Errorf("removing in a full pool: %v", err)
	}
	if err := fill("/" + pool + "/free/big"); err != nil {
		t.Errorf("in the room of what was removed: %v", err)
	}
	update(t, s, func(tx *world.Tx) error { zfs.HealDisk(tx, disk); return nil })
	if err := files.Append("/"+pool+"/free/big", block); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

// A disk as a device: zeros where it is blank, labels where it is not, EIO where it
// fails. That is how one tells a blank disk from one that cannot be read.
func TestDisksCanBeRead(t *testing.T) {
	s := newSledFor(t, Options{Blank: true})
	files := s.Host().Files()
	disk, _ := first(t, s)
	blank := func(name string) (bool, error) {
		f, err := files.Open(name, os.O_RDONLY, 0)
		if err != nil {
			return false, err
		}
		defer f.Close()
		data := make([]byte, 512<<10)
		_, err = f.ReadAt(data, 0)
		return strings.Trim(string(data), "\x00") == "", err
	}
	for _, name := range []string{"/dev/rdsk/" + disk, "/dev/rdsk/" + disk + "s0"} {
		if zeros, err := blank(name); !zeros || err != nil {
			t.Errorf("%s of a blank disk: %t, %v", name, zeros, err)
		}
	}
	if zeros, err := blank("/dev/rdsk/c1t0d0"); zeros || err != nil {
		t.Errorf("an M.2 with its partitions: %t, %v", zeros, err)
	}
	must(t, s, "zpool", "create", "tank", disk)
	for _, name := range []string{"/dev/rdsk/" + disk, "/dev/dsk/" + disk + "s0"} {
		if zeros, err := blank(name); zeros || err != nil {
			t.Errorf("%s with a pool: %t, %v", name, zeros, err)
		}
	}
	update(t, s, func(tx *world.Tx) error { zfs.FailDisk(tx, disk); return nil })
	if _, err := blank("/dev/rdsk/" + disk); !errors.Is(err, syscall.EIO) {
		t.Errorf("of a disk that fails: %v", err)
	}
	update(t, s, func(tx *world.Tx) error { zfs.LoseDisk(tx, disk); return nil })
	if _, err := blank("/dev/rdsk/" + disk); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a disk that is gone: %v", err)
	}
	infos, err := files.ReadDir("/dev/rdsk")
	if there := func(i host.Info) bool { return i.Name == "c1t0d0s5" }; err != nil || !slices.ContainsFunc(infos, there) ||
		slices.ContainsFunc(infos, func(i host.Info) bool { return strings.HasPrefix(i.Name, disk) }) {
		t.Errorf("the nodes: %v, %v", infos, err)
	}
}

// A disk that comes back with the content of an earlier time.
func TestADiskReturnsStale(t *testing.T) {
	s := newSledFor(t, Options{})
	disk, pool := first(t, s)
	files := s.Host().Files()
	write(t, files, "/"+pool+"/f", "early")
	must(t, s, "zfs", "create", pool+"/early")
	write(t, files, "/"+pool+"/early/f", "early too")
	update(t, s, func(tx *world.Tx) error { return zfs.TakeImage(tx, disk) })
	write(t, files, "/"+pool+"/f", "late")
	must(t, s, "zfs", "destroy", "-r", pool+"/early")
	must(t, s, "zfs", "create", pool+"/late")
	if err := s.World().Update(t.Context(), func(tx *world.Tx) error { return zfs.RestoreImage(tx, disk) }); err == nil {
		t.Error("a disk became older while it was in use")
	}
	must(t, s, "zpool", "export", pool)
	update(t, s, func(tx *world.Tx) error { return zfs.RestoreImage(tx, disk) })
	must(t, s, "zpool", "import", pool)
	for name, want := range map[string]string{"/f": "early", "/early/f": "early too"} {
		if data, err := host.ReadFile(files, "/"+pool+name); err != nil || string(data) != want {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	if got := output(t, s, "zfs", "list", "-Hro", "name", pool); got != pool+"\n"+pool+"/early\n" {
		t.Errorf("its datasets: %q", got)
	}
}

// A disk that is replaced is another one: blank, with a serial number of its own,
// in the same slot.
func TestAReplacedDiskIsBlank(t *testing.T) {
	s := newSledFor(t, Options{})
	disk, pool := first(t, s)
	var before, after world.Disk
	update(t, s, func(tx *world.Tx) error { before = *zfs.FindDisk(tx, disk); return nil })
	if err := s.World().Update(t.Context(), func(tx *world.Tx) error { return zfs.ReplaceDisk(tx, disk) }); err == nil {
		t.Error("a disk was replaced under its pool")
	}
	// Pulled, and another put in, while the system runs: the pool is lost for good.
	update(t, s, func(tx *world.Tx) error { zfs.LoseDisk(tx, disk); return zfs.ReplaceDisk(tx, disk) })
	update(t, s, func(tx *world.Tx) error { after = *zfs.FindDisk(tx, disk); return nil })
	if after.Serial == before.Serial || after.Slot != before.Slot || after.Pool != "" || after.Layout != "" {
		t.Errorf("before %+v, after %+v", before, after)
	}
	refused := func(want string, words ...string) {
		t.Helper()
		got, err := s.Host().Run(t.Context(), host.Command{Program: words[0], Args: words[1:]})
		if err != nil || got.Exit != 1 || string(got.Stderr) != want {
			t.Errorf("%q: exit %d, %q, %v", words, got.Exit, got.Stderr, err)
		}
	}
	refused("cannot clear errors for '"+pool+"': I/O error\n", "zpool", "clear", pool)
	refused("unknown_fstyp (no matches)\n", "fstyp", "-a", "/dev/rdsk/"+disk+"s0")
	must(t, s, "zpool", "create", "other", disk)
	if err := s.Reboot(t.Context()); err != nil {
		t.Fatal(err)
	}
	must(t, s, "zpool", "export", pool) // known from the cache, and nothing else
	refused("cannot import '"+pool+"': no such pool available\n", "zpool", "import", pool)
	if got := output(t, s, "zpool", "list", "-Ho", "health", "other"); got != "ONLINE\n" {
		t.Errorf("the new pool: %q", got)
	}
}

// In an immutable directory nothing is made, not by root either (chmod(1)); in
// what is mounted over it, it is.
func TestNothingIsMadeInAnImmutableDirectory(t *testing.T) {
	s := newSledFor(t, Options{})
	files := s.Host().Files()
	_, pool := first(t, s)
	if err := host.MkdirAll(files, "/pool/ext/1", 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, files, "/pool/ext/there", "x")
	must(t, s, "chmod", "S+ci", "/pool/ext")
	_, create := files.Open("/pool/ext/new", os.O_CREATE|os.O_WRONLY, 0o600)
	for what, err := range map[string]error{
		"create": create, "mkdir": files.Mkdir("/pool/ext/2", 0o755), "remove": files.Remove("/pool/ext/there"),
		"rename": files.Rename("/pool/ext/there", "/pool/moved"), "rename into": files.Rename("/etc/release", "/pool/ext/release"),
		"remove it": files.Remove("/pool/ext"), "rename it": files.Rename("/pool/ext", "/pool/int"),
	} {
		if !errors.Is(err, syscall.EPERM) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := files.Append("/pool/ext/there", []byte("y")); err != nil {
		t.Errorf("a file in it: %v", err)
	}
	if err := files.Mkdir("/pool/ext/1/below", 0o755); err != nil {
		t.Errorf("below a directory in it: %v", err)
	}
	if err := files.Remove("/pool/ext/1/below"); err != nil {
		t.Error(err)
	}
	must(t, s, "chmod", "S+ci", "/pool/ext/1")
	must(t, s, "zfs", "create", "-o", "mountpoint=/pool/ext/1", pool+"/d")
	if err := files.Mkdir("/pool/ext/1/mounted", 0o755); err != nil {
		t.Errorf("in what is mounted over it: %v", err)
	}
	must(t, s, "zfs", "unmount", pool+"/d")
	if err := files.Mkdir("/pool/ext/1/under", 0o755); !errors.Is(err, syscall.EPERM) {
		t.Errorf("with nothing mounted over it: %v", err)
	}
}
