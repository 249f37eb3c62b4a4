package tools

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/boot"
	"github.com/sledctl/sledctl/sim/world/zfs"
	"github.com/sledctl/sledctl/test/hosttest"
)

// diskTx is a transaction on a fresh sled with one M.2 and one U.2 disk.
func diskTx(t testing.TB, o boot.Options) *world.Tx {
	t.Helper()
	o.M2, o.U2, o.Links = 1, 1, -1
	w := boot.Memory(o, hosttest.Files)
	var tx *world.Tx
	if err := w.Update(t.Context(), func(inner *world.Tx) error {
		tx = world.NewTx(inner.State, inner.Now, inner.Files)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return tx
}

// usr/src/cmd/prtconf/pdevinfo.c: dump_devs, dump_prop_list, dump_minor_data.
// The nodes and properties are those that omicron's
// sled-hardware/src/illumos/mod.rs walks.
func TestPrtconfShowsWhereADiskIs(t *testing.T) {
	tx := diskTx(t, boot.Options{Mode: world.Helios})
	got := zfsLine(tx, "prtconf -vD")
	if got.Exit != 0 || got.Stderr != "" {
		t.Fatalf("exit %d: %s", got.Exit, got.Stderr)
	}
	const head = `System Configuration:  Oxide  oxide
Memory size: 1048064 Megabytes
System Peripherals (Software Nodes):

Oxide,Gimlet (driver name: rootnex)
    System properties:
`
	if !strings.HasPrefix(got.Stdout, head) {
		t.Errorf("it begins with %q", got.Stdout[:min(len(got.Stdout), len(head))])
	}
	for _, want := range []string{
		"        name='boot-storage-unit' type=int items=1\n            value=00000041\n",
		`        pci1de,fff9, instance #2 (driver name: pcieb)
            Hardware properties:
                name='device_type' type=string items=1
                    value='pciex'
                name='physical-slot#' type=int items=1
                    value=00000000
`,
		`            pci1b96,0, instance #1 (driver name: nvme)
                Hardware properties:
                    name='vendor-id' type=int items=1
                        value=00001b96
`,
		`                blkdev, instance #1 (driver name: blkdev)
                    Driver properties:
                        name='ddi-kernel-ioctl' type=boolean dev=none
`,
		"                        name='inquiry-serial-no' type=string items=1\n" +
			"                            value='" + tx.State.Disks[1].Serial + "'\n",
		"                        name='inquiry-product-id' type=string items=1\n                            value='WUS4C6432DSP3X3'\n",
		"                        name='inquiry-vendor-id' type=string items=1\n                            value='NVMe'\n",
		`                    Device Minor Nodes:
                        dev=(202,64)
                            dev_path=/pci@0,0/pci1de,fff9@1,2/pci1b96,0@0/blkdev@0,0:a
                                spectype=blk type=minor
                                dev_link=/dev/dsk/c11t0d0s0
                            dev_path=/pci@0,0/pci1de,fff9@1,2/pci1b96,0@0/blkdev@0,0:a,raw
                                spectype=chr type=minor
                                dev_link=/dev/rdsk/c11t0d0s0
`,
		`                        dev=(202,71)
                            dev_path=/pci@0,0/pci1de,fff9@1,2/pci1b96,0@0/blkdev@0,0:wd
                                spectype=blk type=minor
                                dev_link=/dev/dsk/c11t0d0
`,
	} {
		if !strings.Contains(got.Stdout, want) {
			t.Errorf("there is no %s", want)
		}
	}
}

// A slot without a disk has a bridge and nothing below it, as a bay that is empty.
func TestPrtconfShowsAnEmptySlot(t *testing.T) {
	tx := diskTx(t, boot.Options{})
	zfs.LoseDisk(tx, "c11t0d0")
	got := zfsLine(tx, "prtconf -vD").Stdout
	const head = "System Configuration:  Supermicro  i86pc\nMemory size: 1048064 Megabytes\nSystem Peripherals (Software Nodes):\n\ni86pc (driver name: rootnex)\n"
	if !strings.HasPrefix(got, head) || strings.Count(got, "(driver name: pcieb)") != 2 || strings.Count(got, "(driver name: nvme)") != 1 || !strings.Contains(got, "\n    fw\n") {
		t.Errorf("%s", got)
	}
	// Without -D a node bears the name of the device: di_node_name in usr/src/lib/libdevinfo.
	if plain := zfsLine(tx, "prtconf -v").Stdout; strings.Contains(plain, "driver name") || !strings.Contains(plain, "\n    fw (driver not attached)\n") || !strings.Contains(plain, "\n            pci1b96,0, instance #0\n") {
		t.Errorf("%s", plain)
	}
}

// usr/src/cmd/fstyp/fstyp.c: main, and the exit codes of libfstyp.h.
func TestFstypNamesThePoolOnADevice(t *testing.T) {
	tx := diskTx(t, boot.Options{})
	m2, u2 := tx.State.Disks[0], tx.State.Disks[1]
	for _, device := range []string{
		"/dev/dsk/c1t0d0s5", "/dev/rdsk/c1t0d0s5",
	} {
		if diff := cmp.Diff(cli.Reply{Stdout: "zfs\n"}, zfsLine(tx, "fstyp "+device)); diff != "" {
			t.Errorf("%s: %s", device, diff)
		}
		if got := zfsLine(tx, "fstyp -a "+device).Stdout; !strings.HasPrefix(got, "zfs\nversion: 5000\nname: '"+m2.Pool+"'\nstate: 0\n") {
			t.Errorf("%s: %s", device, got)
		}
	}
	if got := zfsLine(tx, "fstyp -a /dev/dsk/c11t0d0s0").Stdout; !strings.Contains(got, "\nname: '"+u2.Pool+"'\n") {
		t.Errorf("the U.2 bears %s", got)
	}
	none := cli.Reply{Stderr: "unknown_fstyp (no matches)\n", Exit: 1}
	shut := cli.Reply{Stderr: "unknown_fstyp (cannot open device)\n", Exit: 7}
	for device, want := range map[string]cli.Reply{
		"/dev/dsk/c1t0d0s4":   none, // the dump device
		"/dev/rdsk/c11t0d0":   none, // the label is in slice 0, not before it
		"/dev/rdsk/c11t0d0p0": none,
		"/dev/dsk/c1t0d0s6":   shut, // there is no such partition
		"/dev/dsk/c9t0d0s0":   shut,
		"/var/tmp/none":       shut,
		"/etc/release":        none,
	} {
		if diff := cmp.Diff(want, zfsLine(tx, "fstyp -a "+device)); diff != "" {
			t.Errorf("%s: %s", device, diff)
		}
	}
}

// A disk that cannot be read: nobody can open it whom its label would have to be
// read for (bd_open in usr/src/uts/common/io/blkdev/blkdev.c), but while a pool
// has it open it can be, and then fstyp takes what it cannot read for a missing
// label (zpool_read_label in usr/src/lib/libzutil/common/zutil_import.c). "No
// matches" is no proof of a blank disk.
func TestFstypTakesADiskThatFailsForABlankOne(t *testing.T) {
	tx := diskTx(t, boot.Options{})
	d := tx.State.Disks[1]
	d.Failing = true
	if got := zfsLine(tx, "fstyp -a /dev/dsk/c11t0d0s0"); got.Exit != 1 || got.Stderr != "unknown_fstyp (no matches)\n" {
		t.Errorf("with its pool imported: %+v", got)
	}
	d.Failing = false
	zfsLine(tx, "zpool export "+d.Pool)
	d.Failing = true
	if got := zfsLine(tx, "fstyp -a /dev/dsk/c11t0d0s0"); got.Exit != 7 || got.Stderr != "unknown_fstyp (cannot open device)\n" {
		t.Errorf("with its pool exported: %+v", got)
	}
}

// A label is in the file: it goes where the file goes, and is gone with it.
func TestFstypReadsTheLabelsOfFiles(t *testing.T) {
	tx := diskTx(t, boot.Options{})
	const name = "/var/tmp/u2_0.vdev"
	put := func(data []byte) {
		t.Helper()
		if err := host.WriteFile(tx.Files, name, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put(make([]byte, 64<<20))
	session(t, tx, `$ fstyp -a /var/tmp/u2_0.vdev
! unknown_fstyp (no matches)
= 1
$ zpool create tank /var/tmp/u2_0.vdev
$ fstyp /var/tmp/u2_0.vdev
zfs`)
	if data, err := host.ReadFile(tx.Files, name); err != nil || len(data) != 64<<20 || strings.Trim(string(data[:256<<10]), "\x00") == "" {
		t.Errorf("%d bytes, without a label: %v", len(data), err)
	}
	got := zfsLine(tx, "fstyp -a "+name).Stdout
	for _, want := range []string{"\nname: 'tank'\n", "    type: 'file'\n", "    path: '" + name + "'\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("its label has no %q: %s", want, got)
		}
	}
	session(t, tx, `$ zpool destroy tank
$ fstyp /var/tmp/u2_0.vdev
! unknown_fstyp (no matches)
= 1`)
}

// zpool destroy leaves the labels, with the state destroyed: fstyp knows none, and
// yet the disk is not blank (fstyp_mod_ident in usr/src/cmd/fs.d/zfs/fstyp/fstyp.c).
// zpool labelclear wipes them (zpool_do_labelclear in usr/src/cmd/zpool/zpool_main.c).
func TestLabelsOutliveTheirPool(t *testing.T) {
	tx := diskTx(t, boot.Options{})
	device, err := zfs.OpenDevice(tx, "/dev/rdsk/c11t0d0s0")
	if err != nil {
		t.Fatal(err)
	}
	zeros := func() bool {
		t.Helper()
		for _, at := range []int64{0, 256 << 10, zfs.DeviceSize(tx, device) - 512<<10, zfs.DeviceSize(tx, device) - 256<<10} {
			data := make([]byte, 256<<10)
			if err := zfs.ReadDevice(tx, device, data, at); err != nil {
				t.Fatal(err)
			}
			if strings.Trim(string(data), "\x00") != "" {
				return false
			}
		}
		return true
	}
	pool := tx.State.Disks[1].Pool
	session(t, tx, strings.ReplaceAll(`$ zpool destroy POOL
$ fstyp -a /dev/dsk/c11t0d0s0
! unknown_fstyp (no matches)
= 1`, "POOL", pool))
	if zeros() {
		t.Error("zpool destroy has wiped the labels")
	}
	session(t, tx, `$ zpool labelclear /dev/rdsk/c11t0d0s0
`)
	if !zeros() {
		t.Error("zpool labelclear has left labels")
	}
	session(t, tx, `$ zpool create tank c11t0d0
$ zpool export tank
$ zpool labelclear -f /dev/rdsk/c11t0d0s0
$ zpool import tank
! cannot import 'tank': no such pool available
= 1`)
}

// What zpool(8) and zfs(8) print about a pool whose disk is gone: status_callback in
// zpool_main.c, POOL_CHECK_SUSPENDED in zfs_ioctl.c, zfs_iter_root in
// libzfs_iter.c, which passes over what cannot be opened.
func TestASuspendedPool(t *testing.T) {
	tx := zfsTx(t)
	session(t, tx, `$ zfs create tank/a`)
	zfs.LoseDisk(tx, "c11t0d0")
	session(t, tx, `$ zpool list -Ho name,health
rpool→ONLINE
tank→UNAVAIL
$ zpool status -x
  pool: tank
 state: UNAVAIL
status: One or more devices are faulted in response to IO failures.
action: Make sure the affected devices are connected, then run 'zpool clear'.
   see: http://illumos.org/msg/ZFS-8000-HC
  scan: none requested
config:

	NAME        STATE     READ WRITE CKSUM
	tank        UNAVAIL      0     0     0  insufficient replicas
	  c11t0d0   UNAVAIL      0     0     0  cannot open

errors: No known data errors
$ zfs list -Ho name
rpool
rpool/ROOT
rpool/ROOT/omnios-r151058
$ zfs list -Ho name tank/a
! cannot open 'tank/a': pool I/O is currently suspended
= 1
$ zfs get -Hpo value used tank
! cannot open 'tank': pool I/O is currently suspended
= 1
$ zpool clear tank
! cannot clear errors for 'tank': I/O error
= 1`)
	if got := zfsLine(tx, "zpool export tank"); got.Next == nil || got.Next.Until(tx) {
		t.Errorf("exporting a suspended pool does not wait: %+v", got)
	}
	zfs.InsertDisk(tx, "c11t0d0")
	session(t, tx, `$ zfs list -Ho name tank/a
! cannot open 'tank/a': pool I/O is currently suspended
= 1
$ zpool clear tank
$ zfs list -Ho name tank/a
tank/a
$ zpool status -x
all pools are healthy`)
}

// zpool import looks at disks, and with -d at the files of a directory; which pool
// a file has is in the file (zpool_find_import_impl in zutil_import.c).
func TestPoolsOnFilesAreImportedFromTheirDirectory(t *testing.T) {
	tx := zfsTx(t)
	if err := host.WriteFile(tx.Files, "/var/tmp/u2_0.vdev", make([]byte, 64<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	session(t, tx, `$ zpool create -o ashift=12 oxp /var/tmp/u2_0.vdev
$ zfs create -o quota=1M oxp/a
$ zpool list -HP -o name,health oxp
oxp→ONLINE
$ zpool export oxp
$ zpool import oxp
! cannot import 'oxp': no such pool available
= 1
$ zpool import -d /none
! cannot open '/none': No such file or directory
= 1
$ zpool import -d /var/tmp
   pool: oxp
     id: GUID
  state: ONLINE
 action: The pool can be imported using its name or numeric identifier.
 config:

	oxp                   ONLINE
	  /var/tmp/u2_0.vdev  ONLINE
$ zpool import -d /var/tmp oxp
$ zfs get -Ho value quota,mounted oxp/a
1M
yes
$ zpool export oxp`)
	if err := tx.Files.Rename("/var/tmp/u2_0.vdev", "/var/tmp/moved.vdev"); err != nil {
		t.Fatal(err)
	}
	session(t, tx, `$ zpool import -d /var/tmp oxp
$ zpool status oxp
  pool: oxp
 state: ONLINE
  scan: none requested
config:

	NAME                   STATE     READ WRITE CKSUM
	oxp                    ONLINE       0     0     0
	  /var/tmp/moved.vdev  ONLINE       0     0     0

errors: No known data errors
$ zpool create other /var/tmp/moved.vdev
! invalid vdev specification
! use '-f' to override the following errors:
! /var/tmp/moved.vdev is part of active ZFS pool oxp. Please see zpool(8).
= 1
$ zpool export oxp`)
	if err := tx.Files.Remove("/var/tmp/moved.vdev"); err != nil {
		t.Fatal(err)
	}
	session(t, tx, `$ zpool import -d /var/tmp oxp
! cannot import 'oxp': no such pool available
= 1`)
}

// The system that a RAM disk boots has another host id each time, so that pools that
// were not exported seem to belong to another system (do_import in zpool_main.c).
func TestARAMDiskImportsItsPoolsByForce(t *testing.T) {
	tx := diskTx(t, boot.Options{Mode: world.Helios})
	pool := tx.State.Disks[1].Pool
	if err := boot.Reboot(tx); err != nil {
		t.Fatal(err)
	}
	got := zfsLine(tx, "zpool import "+pool)
	want := "cannot import '" + pool + "': pool was previously in use from another system.\nLast accessed by sled (hostid="
	if got.Exit != 1 || !strings.HasPrefix(got.Stderr, want) {
		t.Errorf("exit %d, %s", got.Exit, got.Stderr)
	}
	session(t, tx, strings.ReplaceAll(`$ zpool import -f POOL
$ zpool import -f POOL
! cannot import 'POOL': a pool with that name is already created/imported,
! and no additional pools with that name were found
= 1
$ zpool export POOL
$ zpool import POOL`, "POOL", pool))
}
