package zfs_test

import (
	"errors"
	"os"
	"path"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/boot"
	"github.com/sledctl/sledctl/sim/world/zfs"
	"github.com/sledctl/sledctl/test/hosttest"
)

// datasetTx is a transaction on a fresh sled with one more pool, tank.
func datasetTx(t testing.TB) *world.Tx {
	t.Helper()
	o := boot.Options{M2: -1, U2: 1, Links: -1, Blank: true}
	files := hosttest.Memory()
	if err := boot.LayRoot(files, o); err != nil {
		t.Fatal(err)
	}
	tx := world.NewTx(boot.Fresh(o), time.Date(2026, 11, 21, 3, 4, 5, 0, time.UTC), files)
	must(t, zfs.CreatePool(tx, "tank", "c11t0d0", zfs.PoolOptions{}))
	must(t, zfs.MountAuto(tx, "tank"))
	return tx
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// snapshot takes one snapshot.
func snapshot(tx *world.Tx, name string, props map[string]string) error {
	return zfs.SnapshotAll(tx, []string{name}, props)
}

// mount is zfs mount.
func mount(tx *world.Tx, name string) error { return zfs.MountWith(tx, name, false) }

// set sets one property.
func set(tx *world.Tx, name, property, value string) error {
	return zfs.SetProperties(tx, name, map[string]string{property: value})
}

// refused checks that err is a refusal with this text.
func refused(t *testing.T, err error, want string) {
	t.Helper()
	r, ok := errors.AsType[*world.Refusal](err)
	if !ok {
		t.Fatalf("got %v, want the refusal %q", err, want)
	}
	if diff := cmp.Diff(want, r.Text); diff != "" {
		t.Errorf("refusal (-want +got):\n%s", diff)
	}
}

// mk makes a file system as zfs create does.
func mk(t testing.TB, tx *world.Tx, name string, props ...string) {
	t.Helper()
	must(t, zfs.CreateFilesystem(tx, name, pairs(props)))
	must(t, zfs.MountAuto(tx, name))
}

func pairs(words []string) map[string]string {
	out := map[string]string{}
	for _, w := range words {
		k, v, _ := strings.Cut(w, "=")
		out[k] = v
	}
	return out
}

func putFile(t testing.TB, tx *world.Tx, name, data string) {
	t.Helper()
	must(t, host.MkdirAll(tx.Files, path.Dir(name), 0o755))
	must(t, world.Put(tx.Files, name, []byte(data), 0o644))
}

// content is what a file holds, "-" if it does not exist.
func content(tx *world.Tx, name string) string {
	data, err := host.ReadFile(tx.Files, name)
	if errors.Is(err, os.ErrNotExist) {
		return "-"
	}
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// refusedAll checks that each is refused as not simulated.
func refusedAll(t *testing.T, all map[string]error) {
	t.Helper()
	for what, err := range all {
		if r, ok := errors.AsType[*world.Refusal](err); !ok || r.Exit != 70 || !strings.HasPrefix(r.Text, "not simulated: ") {
			t.Errorf("%s: got %v, want a refusal with exit code 70", what, err)
		}
	}
}

func TestDatasetNamesAreCheckedAsZfsNamecheckDoes(t *testing.T) {
	// usr/src/common/zfs/zfs_namecheck.c. Which rule a name breaks is not simulated.
	tx := datasetTx(t)
	all := map[string]error{"snapshot of no dataset": snapshot(tx, "tank", nil)}
	for _, name := range []string{"", "/tank", "tank/", "tank//a", "tank/a$b", "tank/a%b", "tank/a@b", "tank/a#b", "tank/ä", "tank/" + strings.Repeat("x", 251)} {
		all["create "+name] = zfs.CreateFilesystem(tx, name, nil)
	}
	for _, name := range []string{"tank@", "tank@b@c", "tank@a/b", "tank@a%b"} {
		all["snapshot "+name] = snapshot(tx, name, nil)
	}
	refusedAll(t, all)
	mk(t, tx, "tank/a-b_c.d:e f")
	mk(t, tx, "tank/"+strings.Repeat("x", 250))
	must(t, snapshot(tx, "tank/a-b_c.d:e f@b", nil))
	if _, err := zfs.OpenDataset(tx, "tank/a%b", zfs.TypeFilesystem); err.Error() != "cannot open 'tank/a%b': dataset does not exist" {
		t.Errorf("a name that may be looked for: %v", err)
	}
}

func TestSizesAreWrittenAndReadAsLibzfsDoes(t *testing.T) {
	// zfs_nicenum_format and zfs_nicestrtonum in libzfs_util.c.
	for n, want := range map[uint64]string{
		0: "0", 1: "1", 1023: "1023", 1024: "1K", 1536: "1.50K", 98304: "96K", 10239: "10.0K", 1109393408: "1.03G",
		1 << 40: "1T", 3200631791616: "2.91T", 1<<64 - 1: "16.0E",
	} {
		if got := zfs.NiceNumber(n); got != want {
			t.Errorf("NiceNumber(%d) = %q, want %q", n, got, want)
		}
	}
	for s, want := range map[string]string{
		"100G": "107374182400", "512mb": "536870912", "7": "7", "2b": "2", "1.5K": "", "10BB": "", "10X": "", "ten": "", "G": "",
		"99999999999999999999": "", "17179869184G": "", "": "", "-1": "", "1GG": "",
	} {
		n, err := zfs.ParseSize(s)
		got := strconv.FormatUint(n, 10)
		if err != nil {
			refusedAll(t, map[string]error{s: err})
			got = ""
		}
		if got != want {
			t.Errorf("ParseSize(%q) = %s, want %s", s, got, want)
		}
	}
}

func TestValuesComeFromTheNearestThatHasOne(t *testing.T) {
	// zfs(8), Native and User Properties; zfs_prop_get in libzfs_dataset.c.
	tx := datasetTx(t)
	mk(t, tx, "tank/z", "mountpoint=/zones", "compression=gzip-9", "quota=10G", "sledctl:instance=i-1")
	mk(t, tx, "tank/z/a")
	must(t, snapshot(tx, "tank/z/a@s", map[string]string{"org.x:y": "on the snapshot"}))
	must(t, zfs.Clone(tx, "tank/z/a@s", "tank/c", nil))
	must(t, zfs.CreateVolume(tx, "tank/v", 1<<30, false, nil, zfs.KeyOptions{}))
	for _, tc := range []struct{ name, property, value, source string }{
		{"tank", "mountpoint", "/tank", "default"},
		{"tank/z", "mountpoint", "/zones", "local"},
		{"tank/z/a", "mountpoint", "/zones/a", "inherited from tank/z"},
		{"tank/c", "mountpoint", "/tank/c", "default"},
		{"tank/z/a@s", "mountpoint", "-", "-"},
		{"tank/z", "compression", "gzip-9", "local"},
		{"tank/z/a", "compression", "gzip-9", "inherited from tank/z"},
		{"tank/c", "compression", "off", "default"},
		{"tank/z", "quota", "10737418240", "local"},
		{"tank/z/a", "quota", "0", "default"},
		{"tank/z", "canmount", "on", "default"},
		{"tank/z/a", "sledctl:instance", "i-1", "inherited from tank/z"},
		{"tank/z/a@s", "sledctl:instance", "i-1", "inherited from tank/z"},
		{"tank/z/a@s", "org.x:y", "on the snapshot", "local"},
		{"tank/c", "sledctl:instance", "-", "-"},
		{"tank/c", "org.x:y", "-", "-"},
		{"tank/c", "origin", "tank/z/a@s", "-"},
		{"tank/z", "origin", "-", "-"},
		{"tank/z", "available", "10737221632", "-"},
		{"tank/z", "type", "filesystem", "-"},
		{"tank/z/a", "mounted", "yes", "-"},
		{"tank/v", "mounted", "-", "-"},
		{"tank/v", "volsize", "1073741824", "local"},
		{"tank/v", "refreservation", "1109393408", "local"},
		{"tank/v", "volblocksize", "8192", "default"},
		{"tank/z", "nothing", "-", "-"},
		{"tank/z", "encryption", "off", "default"},
		{"tank/z", "keystatus", "-", "-"},
	} {
		value, source := zfs.Property(tx, tc.name, tc.property)
		if value != tc.value || source != tc.source {
			t.Errorf("%s of %s: %q %q, want %q %q", tc.property, tc.name, value, source, tc.value, tc.source)
		}
	}
}

func TestWhatIsNoneOrLegacyIsInherited(t *testing.T) {
	// zfs(8), "Mount Points".
	tx := datasetTx(t)
	mk(t, tx, "tank/l", "mountpoint=legacy")
	mk(t, tx, "tank/l/x")
	value, source := zfs.Property(tx, "tank/l/x", "mountpoint")
	if value != "legacy" || source != "inherited from tank/l" {
		t.Errorf("mountpoint: %q %q", value, source)
	}
	if d := zfs.FindDataset(tx, "tank/l/x"); d.Mounted != "" {
		t.Errorf("mounted at %q", d.Mounted)
	}
}

func TestCreationIsRefusedAsLibzfsRefusesIt(t *testing.T) {
	// zfs_create, check_parents and zfs_valid_proplist in libzfs_dataset.c.
	tx := datasetTx(t)
	mk(t, tx, "tank/a")
	for _, tc := range []struct{ name, props, want string }{
		{"tank/a", "", "cannot create 'tank/a': dataset already exists"},
		{"tank/x/y", "", "cannot create 'tank/x/y': parent does not exist"},
		{"nope/x", "", "cannot create 'nope/x': no such pool 'nope'"},
		{"tank/b", "bogus=1", "cannot create 'tank/b': invalid property 'bogus'"},
		{"tank/b", "used=1", "cannot create 'tank/b': 'used' is readonly"},
		{"tank/b", "canmount=maybe", "cannot create 'tank/b': 'canmount' must be one of 'on | off | noauto'"},
	} {
		var props []string
		if tc.props != "" {
			props = []string{tc.props}
		}
		refused(t, zfs.CreateFilesystem(tx, tc.name, pairs(props)), tc.want)
	}
	refused(t, zfs.CreateVolume(tx, "tank/w", 1<<50, false, nil, zfs.KeyOptions{}), "cannot create 'tank/w': out of space")
}

func TestWhatIsNotSimulatedIsRefused(t *testing.T) {
	tx := datasetTx(t)
	mk(t, tx, "tank/a")
	mk(t, tx, "tank/z", "zoned=on")
	must(t, zfs.CreateVolume(tx, "tank/v", 1<<20, true, nil, zfs.KeyOptions{}))
	must(t, zfs.SnapshotAll(tx, []string{"tank/a@s", "tank/v@s"}, nil))
	all := map[string]error{
		"create a pool":            zfs.CreateFilesystem(tx, "tank", nil),
		"create below a volume":    zfs.CreateFilesystem(tx, "tank/v/x", nil),
		"a volume of no blocks":    zfs.CreateVolume(tx, "tank/w", 1000, true, nil, zfs.KeyOptions{}),
		"a volume of nothing":      zfs.CreateVolume(tx, "tank/w", 0, true, nil, zfs.KeyOptions{}),
		"snapshot of nothing":      snapshot(tx, "tank/none@x", nil),
		"two snapshots of one":     zfs.SnapshotAll(tx, []string{"tank/a@x", "tank/a@y"}, nil),
		"snapshot with a quota":    snapshot(tx, "tank/a@x", map[string]string{"quota": "1G"}),
		"clone of another size":    zfs.Clone(tx, "tank/v@s", "tank/c", map[string]string{"volsize": "2M"}),
		"clone to another pool":    zfs.Clone(tx, "tank/a@s", "rpool/c", nil),
		"destroy -r of a pool":     zfs.Destroy(tx, "tank", zfs.DestroyOptions{Recursive: true}),
		"set canmount=off":         set(tx, "tank/a", "canmount", "off"),
		"set refreservation":       set(tx, "tank/a", "refreservation", "1M"),
		"set volsize":              set(tx, "tank/a", "volsize", "2G"),
		"set keylocation":          set(tx, "tank/a", "keylocation", "file:///key"),
		"a mountpoint in a zone":   set(tx, "tank/z", "mountpoint", "/x"),
		"inherit quota":            zfs.Inherit(tx, "tank/a", "quota"),
		"inherit used":             zfs.Inherit(tx, "tank/a", "used"),
		"mount of no legacy":       zfs.MountAt(tx, "tank/a", "/tmp"),
		"a property of pools":      zfs.SetPoolProperty(tx, "tank", "comment", "x"),
		"a computed one of them":   zfs.SetPoolProperty(tx, "tank", "size", "1"),
		"failmode=maybe":           zfs.SetPoolProperty(tx, "tank", "failmode", "maybe"),
		"ashift=99":                zfs.SetPoolProperty(tx, "tank", "ashift", "99"),
		"a key without encryption": zfs.CreateFilesystem(tx, "tank/b", pairs([]string{"keyformat=raw"})),
	}
	for _, setting := range []string{
		"volsize=1G", "quota=0", "quota=lots", "mountpoint=here", "recordsize=1000", "refquota=1G", "encryption=on", "keylocation=none", "casesensitivity=mixed",
	} {
		all[setting] = zfs.CreateFilesystem(tx, "tank/b", pairs([]string{setting}))
	}
	refusedAll(t, all)
}

func TestSnapshotsOfManyAreTakenTogetherOrNotAtAll(t *testing.T) {
	// zfs(8): "zfs snapshot … atomically"; zfs_snapshot_nvl in libzfs_dataset.c.
	tx := datasetTx(t)
	mk(t, tx, "tank/a")
	mk(t, tx, "tank/b")
	must(t, snapshot(tx, "tank/b@s", nil))
	refused(t, zfs.SnapshotAll(tx, []string{"tank/a@s", "tank/b@s"}, nil), "cannot create snapshot 'tank/b@s': dataset already exists")
	if zfs.FindDataset(tx, "tank/a@s") != nil {
		t.Error("the first was taken although the second was refused")
	}
	must(t, zfs.SnapshotAll(tx, []string{"tank/a@t", "tank/b@t"}, map[string]string{"org.x:why": "test"}))
	if a, b := zfs.FindDataset(tx, "tank/a@t").Created, zfs.FindDataset(tx, "tank/b@t").Created; a != b {
		t.Errorf("transaction groups %d and %d differ", a, b)
	}
}

func TestDestroyRefusesWhatZfsDestroyRefuses(t *testing.T) {
	// zfs_do_destroy and destroy_check_dependent in usr/src/cmd/zfs/zfs_main.c.
	tx := datasetTx(t)
	mk(t, tx, "tank/a")
	mk(t, tx, "tank/a/b")
	must(t, snapshot(tx, "tank/a@s", nil))
	must(t, zfs.Clone(tx, "tank/a@s", "tank/c", nil))
	must(t, zfs.MountAuto(tx, "tank/c"))
	refused(t, zfs.Destroy(tx, "tank/a", zfs.DestroyOptions{}),
		"cannot destroy 'tank/a': filesystem has children\nuse '-r' to destroy the following datasets:\ntank/a/b\ntank/a@s")
	refused(t, zfs.Destroy(tx, "tank/a", zfs.DestroyOptions{Recursive: true}),
		"cannot destroy 'tank/a': filesystem has dependent clones\nuse '-R' to destroy the following datasets:\ntank/c")
	refused(t, zfs.Destroy(tx, "tank/a@s", zfs.DestroyOptions{}),
		"cannot destroy 'tank/a@s': snapshot has dependent clones\nuse '-R' to destroy the following datasets:\ntank/c")
	refused(t, zfs.Destroy(tx, "tank/a@none", zfs.DestroyOptions{}), "could not find any snapshots to destroy; check snapshot names.")
	refused(t, zfs.Destroy(tx, "tank/none", zfs.DestroyOptions{}), "cannot open 'tank/none': dataset does not exist")
	refused(t, zfs.Destroy(tx, "tank", zfs.DestroyOptions{}), "cannot destroy 'tank': operation does not apply to pools\n"+
		"use 'zfs destroy -r tank' to destroy all datasets in the pool\nuse 'zpool destroy tank' to destroy the pool itself")
	must(t, zfs.Destroy(tx, "tank/c", zfs.DestroyOptions{}))
	must(t, zfs.Destroy(tx, "tank/a", zfs.DestroyOptions{Recursive: true}))
	if _, err := tx.Files.Stat("/tank/a"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the mountpoint of a destroyed file system is still there: %v", err)
	}
}

func TestSettingsThatMoveFileSystemsRemountThem(t *testing.T) {
	// zfs_prop_set_list and libzfs_changelist.c.
	tx := datasetTx(t)
	mk(t, tx, "tank/a")
	mk(t, tx, "tank/a/b")
	mk(t, tx, "tank/a/own", "mountpoint=/own")
	putFile(t, tx, "/tank/a/b/f", "b's")
	must(t, set(tx, "tank/a", "mountpoint", "/elsewhere"))
	if got := content(tx, "/elsewhere/b/f"); got != "b's" {
		t.Errorf("/elsewhere/b/f: %q", got)
	}
	if d := zfs.FindDataset(tx, "tank/a/own"); d.Mounted != "/own" {
		t.Errorf("what has a mountpoint of its own moved to %q", d.Mounted)
	}
	if _, err := tx.Files.Stat("/tank/a"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the default mountpoint is still there: %v", err)
	}
	must(t, set(tx, "tank/a/b", "zoned", "on"))
	if d := zfs.FindDataset(tx, "tank/a/b"); d.Mounted != "" {
		t.Errorf("zoned=on leaves it mounted at %q", d.Mounted)
	}
	refused(t, set(tx, "tank/a", "mountpoint", "/x"),
		"cannot set property for 'tank/a': child dataset with inherited mountpoint is used in a non-global zone")
	refused(t, mount(tx, "tank/a/b"), "cannot mount 'tank/a/b': dataset is exported to a local zone")
}

func TestQuotasMustFit(t *testing.T) {
	// zfs_setprop_error in libzfs_dataset.c; omicron issue 10662: an equal quota
	// can be refused once more is used.
	tx := datasetTx(t)
	mk(t, tx, "tank/a")
	must(t, zfs.CreateVolume(tx, "tank/a/v", 1<<30, false, nil, zfs.KeyOptions{}))
	refused(t, set(tx, "tank/a", "quota", "1G"),
		"cannot set property for 'tank/a': size is less than current used or reserved space")
	must(t, set(tx, "tank/a", "quota", "2G"))
	refused(t, zfs.CreateVolume(tx, "tank/a/w", 1<<30, false, nil, zfs.KeyOptions{}), "cannot create 'tank/a/w': out of space")
	must(t, set(tx, "tank/a", "quota", "none"))
	if value, source := zfs.Property(tx, "tank/a", "quota"); value != "0" || source != "local" {
		t.Errorf("quota: %s %s", value, source)
	}
}

func TestSpaceAddsUp(t *testing.T) {
	// zfs(8), the properties used and available: a pool's are all that it has.
	tx := datasetTx(t)
	mk(t, tx, "tank/a")
	must(t, zfs.CreateVolume(tx, "tank/a/v", 1<<30, false, nil, zfs.KeyOptions{}))
	s := zfs.NewSurvey(tx)
	if got := s.Bytes(zfs.FindDataset(tx, "tank/a"), "used"); got != 1109393408+zfs.OwnBytes {
		t.Errorf("a file system with a volume of 1 GiB uses %d", got)
	}
	tank := zfs.FindDataset(tx, "tank")
	if got, want := s.Bytes(tank, "used")+s.Bytes(tank, "available"), zfs.Capacity(tx, "tank"); got != want {
		t.Errorf("used and available of the pool are %d, want %d", got, want)
	}
}

func TestPropertiesAreInheritedAgain(t *testing.T) {
	// zfs_prop_inherit in libzfs_dataset.c.
	tx := datasetTx(t)
	mk(t, tx, "tank/a", "compression=lz4", "org.x:y=1", "mountpoint=/a")
	must(t, zfs.Inherit(tx, "tank/a", "compression"))
	must(t, zfs.Inherit(tx, "tank/a", "org.x:y"))
	must(t, zfs.Inherit(tx, "tank/a", "org.x:never"))
	must(t, zfs.Inherit(tx, "tank/a", "mountpoint"))
	if d := zfs.FindDataset(tx, "tank/a"); len(d.Local) != 0 || d.Mounted != "/tank/a" {
		t.Errorf("left: %v, mounted at %q", d.Local, d.Mounted)
	}
}

func TestKeysAreLoadedUnloadedAndRefused(t *testing.T) {
	// zfs_crypto_create, zfs_crypto_load_key, zfs_crypto_unload_key in libzfs_crypto.c.
	tx := datasetTx(t)
	putFile(t, tx, "/var/run/key", strings.Repeat("k", 32))
	putFile(t, tx, "/var/run/short", "k")
	props := map[string]string{"encryption": "aes-256-gcm", "keyformat": "raw", "keylocation": "file:///var/run/short"}
	refused(t, zfs.CreateFilesystem(tx, "tank/e", props), "cannot create 'tank/e': Raw key too short (expected 32).")
	props["keylocation"] = "file:///var/run/none"
	refused(t, zfs.CreateFilesystem(tx, "tank/e", props), "cannot create 'tank/e': Failed to open key material file")
	props["keylocation"] = "file:///var/run/key"
	must(t, zfs.CreateFilesystem(tx, "tank/e", props))
	must(t, zfs.MountAuto(tx, "tank/e"))
	mk(t, tx, "tank/e/zone")
	refused(t, zfs.UnloadKey(tx, "tank/e"), "Key unload error: 'tank/e' is busy.")
	refused(t, zfs.LoadKey(tx, "tank/e", zfs.KeyOptions{}), "Key load error: Key already loaded for 'tank/e'.")
	refused(t, zfs.LoadKey(tx, "tank/e/zone", zfs.KeyOptions{}),
		"Key load error: Keys must be loaded for encryption root of 'tank/e/zone' (tank/e).")
	refused(t, zfs.LoadKey(tx, "tank", zfs.KeyOptions{}), "Key load error: 'tank' is not encrypted.")
	putFile(t, tx, "/tank/e/zone/f", "secret")
	must(t, zfs.RebootDatasets(tx))
	for property, want := range map[string]string{"keystatus": "unavailable", "mounted": "no", "encryption": "aes-256-gcm", "encryptionroot": "tank/e"} {
		if value, _ := zfs.Property(tx, "tank/e/zone", property); value != want {
			t.Errorf("after a reboot %s is %q, want %q", property, value, want)
		}
	}
	refused(t, mount(tx, "tank/e"), "cannot mount 'tank/e': encryption key not loaded")
	refused(t, zfs.CreateFilesystem(tx, "tank/e/other", nil), "cannot create 'tank/e/other': encryption root's key is not loaded or provided")
	putFile(t, tx, "/var/run/wrong", strings.Repeat("w", 32))
	refused(t, zfs.LoadKey(tx, "tank/e", zfs.KeyOptions{Location: "file:///var/run/wrong"}), "Key load error: Incorrect key provided for 'tank/e'.")
	must(t, zfs.LoadKey(tx, "tank/e", zfs.KeyOptions{}))
	must(t, mount(tx, "tank/e"))
	must(t, mount(tx, "tank/e/zone"))
	if got := content(tx, "/tank/e/zone/f"); got != "secret" {
		t.Errorf("contents after a reboot: %q", got)
	}
}
