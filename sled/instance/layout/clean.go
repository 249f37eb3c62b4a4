package layout

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/illumos/smf"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/zfs"
	"github.com/sledctl/sledctl/zone"
)

// CleanSnapshot is what the snapshots are called that keep how the datasets of a zone
// were before it first booted.
const CleanSnapshot = "sledctl-clean"

// ReadySnapshot is what they are called where the zone was a spare: those by the name of
// CleanSnapshot keep how it was as that.
const ReadySnapshot = "sledctl-ready"

// SnapshotOf is what the snapshots of before the first boot of an incarnation's zone are called.
func SnapshotOf(incarnation record.Incarnation) string {
	if incarnation.Spare && !incarnation.BootedAhead {
		return ReadySnapshot
	}
	return CleanSnapshot
}

// KeepsClean reports whether a record's zone is one that may be booted again after the
// sled was: it was cloned, and nobody but the operator says when its VM runs. The
// control plane takes a VM from an earlier boot for lost.
func KeepsClean(b Blueprint, r record.Record) bool {
	return len(PackagingOf(b, *r.Incarnation).Images) == 0 && r.VMM == nil && !r.Incarnation.Foreign
}

// Fingerprint is a digest of what the zone of a record's incarnation is: of its configuration,
// of the profile in it, and of the name, GUID and origin of each dataset and snapshot
// that lies there. With the snapshots of before its first boot among them it says all
// that is to be proven of such a zone, but for the properties of its datasets: no
// command makes a snapshot with the GUID of another one that has other contents.
//
// Guess only-zonecfg-writes-the-file: nothing but zonecfg writes /etc/zones/NAME.xml of a zone
// without global-nic: a zone whose file another program has touched is cloned again, no more.
// Check: `digest -a sha256 /etc/zones/NAME.xml` before and after `zoneadm boot`, `halt` and a
// reboot
func Fingerprint(b Blueprint, r record.Record, c zone.Config, datasets []zfs.Dataset) string {
	return digest(c.Sum, smf.RenderProfile(ProfileOf(b, r)), datasets)
}

// Guess guid-means-contents: no operator's command makes a snapshot with the GUID of another and
// other contents: `zfs receive` takes the GUID from the stream together with what the snapshot
// held.
// Check: nothing: no command could show that there is none
func digest(config string, profile []byte, datasets []zfs.Dataset) string {
	sorted := slices.SortedFunc(slices.Values(datasets), func(x, y zfs.Dataset) int { return strings.Compare(x.Name, y.Name) })
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%s\n", config, profile)
	for _, d := range sorted {
		fmt.Fprintf(sum, "%s %s %s %s\n", d.Name, d.Type, d.GUID, d.Origin)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// DatasetsOf are the datasets and snapshots of an incarnation's zone.
func DatasetsOf(incarnation record.Incarnation, inv *inventory.Inventory) []zfs.Dataset {
	all := inv.Below(incarnation.Dataset)
	if home, there := inv.Dataset(incarnation.Dataset); there {
		all = append(all, home)
	}
	return all
}

// CleanSnapshots are those of an incarnation's zone that keep how it was before its first boot.
func CleanSnapshots(incarnation record.Incarnation, inv *inventory.Inventory) []zfs.Dataset {
	return Snapshots(incarnation, inv, SnapshotOf(incarnation))
}

// Snapshots are those of a name that an incarnation's zone has.
func Snapshots(incarnation record.Incarnation, inv *inventory.Inventory, called string) []zfs.Dataset {
	return slices.DeleteFunc(DatasetsOf(incarnation, inv), func(d zfs.Dataset) bool {
		_, snapshot, _ := strings.Cut(d.Name, "@")
		return snapshot != called
	})
}

// Doubt is why a zone that does not run is not proven to be as it was cloned; empty: it
// is proven. Whether its base is still valid is for the caller to know.
func Doubt(b Blueprint, r record.Record, inv *inventory.Inventory) string {
	z, _ := inv.Zone(r.Incarnation.Zone)
	c, _ := inv.Config(r.Incarnation.Zone)
	home, _ := inv.Dataset(r.Incarnation.Dataset)
	mark := home.User[naming.PropertyInstance]
	switch {
	case r.Incarnation.Clean == "" || !KeepsClean(b, r):
		return "how it was cloned is not recorded"
	case z.State != zone.Installed:
		return "its zone is " + string(z.State)
	case len(zone.Compare(ZoneConfig(b, r), c)) > 0:
		return "its zone's configuration differs"
	case mark.Value != r.ID || mark.Source != zfs.Local:
		return "its dataset is missing, or has lost its mark"
	case Fingerprint(b, r, c, DatasetsOf(*r.Incarnation, inv)) != r.Incarnation.Clean:
		return "its configuration, its datasets or their snapshots are not those of then"
	}
	return ""
}
