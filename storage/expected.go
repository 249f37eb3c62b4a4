// Package storage is the noun for where things lie: the sled's pools and the
// datasets that each must have.
package storage

import (
	"strings"

	"github.com/sledctl/sledctl/sled"
	"github.com/sledctl/sledctl/zfs"
)

// Expected is a dataset that a pool must have.
type Expected struct {
	Dataset    string
	Mountpoint string
	Properties []zfs.Property // beside the mountpoint; only these are kept as they are here
	Why        string
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
func internal() []kind {
	off := props("compression", "off")
	return []kind{
		{"install", off, "installed software"},
		{"crash", off, "core dumps, first landing"},
		{"backing", off, "overlays of the ramdisk root"},
		{"cluster", off, "cluster state"},
		{"config", off, "the ledger"},
		{"debug", props("compression", "off", "quota", "107374182400"), "zone bundles"},
		{"update", props("compression", "off", "quota", "42949672960"), "artifacts"},
	}
}

// external is what a U.2 holds (omicron, sled-storage/src/dataset.rs,
// U2_EXPECTED_DATASETS). crypt is not encrypted yet.
func external() []kind {
	return []kind{
		{"crypt", nil, "parent of all that is to be encrypted"},
		{"crypt/zone", props("compression", "off"), "zone roots"},
		{"crypt/debug", props("compression", "gzip-9", "quota", "107374182400"), "logs and dumps"},
	}
}

// Of lists what a pool must have, parents first; nothing for a pool that is
// not the sled's.
func Of(pool string) []Expected {
	var kinds []kind
	switch kind, _ := sled.ParsePool(pool); kind {
	case sled.ExternalPool:
		kinds = external()
	case sled.InternalPool:
		kinds = internal()
	}
	root := sled.PoolRoot(pool)
	var list []Expected
	for _, k := range kinds {
		list = append(list, Expected{
			Dataset: root.Join(k.name).Dataset, Mountpoint: root.Join(k.name).Mountpoint, Properties: k.properties, Why: k.why,
		})
	}
	return list
}

// Fallback is what a sled without such disks has instead: one dataset for zone
// roots on its root pool.
func Fallback() Expected {
	parent, _ := sled.ZoneParent("rpool")
	return Expected{Dataset: parent.Dataset, Mountpoint: parent.Mountpoint, Why: "zone roots"}
}

// AllOf lists what the sled must have on its pools.
func AllOf(pools []zfs.Pool) []Expected {
	var list []Expected
	zones := false
	for _, p := range pools {
		for _, e := range Of(p.Name) {
			list = append(list, e)
			zones = zones || strings.HasSuffix(e.Dataset, "/crypt/zone")
		}
	}
	if !zones {
		list = append(list, Fallback())
	}
	return list
}
