package world

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
)

// datasetTx is a transaction on a fresh sled with one more pool, tank.
func datasetTx(t testing.TB) *Tx {
	t.Helper()
	o := Options{M2: -1, U2: 1, Links: -1, Blank: true}
	files := host.Memory()
	if err := LayRoot(files, o); err != nil {
		t.Fatal(err)
	}
	tx := NewTx(Fresh(o), time.Date(2026, 11, 21, 3, 4, 5, 0, time.UTC), files)
	must(t, tx.CreatePool("tank", []string{"c11t0d0"}, PoolOptions{}))
	must(t, tx.MountAuto("tank"))
	return tx
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refused checks that err is a refusal with this text.
func refused(t *testing.T, err error, want string) {
	t.Helper()
	r, ok := errors.AsType[*Refusal](err)
	if !ok {
		t.Fatalf("got %v, want the refusal %q", err, want)
	}
	if diff := cmp.Diff(want, r.Text); diff != "" {
		t.Errorf("refusal (-want +got):\n%s", diff)
	}
}

// mk makes a file system as zfs create does.
func mk(t testing.TB, tx *Tx, name string, props ...string) {
	t.Helper()
	must(t, tx.CreateFilesystem(name, pairs(props)))
	must(t, tx.MountAuto(name))
}

func pairs(words []string) map[string]string {
	out := map[string]string{}
	for _, w := range words {
		k, v, _ := strings.Cut(w, "=")
		out[k] = v
	}
	return out
}

func putFile(t testing.TB, tx *Tx, name, data string) {
	t.Helper()
	must(t, host.MkdirAll(tx.Files, path.Dir(name), 0o755))
	must(t, put(tx.Files, name, []byte(data), 0o644))
}

// content is what a file holds, "-" if it is not there.
func content(tx *Tx, name string) string {
	data, err := host.ReadFile(tx.Files, name)
	if errors.Is(err, os.ErrNotExist) {
		return "-"
	}
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func TestDatasetNamesAreCheckedAsZfsNamecheckDoes(t *testing.T) {
	// usr/src/common/zfs/zfs_namecheck.c; words of zfs_validate_name in libzfs_dataset.c.
	for _, tc := range []struct {
		name      string
		types     DatasetTypes
		modifying bool
		want      string
	}{
		{"tank/a-b_c.d:e f", TypeFilesystem, true, ""},
		{"tank/a@b", TypeSnapshot, true, ""},
		{"", TypeFilesystem, true, "empty component in name"},
		{"/tank", TypeFilesystem, true, "leading slash in name"},
		{"tank/", TypeFilesystem, true, "trailing slash in name"},
		{"tank//a", TypeFilesystem, true, "empty component in name"},
		{"tank/a@", TypeSnapshot, true, "empty component in name"},
		{"tank/a$b", TypeFilesystem, true, "invalid character '$' in name"},
		{"tank/a@b@c", TypeSnapshot, true, "multiple '@' and/or '#' delimiters in name"},
		{"tank@a/b", TypeSnapshot, true, "trailing slash in name"},
		{"tank/a@b", TypeFilesystem, true, "snapshot delimiter '@' is not expected here"},
		{"tank/a", TypeSnapshot, true, "missing '@' delimiter in snapshot name"},
		{"tank/a#b", TypeDataset, false, "bookmark delimiter '#' is not expected here"},
		{"tank/a%b", TypeFilesystem, true, "invalid character % in name"},
		{"tank/a%b", TypeFilesystem, false, ""},
		{"tank/" + strings.Repeat("x", 251), TypeFilesystem, true, "name is too long"},
		{"tank/" + strings.Repeat("x", 250), TypeFilesystem, true, ""},
	} {
		if got := checkDatasetName(tc.name, tc.types, tc.modifying); got != tc.want {
			t.Errorf("%q: %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestPoolNamesAreCheckedAsPoolNamecheckDoes(t *testing.T) {
	// usr/src/common/zfs/zfs_namecheck.c; words of zpool_name_valid in libzfs_pool.c.
	for name, want := range map[string]string{
		"tank": "", "oxp_8d0b": "", "logs": "",
		"c1t0d0": "pool name is reserved", "mirror1": "name is reserved", "raidz": "name is reserved", "log": "name is reserved",
		"1tank": "name must begin with a letter", "": "name must begin with a letter", "a/b": "invalid character '/' in pool name",
	} {
		if got := checkPoolName(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func TestSizesAreWrittenAndReadAsLibzfsDoes(t *testing.T) {
	// zfs_nicenum_format and zfs_nicestrtonum in libzfs_util.c.
	for n, want := range map[uint64]string{
		0: "0B", 1: "1B", 1023: "1023B", 1024: "1K", 1536: "1.50K", 98304: "96K", 10239: "10.0K", 1109393408: "1.03G",
		1 << 40: "1T", 3200631791616: "2.91T", 1<<64 - 1: "16.0E",
	} {
		if got := NiceBytes(n); got != want {
			t.Errorf("NiceBytes(%d) = %q, want %q", n, got, want)
		}
	}
	for s, want := range map[string]string{
		"100G": "107374182400", "1.5K": "1536", "512mb": "536870912", "7": "7", "2b": "2", ".5k": "512",
		"10BB": "invalid numeric suffix 'BB'", "10X": "invalid numeric suffix 'X'", "ten": "bad numeric value 'ten'",
		"99999999999999999999": "numeric value is too large", "17179869184G": "numeric value is too large", "": "bad numeric value ''",
	} {
		n, err := ParseSize(s)
		got := strconv.FormatUint(n, 10)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("ParseSize(%q) = %s, want %s", s, got, want)
		}
	}
}

func TestValuesComeFromTheNearestThatHasOne(t *testing.T) {
	// zfs(8), Native and User Properties; zfs_prop_get in libzfs_dataset.c.
	tx := datasetTx(t)
	mk(t, tx, "tank/z", "mountpoint=/zones", "compression=gzip-6", "quota=10G", "sledctl:instance=i-1")
	mk(t, tx, "tank/z/a")
	must(t, tx.Snapshot("tank/z/a@s", map[string]string{"org.x:y": "on the snapshot"}))
	must(t, tx.Clone("tank/z/a@s", "tank/c", nil))
	must(t, tx.CreateVolume("tank/v", 1<<30, false, nil, KeyOptions{}))
	for _, tc := range []struct{ name, property, value, source string }{
		{"tank", "mountpoint", "/tank", "default"},
		{"tank/z", "mountpoint", "/zones", "local"},
		{"tank/z/a", "mountpoint", "/zones/a", "inherited from tank/z"},
		{"tank/c", "mountpoint", "/tank/c", "default"},
		{"tank/z/a@s", "mountpoint", "-", "-"},
		{"tank/z", "compression", "gzip", "local"},
		{"tank/z/a", "compression", "gzip", "inherited from tank/z"},
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
		{"tank/z/a@s", "clones", "tank/c", "-"},
		{"tank/z", "avail", "10737221632", "-"},
		{"tank/z", "type", "filesystem", "-"},
		{"tank/z/a", "mounted", "yes", "-"},
		{"tank/v", "mounted", "-", "-"},
		{"tank/v", "volsize", "1073741824", "local"},
		{"tank/v", "refreservation", "1109393408", "local"},
		{"tank/v", "volblocksize", "8192", "default"},
		{"tank/z", "creation", "1795230245", "-"},
		{"tank/z", "nothing", "-", "-"},
		{"tank/z", "encryption", "off", "default"},
		{"tank/z", "keystatus", "-", "-"},
	} {
		value, source := tx.Property(tc.name, tc.property)
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
	value, source := tx.Property("tank/l/x", "mountpoint")
	if value != "legacy" || source != "inherited from tank/l" {
		t.Errorf("mountpoint: %q %q", value, source)
	}
	if d := tx.FindDataset("tank/l/x"); d.Mounted != "" {
		t.Errorf("mounted at %q", d.Mounted)
	}
}

func TestCreationIsRefusedAsLibzfsRefusesIt(t *testing.T) {
	// zfs_create, check_parents and zfs_valid_proplist in libzfs_dataset.c.
	tx := datasetTx(t)
	mk(t, tx, "tank/a")
	must(t, tx.CreateVolume("tank/v", 1<<20, true, nil, KeyOptions{}))
	for _, tc := range []struct{ name, props, want string }{
		{"tank/a", "", "cannot create 'tank/a': dataset already exists"},
		{"tank/x/y", "", "cannot create 'tank/x/y': parent does not exist"},
		{"nope/x", "", "cannot create 'nope/x': no such pool 'nope'"},
		{"tank", "", "cannot create 'tank': missing dataset name"},
		{"tank/v/x", "", "cannot create 'tank/v/x': parent is not a filesystem"},
		{"tank/b", "bogus=1", "cannot create 'tank/b': invalid property 'bogus'"},
		{"tank/b", "used=1", "cannot create 'tank/b': 'used' is readonly"},
		{"tank/b", "volsize=1G", "cannot create 'tank/b': 'volsize' does not apply to datasets of this type"},
		{"tank/b", "quota=0", "cannot create 'tank/b': use 'none' to disable quota/refquota"},
		{"tank/b", "quota=lots", "cannot create 'tank/b': bad numeric value 'lots'"},
		{"tank/b", "canmount=maybe", "cannot create 'tank/b': 'canmount' must be one of 'on | off | noauto'"},
		{"tank/b", "mountpoint=here", "cannot create 'tank/b': 'mountpoint' must be an absolute path, 'none', or 'legacy'"},
		{"tank/b", "recordsize=1000", "cannot create 'tank/b': 'recordsize' must be power of 2 from 512B to 1M"},
		{"tank/b", "keyformat=raw", "cannot create 'tank/b': Encryption must be turned on to set encryption properties."},
		{"tank/b", "encryption=on", "cannot create 'tank/b': Keyformat required for new encryption root."},
	} {
		var props []string
		if tc.props != "" {
			props = []string{tc.props}
		}
		refused(t, tx.CreateFilesystem(tc.name, pairs(props)), tc.want)
	}
	refused(t, tx.CreateVolume("tank/w", 1000, true, nil, KeyOptions{}),
		"cannot create 'tank/w': volume size must be a multiple of volume block size")
	refused(t, tx.CreateVolume("tank/w", 1<<50, false, nil, KeyOptions{}), "cannot create 'tank/w': out of space")
	refused(t, tx.CreateVolume("tank/w", 0, true, nil, KeyOptions{}), "cannot create 'tank/w': volume size cannot be zero")
}

func TestSnapshotsOfManyAreTakenTogetherOrNotAtAll(t *testing.T) {
	// zfs(8): "zfs snapshot … atomically"; zfs_snapshot_nvl in libzfs_dataset.c.
	tx := datasetTx(t)
	mk(t, tx, "tank/a")
	mk(t, tx, "tank/b")
	must(t, tx.Snapshot("tank/b@s", nil))
	refused(t, tx.SnapshotAll([]string{"tank/a@s", "tank/b@s"}, nil), "cannot create snapshot 'tank/b@s': dataset already exists")
	if tx.FindDataset("tank/a@s") != nil {
		t.Error("the first was taken although the second was refused")
	}
	refused(t, tx.Snapshot("tank/a@x", map[string]string{"quota": "1G"}),
		"cannot create snapshots : this property can not be modified for snapshots")
	must(t, tx.SnapshotAll([]string{"tank/a@t", "tank/b@t"}, map[string]string{"org.x:why": "test"}))
	if a, b := tx.FindDataset("tank/a@t").Created, tx.FindDataset("tank/b@t").Created; a != b {
		t.Errorf("transaction groups %d and %d differ", a, b)
	}
}

func TestDestroyRefusesWhatZfsDestroyRefuses(t *testing.T) {
	// zfs_do_destroy and destroy_check_dependent in usr/src/cmd/zfs/zfs_main.c.
	tx := datasetTx(t)
	mk(t, tx, "tank/a")
	mk(t, tx, "tank/a/b")
	must(t, tx.Snapshot("tank/a@s", nil))
	must(t, tx.Clone("tank/a@s", "tank/c", nil))
	must(t, tx.MountAuto("tank/c"))
	refused(t, tx.Destroy("tank/a", DestroyOptions{}),
		"cannot destroy 'tank/a': filesystem has children\nuse '-r' to destroy the following datasets:\ntank/a/b\ntank/a@s")
	refused(t, tx.Destroy("tank/a", DestroyOptions{Recursive: true}),
		"cannot destroy 'tank/a': filesystem has dependent clones\nuse '-R' to destroy the following datasets:\ntank/c")
	refused(t, tx.Destroy("tank/a@s", DestroyOptions{}),
		"cannot destroy 'tank/a@s': snapshot has dependent clones\nuse '-R' to destroy the following datasets:\ntank/c")
	refused(t, tx.Destroy("tank/a@none", DestroyOptions{}), "could not find any snapshots to destroy; check snapshot names.")
	refused(t, tx.Destroy("tank/none", DestroyOptions{}), "cannot open 'tank/none': dataset does not exist")
	refused(t, tx.Destroy("tank", DestroyOptions{}), "cannot destroy 'tank': operation does not apply to pools\n"+
		"use 'zfs destroy -r tank' to destroy all datasets in the pool\nuse 'zpool destroy tank' to destroy the pool itself")
	var order []string
	must(t, tx.Destroy("tank/a", DestroyOptions{Clones: true, Each: func(name string) { order = append(order, name) }}))
	if diff := cmp.Diff([]string{"tank/a/b", "tank/c", "tank/a@s", "tank/a"}, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if _, err := tx.Files.Stat("/tank/a"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the mountpoint of a destroyed file system is still there: %v", err)
	}
}

func TestADeferredSnapshotGoesWithItsLastClone(t *testing.T) {
	// zfs(8), destroy -d.
	tx := datasetTx(t)
	mk(t, tx, "tank/a")
	must(t, tx.Snapshot("tank/a@s", nil))
	must(t, tx.Clone("tank/a@s", "tank/c", nil))
	must(t, tx.Destroy("tank/a@s", DestroyOptions{Defer: true}))
	if value, _ := tx.Property("tank/a@s", "defer_destroy"); value != "on" {
		t.Errorf("defer_destroy is %q", value)
	}
	must(t, tx.Destroy("tank/c", DestroyOptions{}))
	if tx.FindDataset("tank/a@s") != nil {
		t.Error("the snapshot is still there")
	}
}

func TestSnapshotRangesTakeWhatLiesBetween(t *testing.T) {
	// zfs(8), destroy <snap>[%<snap>][,...]; zfs_iter_snapspec in libzfs_iter.c.
	for spec, want := range map[string]string{"b": "acd", "b%c": "ad", "%b": "cd", "c%": "ab", "a,d": "bc", "%": ""} {
		tx := datasetTx(t)
		mk(t, tx, "tank/a")
		for _, s := range "abcd" {
			must(t, tx.Snapshot("tank/a@"+string(s), nil))
		}
		must(t, tx.Destroy("tank/a@"+spec, DestroyOptions{}))
		left := ""
		for _, s := range tx.Snapshots("tank/a") {
			left += strings.TrimPrefix(s.Name, "tank/a@")
		}
		if left != want {
			t.Errorf("%s leaves %q, want %q", spec, left, want)
		}
	}
}

func TestPromoteTurnsTheGraphAround(t *testing.T) {
	// zfs(8), promote; dsl_dataset_promote in usr/src/uts/common/fs/zfs/dsl_dataset.c.
	tx := datasetTx(t)
	mk(t, tx, "tank/a")
	for _, s := range []string{"1", "2", "3"} {
		must(t, tx.Snapshot("tank/a@"+s, nil))
	}
	must(t, tx.Clone("tank/a@2", "tank/c", nil))
	must(t, tx.Clone("tank/a@1", "tank/d", nil))
	must(t, tx.Snapshot("tank/c@1", nil))
	refused(t, tx.Promote("tank/c"), "cannot promote 'tank/c': conflicting snapshot '1' from parent 'tank/a@2'")
	must(t, tx.Destroy("tank/c@1", DestroyOptions{}))
	refused(t, tx.Promote("tank/a"), "cannot promote 'tank/a': not a cloned filesystem")
	must(t, tx.Promote("tank/c"))
	got := map[string]string{}
	for _, d := range tx.Survey().All() {
		if poolName(d.Name) == "tank" {
			got[d.Name] = d.Origin
		}
	}
	want := map[string]string{
		"tank": "", "tank/a": "tank/c@2", "tank/a@3": "", "tank/c": "", "tank/c@1": "", "tank/c@2": "", "tank/d": "tank/c@1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("graph (-want +got):\n%s", diff)
	}
}

func TestSettingsThatMoveFileSystemsRemountThem(t *testing.T) {
	// zfs_prop_set_list and libzfs_changelist.c.
	tx := datasetTx(t)
	mk(t, tx, "tank/a")
	mk(t, tx, "tank/a/b")
	mk(t, tx, "tank/a/own", "mountpoint=/own")
	putFile(t, tx, "/tank/a/b/f", "b's")
	must(t, tx.SetProperty("tank/a", "mountpoint", "/elsewhere"))
	if got := content(tx, "/elsewhere/b/f"); got != "b's" {
		t.Errorf("/elsewhere/b/f: %q", got)
	}
	if d := tx.FindDataset("tank/a/own"); d.Mounted != "/own" {
		t.Errorf("what has a mountpoint of its own moved to %q", d.Mounted)
	}
	if _, err := tx.Files.Stat("/tank/a"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the default mountpoint is still there: %v", err)
	}
	must(t, tx.SetProperty("tank/a", "canmount", "off"))
	if d := tx.FindDataset("tank/a"); d.Mounted != "" {
		t.Errorf("canmount=off leaves it mounted at %q", d.Mounted)
	}
	must(t, tx.SetProperty("tank/a/b", "zoned", "on"))
	if d := tx.FindDataset("tank/a/b"); d.Mounted != "" {
		t.Errorf("zoned=on leaves it mounted at %q", d.Mounted)
	}
	refused(t, tx.SetProperty("tank/a/b", "mountpoint", "/x"),
		"cannot set property for 'tank/a/b': 'mountpoint' cannot be set on dataset in a non-global zone")
	refused(t, tx.SetProperty("tank/a", "mountpoint", "/x"),
		"cannot set property for 'tank/a': child dataset with inherited mountpoint is used in a non-global zone")
	refused(t, tx.Mount("tank/a/b"), "cannot mount 'tank/a/b': dataset is exported to a local zone")
}

func TestQuotasAndReservationsMustFit(t *testing.T) {
	// zfs_setprop_error in libzfs_dataset.c; omicron issue 10662: an equal quota
	// can be refused once more is used.
	tx := datasetTx(t)
	mk(t, tx, "tank/a")
	must(t, tx.CreateVolume("tank/a/v", 1<<30, false, nil, KeyOptions{}))
	refused(t, tx.SetProperty("tank/a", "quota", "1G"),
		"cannot set property for 'tank/a': size is less than current used or reserved space")
	must(t, tx.SetProperty("tank/a", "quota", "2G"))
	refused(t, tx.SetProperty("tank/a", "reservation", "1P"),
		"cannot set property for 'tank/a': size is greater than available space")
	refused(t, tx.CreateVolume("tank/a/w", 1<<30, false, nil, KeyOptions{}), "cannot create 'tank/a/w': out of space")
	must(t, tx.SetProperty("tank/a", "quota", "none"))
	if value, source := tx.Property("tank/a", "quota"); value != "0" || source != "local" {
		t.Errorf("quota: %s %s", value, source)
	}
	must(t, tx.SetProperty("tank/a/v", "volsize", "2G"))
	if value, _ := tx.Property("tank/a/v", "refreservation"); value != "2216689664" {
		t.Errorf("the reservation did not follow the size: %s", value)
	}
}

func TestSpaceAddsUp(t *testing.T) {
	// zfs(8), the properties used, usedby*, available: used is the sum of its parts.
	tx := datasetTx(t)
	mk(t, tx, "tank/a")
	mk(t, tx, "tank/a/b", "reservation=1G")
	must(t, tx.CreateVolume("tank/a/v", 1<<30, false, nil, KeyOptions{}))
	s := tx.Survey()
	for _, d := range s.All() {
		if d.Kind() == TypeSnapshot {
			continue
		}
		sum := s.bytes(d, "usedbydataset") + s.bytes(d, "usedbychildren") + s.bytes(d, "usedbysnapshots") + s.bytes(d, "usedbyrefreservation")
		if used := s.bytes(d, "used"); used != sum {
			t.Errorf("%s: used %d, its parts %d", d.Name, used, sum)
		}
	}
	tank := tx.FindDataset("tank")
	if got, want := s.bytes(tank, "used")+s.bytes(tank, "available"), tx.capacity("tank"); got != want {
		t.Errorf("used and available of the pool are %d, want %d", got, want)
	}
	b := tx.FindDataset("tank/a/b")
	if got := s.bytes(b, "available") - s.bytes(tank, "available"); got != 1<<30-ownBytes {
		t.Errorf("a reservation of 1 GiB leaves %d more to its owner", got)
	}
}

func TestPropertiesAreInheritedAgain(t *testing.T) {
	// zfs_prop_inherit in libzfs_dataset.c.
	tx := datasetTx(t)
	mk(t, tx, "tank/a", "compression=lz4", "org.x:y=1", "mountpoint=/a")
	must(t, tx.Inherit("tank/a", "compression"))
	must(t, tx.Inherit("tank/a", "org.x:y"))
	must(t, tx.Inherit("tank/a", "org.x:never"))
	must(t, tx.Inherit("tank/a", "mountpoint"))
	if d := tx.FindDataset("tank/a"); len(d.Local) != 0 || d.Mounted != "/tank/a" {
		t.Errorf("left: %v, mounted at %q", d.Local, d.Mounted)
	}
	refused(t, tx.Inherit("tank/a", "quota"), "cannot inherit quota for 'tank/a': property cannot be inherited")
	refused(t, tx.Inherit("tank/a", "used"), "cannot inherit used for 'tank/a': read-only property")
}

func TestRenameKeepsContentsCloneAndOrigin(t *testing.T) {
	// zfs_rename in libzfs_dataset.c.
	tx := datasetTx(t)
	mk(t, tx, "tank/a")
	mk(t, tx, "tank/a/b")
	mk(t, tx, "tank/x")
	putFile(t, tx, "/tank/a/b/f", "b's")
	must(t, tx.Snapshot("tank/a/b@s", nil))
	must(t, tx.Clone("tank/a/b@s", "tank/c", nil))
	must(t, tx.CreateVolume("tank/a/v", 1<<20, true, nil, KeyOptions{}))
	refused(t, tx.Rename("tank/a", "tank/x", false, false), "cannot rename 'tank/a': dataset already exists")
	refused(t, tx.Rename("tank/a", "tank/a/b/c", false, false),
		"cannot rename to 'tank/a/b/c': New dataset name cannot be a descendant of current dataset name")
	refused(t, tx.Rename("tank/a", "rpool/a", false, false), "cannot rename to 'rpool/a': datasets must be within same pool")
	refused(t, tx.Rename("tank/a", "tank/no/a", false, false), "cannot rename to 'tank/no/a': parent does not exist")
	must(t, tx.Rename("tank/a", "tank/x/a", false, false))
	if got := content(tx, "/tank/x/a/b/f"); got != "b's" {
		t.Errorf("/tank/x/a/b/f: %q", got)
	}
	if got := tx.FindDataset("tank/c").Origin; got != "tank/x/a/b@s" {
		t.Errorf("origin of the clone: %q", got)
	}
	if content(tx, "/dev/zvol/rdsk/tank/x/a/v") != "" || content(tx, "/dev/zvol/rdsk/tank/a/v") != "-" {
		t.Error("the device of the volume did not follow")
	}
	must(t, tx.Rename("tank/x/a/b@s", "t", false, false))
	if tx.FindDataset("tank/x/a/b@t") == nil || tx.FindDataset("tank/c").Origin != "tank/x/a/b@t" {
		t.Error("the snapshot was not renamed")
	}
}

func TestKeysAreLoadedUnloadedAndRefused(t *testing.T) {
	// zfs_crypto_create, zfs_crypto_load_key, zfs_crypto_unload_key in libzfs_crypto.c.
	tx := datasetTx(t)
	putFile(t, tx, "/var/run/key", strings.Repeat("k", 32))
	putFile(t, tx, "/var/run/short", "k")
	props := map[string]string{"encryption": "aes-256-gcm", "keyformat": "raw", "keylocation": "file:///var/run/short"}
	refused(t, tx.CreateFilesystem("tank/e", props), "cannot create 'tank/e': Raw key too short (expected 32).")
	props["keylocation"] = "file:///var/run/none"
	refused(t, tx.CreateFilesystem("tank/e", props), "cannot create 'tank/e': Failed to open key material file")
	props["keylocation"] = "file:///var/run/key"
	must(t, tx.CreateFilesystem("tank/e", props))
	must(t, tx.MountAuto("tank/e"))
	mk(t, tx, "tank/e/zone")
	refused(t, tx.UnloadKey("tank/e"), "Key unload error: 'tank/e' is busy.")
	refused(t, tx.LoadKey("tank/e", KeyOptions{}), "Key load error: Key already loaded for 'tank/e'.")
	refused(t, tx.LoadKey("tank/e/zone", KeyOptions{}),
		"Key load error: Keys must be loaded for encryption root of 'tank/e/zone' (tank/e).")
	refused(t, tx.LoadKey("tank", KeyOptions{}), "Key load error: 'tank' is not encrypted.")
	putFile(t, tx, "/tank/e/zone/f", "secret")
	must(t, tx.RebootDatasets())
	for property, want := range map[string]string{"keystatus": "unavailable", "mounted": "no", "encryption": "aes-256-gcm", "encryptionroot": "tank/e"} {
		if value, _ := tx.Property("tank/e/zone", property); value != want {
			t.Errorf("after a reboot %s is %q, want %q", property, value, want)
		}
	}
	refused(t, tx.Mount("tank/e"), "cannot mount 'tank/e': encryption key not loaded")
	refused(t, tx.CreateFilesystem("tank/e/other", nil), "cannot create 'tank/e/other': encryption root's key is not loaded or provided")
	putFile(t, tx, "/var/run/wrong", strings.Repeat("w", 32))
	refused(t, tx.LoadKey("tank/e", KeyOptions{Location: "file:///var/run/wrong"}), "Key load error: Incorrect key provided for 'tank/e'.")
	must(t, tx.MountWith("tank/e", MountOptions{LoadKeys: true}))
	must(t, tx.Mount("tank/e/zone"))
	if got := content(tx, "/tank/e/zone/f"); got != "secret" {
		t.Errorf("contents after a reboot: %q", got)
	}
}

func TestPoolsComeAndGoWithTheirDatasets(t *testing.T) {
	// zpool(8), export, import and destroy.
	tx := datasetTx(t)
	mk(t, tx, "tank/a")
	putFile(t, tx, "/tank/a/f", "a's")
	must(t, tx.Snapshot("tank/a@s", nil))
	must(t, tx.Clone("tank/a@s", "tank/c", nil))
	must(t, tx.ExportPool("tank", false))
	if found := tx.selectDatasets(func(d *Dataset) bool { return strings.HasPrefix(d.Name, "tank") }); len(found) != 0 {
		t.Errorf("an exported pool shows %d datasets", len(found))
	}
	refused(t, tx.ExportPool("tank", false), "cannot open 'tank': no such pool")
	refused(t, tx.CreatePool("new", []string{"c11t0d0"}, PoolOptions{}), "invalid vdev specification\n"+
		"use '-f' to override the following errors:\n/dev/dsk/c11t0d0s0 is part of exported or potentially active ZFS pool tank. Please see zpool(8).")
	pools, err := tx.Importable("/dev/dsk")
	if err != nil || len(pools) != 1 {
		t.Fatalf("%d pools to import, %v", len(pools), err)
	}
	must(t, tx.ImportPool(pools[0], "renamed", nil))
	must(t, tx.MountPool("renamed"))
	if got := content(tx, "/renamed/a/f"); got != "a's" {
		t.Errorf("/renamed/a/f: %q", got)
	}
	if got := tx.FindDataset("renamed/c").Origin; got != "renamed/a@s" {
		t.Errorf("origin: %q", got)
	}
	refused(t, tx.CreatePool("new", []string{"c11t0d0"}, PoolOptions{Force: true}), "invalid vdev specification\n"+
		"the following errors must be manually repaired:\n/dev/dsk/c11t0d0s0 is part of active ZFS pool renamed. Please see zpool(8).")
	refused(t, tx.CreatePool("new", []string{"c9t9d9"}, PoolOptions{}),
		"cannot open 'c9t9d9': no such device in /dev/dsk\nmust be a full path or shorthand device name")
	must(t, tx.DestroyPool("renamed", false))
	if d := tx.State.Disks[0]; d.Pool != "" {
		t.Errorf("the disk still carries the label of %s", d.Pool)
	}
	must(t, tx.CreatePool("new", []string{"c11t0d0"}, PoolOptions{}))
}

func TestNothingChangesInAPoolThatIsSuspended(t *testing.T) {
	// POOL_CHECK_SUSPENDED in usr/src/uts/common/fs/zfs/zfs_ioctl.c, EAGAIN in
	// zfs_common_error of libzfs_util.c.
	tx := datasetTx(t)
	mk(t, tx, "tank/a")
	must(t, tx.Snapshot("tank/a@s", nil))
	must(t, tx.Clone("tank/a@s", "tank/c", nil))
	before := len(tx.State.Datasets)
	if !tx.LoseDisk("c11t0d0") {
		t.Fatal("there is no such disk")
	}
	const why = ": pool I/O is currently suspended"
	refused(t, tx.CreateFilesystem("tank/b", nil), "cannot create 'tank/b'"+why)
	refused(t, tx.CreateVolume("tank/v", 8192, true, nil, KeyOptions{}), "cannot create 'tank/v'"+why)
	refused(t, tx.Snapshot("tank/a@t", nil), "cannot create snapshots "+why)
	// Others open the dataset first, and get no further (ZFS_IOC_OBJSET_STATS).
	refused(t, tx.Clone("tank/a@s", "tank/d", nil), "cannot open 'tank/a@s'"+why)
	refused(t, tx.SetProperty("tank/a", "org.x:y", "1"), "cannot open 'tank/a'"+why)
	refused(t, tx.Inherit("tank/a", "org.x:y"), "cannot open 'tank/a'"+why)
	refused(t, tx.Rename("tank/a", "tank/z", false, false), "cannot open 'tank/a'"+why)
	refused(t, tx.Rename("tank/a@s", "tank/a@z", false, false), "cannot open 'tank/a@s'"+why)
	refused(t, tx.Promote("tank/c"), "cannot open 'tank/c'"+why)
	refused(t, tx.Destroy("tank/c", DestroyOptions{}), "cannot open 'tank/c'"+why)
	refused(t, tx.Mount("tank/c"), "cannot open 'tank/c'"+why)
	if got := len(tx.State.Datasets); got != before || tx.FindDataset("tank/a").Mounted == "" {
		t.Errorf("%d datasets, %d before", got, before)
	}

	tx.ReturnDisk("c11t0d0")
	must(t, tx.Destroy("tank/c", DestroyOptions{}))
	refused(t, tx.Destroy("tank/a@none", DestroyOptions{}), "could not find any snapshots to destroy; check snapshot names.")
	tx.LoseDisk("c11t0d0")
	refused(t, tx.Destroy("tank/a@s", DestroyOptions{}), "cannot open 'tank/a'"+why)
}
