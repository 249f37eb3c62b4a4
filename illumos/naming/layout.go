package naming

import (
	"path"
	"strings"

	"github.com/google/uuid"
)

// ConfigFile is the file of the sled's configuration.
const ConfigFile = "/etc/sledctl/config.toml"

// SmartOSState is where sledctl keeps what it remembers on SmartOS, whose root is made again
// at each boot: /opt is on the pool zones.
const SmartOSState = "/opt/custom/sledctl"

// StateDirectories are those that packages deliver for what sledctl remembers, by
// distribution.
func StateDirectories() []string { return []string{"/var/opt/ooce/sledctl", SmartOSState} }

// PoolKind tells pools apart by their names.
type PoolKind string

// The kinds (ZpoolKind of oxidecomputer/omicron): U.2 disks hold what sleds can
// lose, M.2 disks what they must not.
const (
	ExternalPool PoolKind = "external" // oxp_UUID: on a U.2 disk
	InternalPool PoolKind = "internal" // oxi_UUID: on an M.2 disk
	OtherPool    PoolKind = "other"    // any other: rpool
)

// ParsePool reads a pool's name. The UUID is that of the two first kinds, which
// is written in lower case.
func ParsePool(name string) (PoolKind, uuid.UUID) {
	for _, c := range []struct {
		prefix string
		kind   PoolKind
	}{{"oxp_", ExternalPool}, {"oxi_", InternalPool}} {
		if rest, found := strings.CutPrefix(name, c.prefix); found {
			if id, ok := parseUUID(rest); ok {
				return c.kind, id
			}
		}
	}
	return OtherPool, uuid.Nil
}

// Location is a dataset and where it is mounted.
type Location struct {
	Dataset    string
	Mountpoint string
}

// Join is the location of a child with an inherited mountpoint.
func (l Location) Join(names ...string) Location {
	return Location{
		Dataset:    path.Join(append([]string{l.Dataset}, names...)...),
		Mountpoint: path.Join(append([]string{l.Mountpoint}, names...)...),
	}
}

const (
	externalDir = "/pool/ext"
	internalDir = "/pool/int"
	rootPool    = "rpool"
)

// PoolRoot is where a pool's datasets are: oxp_UUID below /pool/ext/UUID,
// oxi_UUID below /pool/int/UUID (oxidecomputer/omicron, ZpoolName), others
// below /POOL, which is the default of zpool(8).
func PoolRoot(pool string) Location {
	switch kind, id := ParsePool(pool); kind {
	case ExternalPool:
		return Location{Dataset: pool, Mountpoint: path.Join(externalDir, id.String())}
	case InternalPool:
		return Location{Dataset: pool, Mountpoint: path.Join(internalDir, id.String())}
	}
	return Location{Dataset: pool, Mountpoint: "/" + pool}
}

// ZoneParent is the dataset in which a pool's zones lie: crypt/zone of a U.2's
// pool, rpool/zone at /zone (both as the sled agent has them), POOL/zone of any
// other. A pool on an M.2 holds no zones: ok is false.
//
// Guess zones-of-other-pools: zones on a pool that is neither `oxp_UUID` nor rpool lie in POOL/zone
// at /POOL/zone: no other tool has a layout for them.
// Check: nothing: sledctl chooses it
func ZoneParent(pool string) (l Location, ok bool) {
	kind, _ := ParsePool(pool)
	switch {
	case kind == ExternalPool:
		return PoolRoot(pool).Join("crypt", "zone"), true
	case kind == InternalPool:
		return Location{}, false
	case pool == rootPool:
		return Location{Dataset: "rpool/zone", Mountpoint: "/zone"}, true
	}
	return PoolRoot(pool).Join("zone"), true
}

// Zone is the dataset of a zone on a pool, and its zonepath.
func Zone(pool, zone string) (l Location, ok bool) {
	parent, ok := ZoneParent(pool)
	if !ok {
		return Location{}, false
	}
	return parent.Join(zone), true
}

// volumePrefix opens the names of the datasets of volumes: they lie next to what others have
// on a pool.
const volumePrefix = "volume_"

// Volume is the dataset of a volume on a pool: in crypt of a U.2's pool, so that it is
// encrypted, and directly in any other. A pool on an M.2 holds no volumes: ok is false.
func Volume(pool, volume string) (dataset string, ok bool) {
	parent, ok := VolumeParent(pool)
	return parent + "/" + volumePrefix + volume, ok
}

// SnapshotPrefix begins the names of the ZFS snapshots of an instance's disks, behind the @.
const SnapshotPrefix = "snapshot_"

// Snapshot is the ZFS snapshot of a volume that belongs to a snapshot of an instance.
func Snapshot(dataset, name string) string { return dataset + "@" + SnapshotPrefix + name }

// VolumeParent is the dataset in which a pool's volumes lie.
func VolumeParent(pool string) (dataset string, ok bool) {
	switch kind, _ := ParsePool(pool); kind {
	case ExternalPool:
		return pool + "/crypt", true
	case InternalPool:
		return "", false
	}
	return pool, true
}

// ParseVolume is the inverse of Volume.
func ParseVolume(dataset string) (pool, volume string, ok bool) {
	pool, _, _ = strings.Cut(dataset, "/")
	volume, ok = strings.CutPrefix(path.Base(dataset), volumePrefix)
	if !ok || !ValidVolume(volume) {
		return "", "", false
	}
	at, ok := Volume(pool, volume)
	return pool, volume, ok && at == dataset
}

// VolumeNameMax is the longest name of a volume: of its dataset, the pool's name takes the most.
const VolumeNameMax = 63

// ValidVolume reports whether a volume may have this name: 1 to 63 letters, digits, '-', '_' and
// '.', the first a letter or digit. A UUID is none: it is an id.
func ValidVolume(name string) bool {
	if name == "" || len(name) > VolumeNameMax || !letter(name[0]) && !digit(name[0]) {
		return false
	}
	for i := range len(name) {
		if b := name[i]; !letter(b) && !digit(b) && !strings.ContainsRune("-_.", rune(b)) {
			return false
		}
	}
	_, id := parseUUID(strings.ToLower(name))
	return !id
}

// imagePrefix opens the names of the volumes that hold images, and is followed by the image's id.
const imagePrefix = "sledctl_image_"

// Image is the volume of an image on a pool: next to what its zones lie in, so encrypted where
// they are. A pool on an M.2 holds none: ok is false.
func Image(pool string, id uuid.UUID) (dataset string, ok bool) {
	parent, ok := ZoneParent(pool)
	return path.Join(path.Dir(parent.Dataset), imagePrefix+id.String()), ok
}

// VolumeDevices is where the raw devices of volumes are, by the names of their datasets
// (usr/src/uts/common/fs/zfs/zvol.c).
const VolumeDevices = "/dev/zvol/rdsk/"

// VolumeDevice is the raw device of a volume.
func VolumeDevice(dataset string) string { return VolumeDevices + dataset }

// Debug is the dataset of a pool for what is kept for inspection after a
// failure: crypt/debug of a U.2's pool, debug of an M.2's (U2_DEBUG_DATASET and
// M2_DEBUG_DATASET of oxidecomputer/omicron). Other pools have none.
func Debug(pool string) (l Location, ok bool) {
	switch kind, _ := ParsePool(pool); kind {
	case ExternalPool:
		return PoolRoot(pool).Join("crypt", "debug"), true
	case InternalPool:
		return PoolRoot(pool).Join("debug"), true
	}
	return Location{}, false
}

// LocalStorage is the dataset of a U.2's pool in which volumes of VMs lie, each in a dataset that
// has its id as its name: crypt/local_storage for those that are encrypted, and
// local_storage_unencrypted for the others (LOCAL_STORAGE_DATASET and
// LOCAL_STORAGE_UNENCRYPTED_DATASET of oxidecomputer/omicron).
func LocalStorage(pool string, encrypted bool) Location {
	if encrypted {
		return PoolRoot(pool).Join("crypt", "local_storage")
	}
	return PoolRoot(pool).Join("local_storage_unencrypted")
}

// PoolOf is the pool in which a dataset lies.
func PoolOf(dataset string) string {
	pool, _, _ := strings.Cut(dataset, "/")
	return pool
}

// Secrets is the dataset of a pool on which secrets may lie, as it is encrypted:
// crypt of a U.2's pool. Other pools have none.
func Secrets(pool string) (l Location, ok bool) {
	if kind, _ := ParsePool(pool); kind != ExternalPool {
		return Location{}, false
	}
	return PoolRoot(pool).Join("crypt"), true
}

// PoolAt is the pool on which a path lies, if it lies below the root of one on
// a U.2 or M.2; else empty.
func PoolAt(name string) string {
	for _, c := range []struct{ dir, prefix string }{{externalDir, "oxp_"}, {internalDir, "oxi_"}} {
		if rest, found := strings.CutPrefix(name, c.dir+"/"); found {
			id, _, _ := strings.Cut(rest, "/")
			if _, ok := parseUUID(id); ok {
				return c.prefix + id
			}
		}
	}
	return ""
}
