package zfs_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
	"github.com/sledctl/sledctl/test/hosttest"
)

func TestMountingShowsContentsAndUnmountingUncoversTheDirectory(t *testing.T) {
	// zfs(8), mount and unmount.
	tx := datasetTx(t)
	mk(t, tx, "tank/a")
	putFile(t, tx, "/tank/a/f", "in a")
	must(t, zfs.UnmountTree(tx, "tank/a"))
	if got := content(tx, "/tank/a/f"); got != "-" {
		t.Errorf("unmounted, /tank/a/f is %q", got)
	}
	putFile(t, tx, "/tank/a/covered", "below")
	refused(t, mount(tx, "tank/a"), "cannot mount '/tank/a': directory is not empty")
	must(t, tx.Files.Remove("/tank/a/covered"))
	must(t, mount(tx, "tank/a"))
	if got := content(tx, "/tank/a/f"); got != "in a" {
		t.Errorf("mounted again: %q", got)
	}
	refused(t, mount(tx, "tank/a"), "cannot mount 'tank/a': filesystem already mounted")
	must(t, zfs.UnmountTree(tx, "tank/a"))
	refused(t, zfs.UnmountTree(tx, "tank/a"), "cannot unmount 'tank/a': not currently mounted")
}

func TestMountRefusesWhatShareMountOneRefuses(t *testing.T) {
	// share_mount_one and unshare_unmount in usr/src/cmd/zfs/zfs_main.c.
	tx := datasetTx(t)
	must(t, zfs.CreateFilesystem(tx, "tank/l", pairs([]string{"mountpoint=legacy"})))
	must(t, zfs.CreateFilesystem(tx, "tank/n", pairs([]string{"mountpoint=none"})))
	must(t, zfs.CreateFilesystem(tx, "tank/o", pairs([]string{"canmount=off"})))
	must(t, zfs.CreateFilesystem(tx, "tank/m", pairs([]string{"canmount=noauto"})))
	must(t, zfs.CreateVolume(tx, "tank/v", 1<<20, true, nil, zfs.KeyOptions{}))
	refused(t, mount(tx, "tank/l"), "cannot mount 'tank/l': legacy mountpoint\nuse mount(8) to mount this filesystem")
	refused(t, mount(tx, "tank/n"), "cannot mount 'tank/n': no mountpoint set")
	refused(t, mount(tx, "tank/o"), "cannot mount 'tank/o': 'canmount' property is set to 'off'")
	refused(t, mount(tx, "tank/v"), "cannot open 'tank/v': operation not applicable to datasets of this type")
	refused(t, mount(tx, "tank/none"), "cannot open 'tank/none': dataset does not exist")
	must(t, zfs.MountAuto(tx, "tank/m"))
	if zfs.FindDataset(tx, "tank/m").Mounted != "" {
		t.Error("canmount=noauto was mounted without being asked for")
	}
	must(t, zfs.MountAll(tx))
	if zfs.FindDataset(tx, "tank/m").Mounted != "" {
		t.Error("zfs mount -a mounts canmount=noauto")
	}
	must(t, mount(tx, "tank/m"))
	refused(t, zfs.UnmountTree(tx, "tank/l"), "cannot unmount 'tank/l': legacy mountpoint\nuse umount(8) to unmount this filesystem")
}

func TestLegacyFileSystemsAreMountedWhereTheyAreTold(t *testing.T) {
	// manual_mount in usr/src/cmd/zfs/zfs_main.c (mount -F zfs); the ZBEs of zones
	// (omniosorg/pkg5 src/brand/ipkg/common.ksh).
	tx := datasetTx(t)
	mk(t, tx, "tank/ROOT", "mountpoint=legacy", "zoned=on")
	must(t, zfs.CreateFilesystem(tx, "tank/ROOT/zbe", pairs([]string{"canmount=noauto"})))
	mk(t, tx, "tank/plain")
	must(t, tx.Files.Mkdir("/zone", 0o700))
	must(t, tx.Files.Mkdir("/zone/root", 0o755))
	refused(t, zfs.MountAt(tx, "tank/ROOT/zbe", "/nowhere"), "mount failed: No such file or directory")
	must(t, zfs.MountAt(tx, "tank/ROOT/zbe", "/zone/root"))
	putFile(t, tx, "/zone/root/etc/f", "zone's")
	refused(t, zfs.MountAt(tx, "tank/ROOT/zbe", "/tmp"), "mount failed: Device busy")
	if err := zfs.MountAt(tx, "tank/plain", "/tmp"); err == nil {
		t.Error("a file system with a mountpoint was mounted by mount -F zfs")
	}
	if d := zfs.DatasetOf(tx, "/zone/root/etc/f"); d == nil || d.Name != "tank/ROOT/zbe" {
		t.Errorf("DatasetOf: %v", d)
	}
	must(t, zfs.Destroy(tx, "tank/ROOT/zbe", zfs.DestroyOptions{}))
	if content(tx, "/zone/root/etc/f") != "-" || !tx.Exists("/zone/root") {
		t.Error("zfs destroy did not unmount what it destroyed")
	}
}

// ByMountpoint finds what a look at each file system finds.
func TestByMountpoint(t *testing.T) {
	tx := datasetTx(t)
	mk(t, tx, "tank/a", "mountpoint=/m")
	mk(t, tx, "tank/a/b")
	mk(t, tx, "tank/a/b/c", "mountpoint=/tank/d", "canmount=noauto")
	mk(t, tx, "tank/d", "canmount=noauto")
	mk(t, tx, "tank/l", "mountpoint=legacy")
	mk(t, tx, "tank/l/below")
	mk(t, tx, "tank/l/r", "mountpoint=/", "canmount=noauto")
	mk(t, tx, "tank/l/r/m", "canmount=noauto")
	must(t, zfs.CreateVolume(tx, "tank/v", 1<<20, true, nil, zfs.KeyOptions{}))
	for _, dir := range []string{"/", "/m", "/m/b", "/m/b/c", "/tank", "/tank/d", "/tank/l", "/tank/v", "/r", "/none", "legacy"} {
		want := ""
		for _, d := range zfs.SelectDatasets(tx, func(d *world.Dataset) bool {
			return zfs.Kind(d) == zfs.TypeFilesystem && zfs.Mountpoint(tx, d) == dir
		}) {
			if want == "" && dir != "legacy" {
				want = d.Name
			}
		}
		got := ""
		if d := zfs.ByMountpoint(tx, dir); d != nil {
			got = d.Name
		}
		if got != want {
			t.Errorf("%s: %q, want %q", dir, got, want)
		}
	}
}

func TestWhatIsUsedIsBusy(t *testing.T) {
	// umount(2), EBUSY; the text is libzfs's unmount_one.
	z := &world.Zone{Name: "z", State: world.ZoneInstalled, Config: world.Config{Zonepath: "/tank/z"}}
	for _, tc := range []struct {
		name   string
		kernel world.Kernel
		busy   bool
	}{
		{"no kernel zone", world.Kernel{}, false},
		{"its root", world.Kernel{State: world.ZoneRunning, Config: world.Config{Zonepath: "/tank/z"}}, true},
		{"another's root", world.Kernel{State: world.ZoneRunning, Config: world.Config{Zonepath: "/other"}}, false},
		{"a mount below", world.Kernel{State: world.ZoneReady, Config: world.Config{Zonepath: "/other"}, Mounts: []string{"/tank/z/root/proc"}}, true},
		{"a directory shown in a zone", world.Kernel{State: world.ZoneRunning, Config: world.Config{Zonepath: "/o"},
			Loops: []world.Loop{{Dir: "/disk", Special: "/tank/z/file"}}}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tx := datasetTx(t)
			mk(t, tx, "tank/z")
			zone := *z
			if tc.kernel.State != "" {
				zone.Kernel = &tc.kernel
			}
			tx.State.Zones = []*world.Zone{&zone}
			if err := zfs.Destroy(tx, "tank/z", zfs.DestroyOptions{}); tc.busy {
				refused(t, err, "cannot unmount '/tank/z': Device busy")
			} else if err != nil {
				t.Fatal(err)
			}
		})
	}
	tx := datasetTx(t)
	mk(t, tx, "tank/a")
	mk(t, tx, "tank/a/b", "mountpoint=/tank/a/deep")
	refused(t, zfs.UnmountTree(tx, "tank/a"), "cannot unmount '/tank/a': Device busy")
	must(t, zfs.CreateVolume(tx, "tank/v", 1<<20, true, nil, zfs.KeyOptions{}))
	tx.State.Zones = []*world.Zone{{Name: "z", Kernel: &world.Kernel{State: world.ZoneRunning, Config: world.Config{Zonepath: "/o", Resources: []world.Resource{
		{Type: "device", Properties: []world.Property{{Name: "match", Values: []string{"/dev/zvol/rdsk/tank/v"}}}},
	}}}}}
	refused(t, zfs.Destroy(tx, "tank/v", zfs.DestroyOptions{}), "cannot destroy 'tank/v': dataset is busy")
}

func TestUnmountTakesWhatInheritsAlongOrNothing(t *testing.T) {
	// zfs_unmountall and changelist_prefix.
	tx := datasetTx(t)
	for _, name := range []string{"tank/a", "tank/a/b", "tank/a/c"} {
		mk(t, tx, name)
	}
	tx.State.Zones = []*world.Zone{{Name: "z", Kernel: &world.Kernel{State: world.ZoneRunning, Config: world.Config{Zonepath: "/tank/a/b"}}}}
	refused(t, zfs.UnmountTree(tx, "tank/a"), "cannot unmount '/tank/a/b': Device busy")
	for _, name := range []string{"tank/a", "tank/a/b", "tank/a/c"} {
		if zfs.FindDataset(tx, name).Mounted == "" {
			t.Errorf("%s is not mounted again", name)
		}
	}
	tx.State.Zones = nil
	must(t, zfs.UnmountTree(tx, "tank/a"))
	for _, name := range []string{"tank/a", "tank/a/b", "tank/a/c"} {
		if at := zfs.FindDataset(tx, name).Mounted; at != "" {
			t.Errorf("%s is mounted at %s", name, at)
		}
	}
}

// kinds are the ways in which a sled's files may keep snapshots: shared in memory, and packed as in a
// directory.
var kinds = map[string]func(host.Files) host.Files{
	"shared": func(files host.Files) host.Files { return files },
	"packed": func(files host.Files) host.Files { return struct{ host.Files }{files} },
}

func TestSnapshotsKeepTheirContentsAndClonesBeginWithThem(t *testing.T) {
	for kind, files := range kinds {
		t.Run(kind, func(t *testing.T) {
			tx := datasetTx(t)
			tx.Files = files(tx.Files)
			snapshotsKeepTheirContents(t, tx)
		})
	}
}

func snapshotsKeepTheirContents(t *testing.T, tx *world.Tx) {
	// zfs(8), snapshot, clone and rollback.
	mk(t, tx, "tank/a")
	mk(t, tx, "tank/a/b")
	putFile(t, tx, "/tank/a/dir/f", "old")
	putFile(t, tx, "/tank/a/b/g", "of b")
	must(t, tx.Files.Mkdir("/tank/a/dir/empty", 0o711))
	must(t, tx.Files.Chmod("/tank/a/dir/f", 0o400))
	must(t, tx.Files.Chmod("/tank/a", 0o700))
	must(t, snapshot(tx, "tank/a@s", nil))
	putFile(t, tx, "/tank/a/dir/f", "new")
	clone := func(name string) {
		t.Helper()
		must(t, zfs.Clone(tx, "tank/a@s", name, nil))
		must(t, zfs.MountAuto(tx, name))
	}
	clone("tank/c")
	want := map[string]string{"": "drwx------", "/b": "drwxr-xr-x", "/dir": "drwxr-xr-x", "/dir/empty": "drwx--x--x", "/dir/f": "-r-------- old"}
	if diff := cmp.Diff(want, modes(t, tx, "/tank/c", "")); diff != "" {
		t.Errorf("the clone (-want +got):\n%s", diff)
	}
	putFile(t, tx, "/tank/c/dir/f", "clone's")
	clone("tank/d")
	if got := content(tx, "/tank/a/dir/f") + content(tx, "/tank/d/dir/f"); got != "newold" {
		t.Errorf("after writing to one clone: %q", got)
	}
	must(t, zfs.Rollback(tx, "tank/a@s"))
	if got := content(tx, "/tank/a/dir/f") + content(tx, "/tank/a/b/g"); got != "oldof b" {
		t.Errorf("rolled back, with what is mounted in it: %q", got)
	}
	must(t, zfs.TakeImage(tx, "c11t0d0"))
	must(t, zfs.ExportPool(tx, "tank"))
	must(t, zfs.RestoreImage(tx, "c11t0d0"))
	found, err := zfs.Importable(tx, "/dev/dsk")
	must(t, err)
	must(t, zfs.ImportPool(tx, found[0]))
	must(t, zfs.MountAll(tx))
	clone("tank/e")
	if diff := cmp.Diff(want, modes(t, tx, "/tank/e", "")); diff != "" {
		t.Errorf("a clone of a snapshot from an image of the disk (-want +got):\n%s", diff)
	}
}

// modes are the modes of what lies below a directory, and of files what they hold.
func modes(t *testing.T, tx *world.Tx, dir, name string) map[string]string {
	t.Helper()
	info, err := tx.Files.Stat(dir + name)
	must(t, err)
	if !info.Mode.IsDir() {
		return map[string]string{name: info.Mode.String() + " " + content(tx, dir+name)}
	}
	out := map[string]string{name: info.Mode.String()}
	entries, err := tx.Files.ReadDir(dir + name)
	must(t, err)
	for _, e := range entries {
		maps.Copy(out, modes(t, tx, dir, name+"/"+e.Name))
	}
	return out
}

// shown is the tree of files below a directory as one map, for comparing.
func shown(t *testing.T, tx *world.Tx, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	entries, err := tx.Files.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		name := dir + "/" + e.Name
		if !e.Mode.IsDir() {
			out[name] = content(tx, name)
			continue
		}
		out[name] = "dir"
		for k, v := range shown(t, tx, name) {
			out[k] = v
		}
	}
	return out
}

// killable are transactions that move contents.
var killable = map[string]func(*world.Tx) error{
	"mount":   func(tx *world.Tx) error { return mount(tx, "tank/off") },
	"unmount": func(tx *world.Tx) error { return zfs.UnmountTree(tx, "tank/a") },
	"create": func(tx *world.Tx) error {
		return errors.Join(zfs.CreateFilesystem(tx, "tank/new", nil), zfs.MountAuto(tx, "tank/new"))
	},
	"clone": func(tx *world.Tx) error {
		return errors.Join(zfs.Clone(tx, "tank/a@s", "tank/new", nil), zfs.MountAuto(tx, "tank/new"))
	},
	"snapshot":        func(tx *world.Tx) error { return snapshot(tx, "tank/a@t", nil) },
	"destroy":         func(tx *world.Tx) error { return zfs.Destroy(tx, "tank/a", zfs.DestroyOptions{Recursive: true}) },
	"set mountpoint":  func(tx *world.Tx) error { return set(tx, "tank/a", "mountpoint", "/moved") },
	"export":          func(tx *world.Tx) error { return zfs.ExportPool(tx, "tank") },
	"mount elsewhere": func(tx *world.Tx) error { return zfs.MountAt(tx, "tank/legacy", "/mnt") },
}

// killed makes a fresh sled, runs a transaction whose file operations fail from
// the n-th on, as if the process had been killed there, and gives a transaction
// that comes after it: on the state before, or if committed on the state after.
// It says whether anything failed.
func killed(t *testing.T, kind string, act func(*world.Tx) error, n int, committed bool) (*world.Tx, bool) {
	t.Helper()
	tx := datasetTx(t)
	memory := tx.Files.(*hosttest.MemoryFiles)
	tx.Files = kinds[kind](memory)
	mk(t, tx, "tank/a")
	mk(t, tx, "tank/a/b")
	must(t, zfs.CreateFilesystem(tx, "tank/off", pairs([]string{"canmount=noauto"})))
	must(t, zfs.CreateFilesystem(tx, "tank/legacy", pairs([]string{"mountpoint=legacy"})))
	must(t, tx.Files.Mkdir("/mnt", 0o755))
	putFile(t, tx, "/tank/a/f", "a's")
	putFile(t, tx, "/tank/a/b/g", "b's")
	must(t, snapshot(tx, "tank/a@s", nil))

	before, err := json.Marshal(tx.State)
	must(t, err)
	ops, hit := 0, false
	memory.Fail(func(string, string) error {
		if ops++; ops > n {
			hit = true
			return errors.New("killed")
		}
		return nil
	})
	_ = act(world.NewTx(tx.State, tx.Now, tx.Files))
	memory.Fail(nil)
	state := tx.State
	if !committed {
		state = &world.State{}
		must(t, json.Unmarshal(before, state))
	}
	return world.NewTx(state, time.Now(), tx.Files), hit
}

func TestAKillWhileContentsMoveIsRepaired(t *testing.T) {
	want := func() map[string]string {
		tx, _ := killed(t, "shared", func(*world.Tx) error { return nil }, 0, true)
		return shown(t, tx, "")
	}()
	hide := func(all map[string]string) map[string]string {
		out := map[string]string{}
		for name, v := range all {
			// What a mount of something new leaves: an empty directory.
			if name != "/tank/new" && name != "/tank/off" && name != "/moved" && name != "/tank/b" && !within(name, zfs.Aside) {
				out[name] = v
			}
		}
		return out
	}
	eachKillable(t, func(t *testing.T, kind string, act func(*world.Tx) error) {
		points := 0
		for n := 0; ; n++ {
			tx, hit := killed(t, kind, act, n, false)
			must(t, zfs.RecoverDatasets(tx))
			if diff := cmp.Diff(hide(want), hide(shown(t, tx, ""))); diff != "" {
				t.Fatalf("killed after %d operations (-want +got):\n%s", n, diff)
			}
			if tx.Exists(zfs.Pending) {
				t.Fatalf("killed after %d operations: the notes are still there", n)
			}
			if err := act(world.NewTx(tx.State, tx.Now, tx.Files)); err != nil {
				t.Fatalf("killed after %d operations, again: %v", n, err)
			}
			if points++; !hit {
				break
			}
		}
		if points < 5 {
			t.Errorf("only %d points: the transaction moves nothing", points)
		}
	})
}

// eachKillable runs a test for each transaction that moves contents, on each kind of files.
func eachKillable(t *testing.T, test func(t *testing.T, kind string, act func(*world.Tx) error)) {
	for kind := range kinds {
		for name, act := range killable {
			t.Run(name+" "+kind, func(t *testing.T) { test(t, kind, act) })
		}
	}
}

func TestAKillAfterTheStateWasStoredLosesNothing(t *testing.T) {
	eachKillable(t, func(t *testing.T, kind string, act func(*world.Tx) error) {
		tx, _ := killed(t, kind, act, 1<<30, true)
		want := shown(t, tx, "")
		must(t, zfs.RecoverDatasets(tx))
		got := shown(t, tx, "")
		for name := range want {
			if within(name, zfs.Aside) {
				delete(want, name)
			}
		}
		for name := range got {
			if within(name, zfs.Aside) {
				delete(got, name)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("recovery changed what was stored (-want +got):\n%s", diff)
		}
	})
}

func within(name, dir string) bool { return name == dir || world.Under(name, dir) }

func TestARebootMountsWhatMountsItself(t *testing.T) {
	tx := datasetTx(t)
	mk(t, tx, "tank/a")
	must(t, zfs.CreateFilesystem(tx, "tank/off", pairs([]string{"canmount=noauto"})))
	must(t, mount(tx, "tank/off"))
	must(t, zfs.CreateFilesystem(tx, "tank/legacy", pairs([]string{"mountpoint=legacy"})))
	must(t, tx.Files.Mkdir("/mnt", 0o755))
	must(t, zfs.MountAt(tx, "tank/legacy", "/mnt"))
	must(t, zfs.CreateFilesystem(tx, "tank/a/late", nil))
	putFile(t, tx, "/tank/off/f", "x")
	must(t, zfs.RebootDatasets(tx))
	got := map[string]string{}
	for _, d := range zfs.Descendants(tx, "tank") {
		got[d.Name] = d.Mounted
	}
	want := map[string]string{"tank/a": "/tank/a", "tank/off": "", "tank/legacy": "", "tank/a/late": "/tank/a/late"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("mounted (-want +got):\n%s", diff)
	}
	if got := content(tx, "/tank/off/f"); got != "-" {
		t.Errorf("/tank/off/f: %q", got)
	}
}

func BenchmarkSnapshotAndClone(b *testing.B) {
	tx := datasetTx(b)
	mk(b, tx, "tank/base")
	for i := range 40 {
		putFile(b, tx, fmt.Sprintf("/tank/base/root/lib/svc/manifest/m%d.xml", i), "some kind of manifest")
	}
	for i := 0; b.Loop(); i++ {
		snapshot := fmt.Sprintf("tank/base@z%d_snap", i)
		must(b, zfs.SnapshotAll(tx, []string{snapshot}, nil))
		must(b, zfs.Clone(tx, snapshot, fmt.Sprintf("tank/z%d", i), nil))
		must(b, zfs.MountAuto(tx, fmt.Sprintf("tank/z%d", i)))
		b.StopTimer()
		tx = world.NewTx(tx.State, tx.Now, tx.Files)
		b.StartTimer()
	}
}
