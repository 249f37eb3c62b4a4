// Package zfs drives the datasets of an illumos host through zfs(8): it lists
// file systems, volumes and snapshots of all pools in one look, and creates,
// marks, mounts, snapshots and destroys them one at a time.
//
// Nothing is destroyed by its name alone: a step that destroys compares the
// dataset's GUID with the one that was decided on, never goes into children,
// and unmounts first, so that what is in use is left as it is. A question that
// zfs did not answer is an error and never an absence.
package zfs

// Dataset is a file system, volume or snapshot. Sizes are bytes.
type Dataset struct {
	Name string // POOL/PATH, or POOL/PATH@SNAPSHOT
	Type string // TypeFilesystem, TypeVolume or TypeSnapshot

	// GUID, a decimal number, stays with a dataset over renames and is never
	// given to another one.
	GUID string
	// Mountpoint is a path, "legacy" or "none"; empty where there can be none.
	Mountpoint string
	Mounted    bool
	Origin     string // the snapshot of which it is a clone; empty for none

	Used, Available    uint64
	Quota, Reservation uint64 // 0: none
	Compression        string // empty where there is none
	Canmount           string // "on", "off", "noauto"; empty where there is none

	// User holds the user properties that were asked for and have a value.
	User map[string]Value
}

// The types of datasets.
const (
	TypeFilesystem = "filesystem"
	TypeVolume     = "volume"
	TypeSnapshot   = "snapshot"
)

// Value is the value of a property and where it comes from: "local",
// "default", "received", "temporary" or "inherited from DATASET".
type Value struct{ Value, Source string }

// Local is the source of a value that was set on the dataset itself.
const Local = "local"

// Property is a value to set.
type Property struct{ Name, Value string }

// Pool is a line of `zpool list`. Sizes are bytes, and 0 where the pool's
// health does not let zpool know.
type Pool struct {
	Name string
	// Health is "ONLINE", "DEGRADED", "FAULTED", "OFFLINE", "REMOVED",
	// "UNAVAIL" or "SUSPENDED" (zpool(8)).
	Health                string
	Size, Allocated, Free uint64
}
