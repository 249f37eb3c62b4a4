// Package storage prepares where things lie: the sled's disks, the pool
// on each, and the datasets that each pool must have.
//
// What is there is compared with what must be, and each difference is told with
// its reason. Of the differences, some are repaired: a pool is imported, a dataset
// made, a property set. The others are an operator's: nothing that holds data is
// ever overwritten, and a disk is formatted only if it is proven blank and was
// named.
package storage

import (
	"path"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/zfs"
)

// Expected is a dataset that a pool must have.
type Expected struct {
	Pool       string
	Dataset    string // with the pool
	Mountpoint string
	Properties []zfs.Property // next to the mountpoint; only these are kept as they are here
	// Root says that it is encrypted with a key of its own: all below it is, too.
	Root bool
	Why  string
}

// kind is one row of the tables below.
type kind struct {
	name       string
	properties []zfs.Property
	why        string
}

func props(pairs ...string) []zfs.Property {
	var list []zfs.Property
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, zfs.Property{Name: pairs[i], Value: pairs[i+1]})
	}
	return list
}

// internal is what an M.2 holds (omicron, sled-storage/src/dataset.rs,
// M2_EXPECTED_DATASETS).
//
// Guess config-dataset-of-its-own: `config` of each M.2 is mounted at `/pool/int/UUID/config`, and
// its device number differs from that of `/pool/int/UUID` (omicron's layout of datasets).
// Check: `df /pool/int/*/config`; `stat -c %d` on both
func internal() []kind {
	off := props("compression", "off")
	return []kind{
		{"install", off, "installed software"},
		{"crash", off, "core dumps, first landing"},
		{"backing", off, "overlays of the RAM-disk root"},
		{"cluster", off, "cluster state"},
		{"config", off, "the ledger"},
		{"debug", props("compression", "off", "quota", "107374182400"), "zone bundles"},
		{"update", props("compression", "off", "quota", "42949672960"), "artifacts"},
	}
}

// external is what a U.2 holds (omicron, sled-storage/src/dataset.rs,
// U2_EXPECTED_DATASETS).
func external() []kind {
	return []kind{
		{encrypted, nil, "parent of all that is encrypted"},
		{"crypt/zone", props("compression", "off"), "zone roots"},
		{"crypt/debug", props("compression", "gzip-9", "quota", "107374182400"), "logs and dumps"},
	}
}

// encrypted is the dataset of a U.2 below which everything is.
const encrypted = "crypt"

// Of lists what a pool must have, parents first; nothing for a pool that is
// not the sled's.
func Of(pool string, custom []CustomDataset) []Expected {
	var kinds []kind
	which, _ := naming.ParsePool(pool)
	switch which {
	case naming.ExternalPool:
		kinds = external()
	case naming.InternalPool:
		kinds = internal()
	}
	root := naming.PoolRoot(pool)
	var list []Expected
	for _, k := range kinds {
		list = append(list, Expected{
			Pool: pool, Dataset: root.Join(k.name).Dataset, Mountpoint: root.Join(k.name).Mountpoint, Properties: k.properties, Why: k.why,
			Root: which == naming.ExternalPool && k.name == encrypted,
		})
	}
	for _, o := range custom {
		if o.On != which || o.Pool != "" && o.Pool != pool {
			continue
		}
		e := Expected{Pool: pool, Dataset: root.Join(o.Name).Dataset, Mountpoint: root.Join(o.Name).Mountpoint, Properties: o.Properties, Why: "configured"}
		if o.Mountpoint != "" {
			e.Mountpoint = o.Mountpoint
		}
		list = slices.DeleteFunc(list, func(old Expected) bool { return old.Dataset == e.Dataset })
		list = append(list, e)
	}
	slices.SortStableFunc(list, func(a, b Expected) int { return strings.Count(a.Dataset, "/") - strings.Count(b.Dataset, "/") })
	return list
}

// Fallback is what a sled without such disks has instead: one dataset for zone
// roots on its root pool.
func Fallback() Expected {
	parent, _ := naming.ZoneParent("rpool")
	return Expected{Pool: "rpool", Dataset: parent.Dataset, Mountpoint: parent.Mountpoint, Why: "zone roots"}
}

// inside says whether a dataset lies in the part of its pool that is encrypted.
func (e Expected) inside() bool {
	root := path.Join(e.Pool, encrypted)
	which, _ := naming.ParsePool(e.Pool)
	return which == naming.ExternalPool && (e.Dataset == root || strings.HasPrefix(e.Dataset, root+"/"))
}
