package zfs_test

import (
	"strings"
	"testing"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

func TestPoolNamesAreCheckedAsPoolNamecheckDoes(t *testing.T) {
	// usr/src/common/zfs/zfs_namecheck.c. Which rule a name breaks is not simulated.
	all := map[string]error{}
	tx := datasetTx(t)
	must(t, zfs.DestroyPool(tx, "tank", false))
	for _, name := range []string{"c1t0d0", "mirror1", "raidz", "log", "a/b", "1tank", "", "a@b", "a%b"} {
		all[name] = zfs.CreatePool(tx, name, "c11t0d0", zfs.PoolOptions{})
	}
	refusedAll(t, all)
	for _, name := range []string{"tank", "oxp_8d0b", "logs"} {
		must(t, zfs.CreatePool(tx, name, "c11t0d0", zfs.PoolOptions{}))
		must(t, zfs.DestroyPool(tx, name, false))
	}
}

func TestPoolsComeAndGoWithTheirDatasets(t *testing.T) {
	// zpool(8), export, import and destroy.
	tx := datasetTx(t)
	mk(t, tx, "tank/a")
	putFile(t, tx, "/tank/a/f", "a's")
	must(t, snapshot(tx, "tank/a@s", nil))
	must(t, zfs.Clone(tx, "tank/a@s", "tank/c", nil))
	must(t, zfs.ExportPool(tx, "tank"))
	if found := zfs.SelectDatasets(tx, func(d *world.Dataset) bool { return strings.HasPrefix(d.Name, "tank") }); len(found) != 0 {
		t.Errorf("an exported pool shows %d datasets", len(found))
	}
	refused(t, zfs.ExportPool(tx, "tank"), "cannot open 'tank': no such pool")
	refused(t, zfs.CreatePool(tx, "new", "c11t0d0", zfs.PoolOptions{}), "invalid vdev specification\n"+
		"use '-f' to override the following errors:\n/dev/dsk/c11t0d0s0 is part of exported or potentially active ZFS pool tank. Please see zpool(8).")
	pools, err := zfs.Importable(tx, "/dev/dsk")
	if err != nil || len(pools) != 1 {
		t.Fatalf("%d pools to import, %v", len(pools), err)
	}
	must(t, zfs.ImportPool(tx, pools[0]))
	must(t, zfs.MountPool(tx, "tank"))
	if got := content(tx, "/tank/a/f"); got != "a's" {
		t.Errorf("/tank/a/f: %q", got)
	}
	if got := zfs.FindDataset(tx, "tank/c").Origin; got != "tank/a@s" {
		t.Errorf("origin: %q", got)
	}
	refused(t, zfs.CreatePool(tx, "new", "c11t0d0", zfs.PoolOptions{}), "invalid vdev specification\n"+
		"use '-f' to override the following errors:\n/dev/dsk/c11t0d0s0 is part of active ZFS pool tank. Please see zpool(8).")
	refused(t, zfs.CreatePool(tx, "new", "c9t9d9", zfs.PoolOptions{}),
		"cannot open 'c9t9d9': no such device in /dev/dsk\nmust be a full path or shorthand device name")
	must(t, zfs.DestroyPool(tx, "tank", false))
	if d := tx.State.Disks[0]; d.Pool != "" {
		t.Errorf("the disk still carries the label of %s", d.Pool)
	}
	must(t, zfs.CreatePool(tx, "new", "c11t0d0", zfs.PoolOptions{}))
}

func TestNothingChangesInAPoolThatIsSuspended(t *testing.T) {
	// POOL_CHECK_SUSPENDED in usr/src/uts/common/fs/zfs/zfs_ioctl.c, EAGAIN in
	// zfs_common_error of libzfs_util.c.
	tx := datasetTx(t)
	mk(t, tx, "tank/a")
	must(t, snapshot(tx, "tank/a@s", nil))
	must(t, zfs.Clone(tx, "tank/a@s", "tank/c", nil))
	before := len(tx.State.Datasets)
	if !zfs.LoseDisk(tx, "c11t0d0") {
		t.Fatal("there is no such disk")
	}
	const why = ": pool I/O is currently suspended"
	refused(t, zfs.CreateFilesystem(tx, "tank/b", nil), "cannot create 'tank/b'"+why)
	refused(t, zfs.CreateVolume(tx, "tank/v", 8192, true, nil, zfs.KeyOptions{}), "cannot create 'tank/v'"+why)
	refused(t, snapshot(tx, "tank/a@t", nil), "cannot create snapshots "+why)
	// Others open the dataset first, and get no further (ZFS_IOC_OBJSET_STATS).
	refused(t, zfs.Clone(tx, "tank/a@s", "tank/d", nil), "cannot open 'tank/a@s'"+why)
	refused(t, set(tx, "tank/a", "org.x:y", "1"), "cannot open 'tank/a'"+why)
	refused(t, zfs.Inherit(tx, "tank/a", "org.x:y"), "cannot open 'tank/a'"+why)
	refused(t, zfs.Destroy(tx, "tank/c", zfs.DestroyOptions{}), "cannot open 'tank/c'"+why)
	refused(t, mount(tx, "tank/c"), "cannot open 'tank/c'"+why)
	if got := len(tx.State.Datasets); got != before || zfs.FindDataset(tx, "tank/a").Mounted == "" {
		t.Errorf("%d datasets, %d before", got, before)
	}

	zfs.InsertDisk(tx, "c11t0d0")
	must(t, zfs.ClearPool(tx, "tank"))
	must(t, zfs.Destroy(tx, "tank/c", zfs.DestroyOptions{}))
	refused(t, zfs.Destroy(tx, "tank/a@none", zfs.DestroyOptions{}), "could not find any snapshots to destroy; check snapshot names.")
	zfs.LoseDisk(tx, "c11t0d0")
	refused(t, zfs.Destroy(tx, "tank/a@s", zfs.DestroyOptions{}), "cannot open 'tank/a'"+why)
}
