package layout

import (
	"slices"
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

// IsSpare reports whether a zone's configuration is that of a spare, which no VM has taken.
func IsSpare(c zone.Config) bool { return AttrOf(c, naming.AttrSpare) != "" }

// SpareFingerprint is Fingerprint of a spare's zone, in which no profile lies yet.
func SpareFingerprint(c zone.Config, datasets []zfs.Dataset) string {
	return digest(c.Sum, nil, datasets)
}

// SpareDatasets are the datasets and snapshots of a spare's zone.
func SpareDatasets(s record.Spare, inv *inventory.Inventory) []zfs.Dataset {
	return DatasetsOf(s.Incarnation(), inv)
}

// UnmountedRoot is the file system of the root of a zone with that dataset where that is not mounted, as after a boot
// of the sled in which its pool was still locked when svc:/system/zones mounted the roots of
// zones; empty: it is mounted, or there is none.
func UnmountedRoot(dataset string, inv *inventory.Inventory) string {
	for _, d := range inv.Below(dataset + "/ROOT") {
		direct := strings.Count(d.Name, "/") == strings.Count(dataset, "/")+2
		if direct && d.Type == zfs.TypeFilesystem && d.Mountpoint == "legacy" && !d.Mounted {
			return d.Name
		}
	}
	return ""
}

// Taken reports whether the zone of a recorded spare is an instance's by now: the ledger is older
// than the sled. Of one that is given up, a part of what an instance had may be left.
func Taken(s record.Spare, inv *inventory.Inventory) bool {
	c, _ := inv.Config(s.Zone)
	return s.Unfit == "" && AttrOf(c, naming.AttrInstance) != ""
}

// BootedAhead reports whether a spare's zone runs since sledctl booted it, in this boot of the sled.
func BootedAhead(s record.Spare, z zone.Zone, boot string) bool {
	return z.State == zone.Running && z.ID != nil && s.BootedIn != "" && s.BootedIn == boot && (s.ZoneID == 0 || s.ZoneID == *z.ID)
}

// TakesBooted reports whether an instance can have a zone that runs already: a file system, a
// device and a cap are part of a zone's configuration as it boots, and a port of OPTE is not
// moved.
//
// Guess no-live-reconfiguration: illumos gives a running zone no file system and no device; a cap
// could be set by prctl(1).
// Check: `zoneadm -z ZONE` has no subcommand that applies a configuration
func TakesBooted(b Blueprint, r record.Record, s record.Spare) bool {
	wanted, has := ZoneConfig(b, r), SpareConfig(b, s)
	wanted.Attrs, wanted.Nets, wanted.Zonepath = has.Attrs, has.Nets, has.Zonepath
	return len(zone.Compare(wanted, has)) == 0 && !slices.ContainsFunc(r.Incarnation.Guests, func(v record.VNIC) bool { return v.Port })
}

// SpareDoubt is why a spare is not proven to be as it was cloned, or to run since it was booted
// in this boot of the sled; empty: it is proven. Whether its base is still valid is for the caller to know.
func SpareDoubt(b Blueprint, s record.Spare, inv *inventory.Inventory, boot string) string {
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
	case BootedAhead(s, z, boot) && s.ZoneID == 0:
		return "its boot did not end"
	case z.State != zone.Installed && !BootedAhead(s, z, boot):
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
