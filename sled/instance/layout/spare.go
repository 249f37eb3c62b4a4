package layout

import (
	"strings"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/propolis/packaging"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/zfs"
	"github.com/sledctl/sledctl/zone"
)

// SpareConfig is the zone of a spare: what ZoneConfig has that does not depend on the
// instance.
func SpareConfig(b Blueprint, s record.Spare) zone.Config {
	c := ZoneConfig(b, record.Record{Incarnation: &record.Incarnation{Brand: s.Brand, Zonepath: s.Zonepath}})
	c.Attrs = []zone.Attr{{Name: naming.AttrSpare, Type: "string", Value: s.Base}}
	c.Nets = nil
	return c
}

// SpareFingerprint is Fingerprint of a spare's zone, in which no profile lies yet.
func SpareFingerprint(c zone.Config, datasets []zfs.Dataset) string {
	return digest(c.Sum, nil, datasets)
}

// SpareDatasets are the datasets and snapshots of a spare's zone.
func SpareDatasets(s record.Spare, inv *inventory.Inventory) []zfs.Dataset {
	return DatasetsOf(s.Incarnation(), inv)
}

// UnmountedRoot is the file system of a spare's root where that is not mounted, as after a boot
// of the sled in which its pool was still locked when svc:/system/zones mounted the roots of
// zones; empty: it is mounted, or there is none.
func UnmountedRoot(s record.Spare, inv *inventory.Inventory) string {
	for _, d := range inv.Below(s.Dataset + "/ROOT") {
		direct := strings.Count(d.Name, "/") == strings.Count(s.Dataset, "/")+2
		if direct && d.Type == zfs.TypeFilesystem && d.Mountpoint == "legacy" && !d.Mounted {
			return d.Name
		}
	}
	return ""
}

// SpareDoubt is why a spare is not proven to be as it was cloned; empty: it is proven.
// Whether its base is still valid is for the caller to know.
func SpareDoubt(b Blueprint, s record.Spare, inv *inventory.Inventory) string {
	z, there := inv.Zone(s.Zone)
	c, _ := inv.Config(s.Zone)
	home, _ := inv.Dataset(s.Dataset)
	mark := home.User[naming.PropertyInstance]
	switch {
	case s.Unfit != "":
		return s.Unfit
	case s.Clean == "":
		return "it was never finished"
	case !there:
		return "its zone is missing"
	case z.State != zone.Installed:
		return "its zone is " + string(z.State)
	case s.Brand == packaging.Brand || len(zone.Compare(SpareConfig(b, s), c)) > 0:
		return "its zone's configuration differs"
	case mark.Value != naming.MarkSpare || mark.Source != zfs.Local || home.GUID != s.GUID:
		return "its dataset is missing, or has lost its mark"
	case SpareFingerprint(c, SpareDatasets(s, inv)) != s.Clean:
		return "its configuration, its datasets or their snapshots are not those of then"
	}
	return ""
}
