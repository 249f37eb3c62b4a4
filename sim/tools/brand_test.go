package tools

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/boot"
	"github.com/sledctl/sledctl/sim/world/zfs"
	"github.com/sledctl/sledctl/sim/world/zones"
)

// The brands of OmniOS whose zones have boot environments: omniosorg/pkg5
// src/brand/ipkg and src/brand/sparse, and usr/src/lib/brand/shared/zone of the
// gate.

// createEnvironment and create_overlays in common.ksh.
func TestTheDatasetsOfAZone(t *testing.T) {
	for brand, want := range map[string]string{
		"ipkg": `rpool/zones/base→/zones/base→off→yes→-
rpool/zones/base/ROOT→legacy→on→no→-
rpool/zones/base/ROOT/zbe→legacy→on→yes→on
`,
		"sparse": `rpool/zones/base→/zones/base→off→yes→-
rpool/zones/base/ROOT→legacy→on→no→-
rpool/zones/base/ROOT/zbe→legacy→on→yes→on
rpool/zones/base/ROOT/zbe/fm→legacy→on→yes→on
rpool/zones/base/ROOT/zbe/svc→legacy→on→yes→on
`} {
		s := newZoneSled(t, boot.Options{}).base(brand)
		s.replay("$ zfs list -H -r -o name,mountpoint,zoned,mounted,org.opensolaris.libbe:active rpool/zones/base\n" + want)
		s.change(func(tx *world.Tx) {
			root := zfs.FindDataset(tx, "rpool/zones/base/ROOT/zbe")
			if root.Mounted != "/zones/base/root" || root.Local["canmount"] != "noauto" || root.Local["org.opensolaris.libbe:parentbe"] != zones.BootEnvironment(tx) {
				t.Errorf("%s: mounted on %s, %v", brand, root.Mounted, root.Local)
			}
			if d := zfs.MountedAt(tx, "/zones/base/root/lib/svc"); (d != nil) != (brand == "sparse") {
				t.Errorf("%s: overlay %v", brand, d)
			}
		})
	}
}

// pkgcreatezone: SMF starts from the seed of zones, and finds its manifests
// where the overlay is.
func TestTheRootOfASparseZone(t *testing.T) {
	s := newZoneSled(t, boot.Options{}).base("sparse")
	const root = "/zones/base/root"
	s.change(func(tx *world.Tx) {
		for _, name := range []string{"/lib/svc/manifest/milestone/single-user.xml", "/lib/svc/seed/nonglobal.db", "/etc/svc/repository.db",
			"/var/svc/profile", "/var/svc/manifest/site", "/etc/passwd"} {
			if name != "/etc/passwd" && !isThere(tx, root+name) {
				t.Errorf("no %s", name)
			}
		}
		if isThere(tx, root+"/lib/svc/seed/global.db") || isThere(tx, root+"/usr/bin/svcs") || isThere(tx, root+"/sbin/init") {
			t.Error("it has files of the global zone, or of the loops")
		}
	})
	if s.file(root+"/etc/svc/repository.db") != s.file("/lib/svc/seed/nonglobal.db") {
		t.Error("the repository is not the seed")
	}
	whole := newZoneSled(t, boot.Options{}).base("ipkg")
	whole.change(func(tx *world.Tx) {
		if !isThere(tx, root+"/usr/bin/svcs") || !isThere(tx, root+"/sbin/init") || isThere(tx, root+"/usr/lib/brand/sparse") {
			t.Error("an ipkg zone has a tree of its own, without the brands")
		}
	})
}

// sparse/clone takes the snapshot recursively and clones the overlays; the
// uninstall hook destroys the snapshot that the root came from, but not those
// of the overlays.
func TestClonesLeaveSnapshotsOnTheOverlays(t *testing.T) {
	s := newZoneSled(t, boot.Options{}).base("sparse")
	s.configure("z1", "sparse", "")
	s.replay("$ zoneadm -z z1 clone base\n")
	s.hasDatasets("rpool/zones", `
/base
/base/ROOT
/base/ROOT/zbe
/base/ROOT/zbe@z1_snap
/base/ROOT/zbe/fm
/base/ROOT/zbe/fm@z1_snap
/base/ROOT/zbe/svc
/base/ROOT/zbe/svc@z1_snap
/z1
/z1/ROOT
/z1/ROOT/zbe < /base/ROOT/zbe@z1_snap
/z1/ROOT/zbe/fm < /base/ROOT/zbe/fm@z1_snap
/z1/ROOT/zbe/svc < /base/ROOT/zbe/svc@z1_snap
`)
	if s.file("/zones/z1/root/etc/svc/repository.db") == "" || s.file("/zones/z1/root/lib/svc/seed/nonglobal.db") == "" {
		t.Error("the clone is not mounted, or it is empty")
	}
	s.replay("$ zoneadm -z z1 uninstall -F\n")
	s.hasDatasets("rpool/zones", `
/base
/base/ROOT
/base/ROOT/zbe
/base/ROOT/zbe/fm
/base/ROOT/zbe/fm@z1_snap
/base/ROOT/zbe/svc
/base/ROOT/zbe/svc@z1_snap
`)
	s.change(func(tx *world.Tx) {
		if isThere(tx, "/zones/z1") {
			t.Error("the zonepath is left")
		}
	})
}

// ipkg/clone takes a snapshot of the root only, and nothing is left of it.
func TestClonesWithoutOverlays(t *testing.T) {
	s := newZoneSled(t, boot.Options{}).base("ipkg")
	s.configure("z1", "ipkg", "")
	s.must("zoneadm -z z1 clone base")
	s.hasDatasets("rpool/zones", `
/base
/base/ROOT
/base/ROOT/zbe
/base/ROOT/zbe@z1_snap
/z1
/z1/ROOT
/z1/ROOT/zbe < /base/ROOT/zbe@z1_snap
`)
	s.must("zoneadm -z z1 uninstall -F")
	s.hasDatasets("rpool/zones", "\n/base\n/base/ROOT\n/base/ROOT/zbe\n")
}

// snapshot_zone tries ZONE_snap, ZONE_snap1 to ZONE_snap99, and then gives up.
func TestTheHundredAndFirstCloneFails(t *testing.T) {
	s := newZoneSled(t, boot.Options{}).base("sparse")
	s.configure("z1", "sparse", "")
	s.change(func(tx *world.Tx) {
		for n := range 99 {
			name := "z1_snap"
			if n > 0 {
				name += fmt.Sprint(n)
			}
			if err := zfs.SnapshotAll(tx, []string{"rpool/zones/base/ROOT/zbe/svc@" + name}, nil); err != nil {
				t.Fatal(err)
			}
		}
	})
	// The hook prints each failed attempt on standard error.
	r := s.run("zoneadm -z z1 clone base", "")
	refusals, left := strings.Count(r.Stderr, "cannot create snapshot"), s.datasets("rpool/zones/base")
	if r.Exit != 0 || refusals != 99 || strings.Count(left, "@z1_snap99") != 3 {
		t.Errorf("the 100th: exit %d, %d refusals\n%s", r.Exit, refusals, left)
	}
	s.must("zoneadm -z z1 uninstall -F")
	r = s.run("zoneadm -z z1 clone base", "")
	if r.Exit != 1 || r.Stdout != "ERROR: Unable to create the zone's ZFS dataset.\n" || s.zone("z1").State != world.ZoneIncomplete {
		t.Errorf("the 101st: exit %d, %q, zone %s", r.Exit, r.Stdout, s.zone("z1").State)
	}
	// It cannot be uninstalled either: sparse/uninstall wants one root.
	s.replay(`$ zoneadm -z z1 uninstall -F
Error: Found $fs_all_c top-level filesystems.
␠␠
= 1
`)
	s.hasDatasets("rpool/zones/z1", "\n/ROOT\n")
}

// system-unconfigure takes the traces of the source out of a clone, but for
// its services.
func TestClonesAreUnconfigured(t *testing.T) {
	s := newZoneSled(t, boot.Options{}).base("sparse")
	files := []string{"etc/resolv.conf", "etc/nodename", "etc/inet/static_routes", "etc/ipadm/ipadm.conf",
		"etc/svc/repository.db", "var/svc/profile/site.xml"}
	s.change(func(tx *world.Tx) {
		for _, name := range files {
			if err := cli.WriteFile(tx.Files, "/zones/base/root/"+name, []byte("of the source"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	})
	s.configure("z1", "sparse", "")
	s.must("zoneadm -z z1 clone base")
	for i, name := range files {
		if got := s.file("/zones/z1/root/" + name); (got == "of the source") != (i > 3) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// get_active_ds: a zone belongs to the boot environment that made it.
func TestZonesOfAnotherBootEnvironment(t *testing.T) {
	s := newZoneSled(t, boot.Options{}).base("ipkg")
	s.change(func(tx *world.Tx) {
		tx.TouchDataset("rpool/zones/base/ROOT/zbe")
		zfs.FindDataset(tx, "rpool/zones/base/ROOT/zbe").Local["org.opensolaris.libbe:parentbe"] = "another"
	})
	s.configure("z1", "ipkg", "")
	s.replay(`$ zoneadm -z base boot
! zone 'base': ERROR: no active dataset.
! zone 'base': ERROR: no active dataset.
! zoneadm: zone 'base': call to zoneadmd failed
= 1
$ zoneadm -z z1 clone base
ERROR: no active dataset.
= 1
`)
	// Its root is not this environment's to destroy.
	s.must("zoneadm -z base uninstall -F")
	s.hasDatasets("rpool/zones/base", "\n/ROOT\n/ROOT/zbe\n")
}

// The zonepath has to be a file system.
func TestZonepathsThatAreNoFileSystem(t *testing.T) {
	s := newZoneSled(t, boot.Options{})
	s.configure("z1", "sparse", "set zonepath=/plain/z1")
	s.replay(`$ zoneadm -z z1 install
ERROR: the zonepath must be a ZFS dataset.
The parent directory of the zonepath must be a ZFS dataset so that the
zonepath ZFS dataset can be created properly.
= 1
`)
}

// illumos/createzone: brands that want an image say so.
func TestBrandsWithoutZones(t *testing.T) {
	s := newZoneSled(t, boot.Options{})
	s.must("zfs create -o mountpoint=/zones rpool/zones")
	for _, brand := range []string{"illumos", "lx", "bhyve"} {
		s.configure(brand, brand, "")
		s.replay(strings.ReplaceAll(`$ zoneadm -z BRAND install
! not simulated: zoneadm: zones of brand BRAND
= 70
`, "BRAND", brand))
	}
}
