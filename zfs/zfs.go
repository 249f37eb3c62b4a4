// Package zfs drives the datasets and pools of an illumos host through zfs(8)
// and zpool(8): it lists file systems, volumes and snapshots of all pools in
// one look, and creates, marks, mounts, snapshots, unlocks and destroys them one
// at a time; it lists, makes, imports and exports pools.
//
// A pool is never destroyed. Of datasets nothing is destroyed by its name alone: a step that destroys compares the
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
	Origin     string // the snapshot that it was cloned from; empty for none

	Used, Available    uint64
	Quota, Reservation uint64 // 0: none
	Compression        string // empty where there is none
	Canmount           string // "on", "off", "noauto"; empty where there is none

	// These are there if they were asked for; see Extended.
	Refquota uint64 // 0: none
	Volsize  uint64 // of a volume
	// Of a volume: the size of its blocks, and what is kept back for it.
	Volblocksize, Refreservation uint64
	Zoned                        bool
	// How the dataset is encrypted: all empty where the host's zfs cannot.
	Encryption     string // "off", "aes-256-gcm" …
	Keyformat      string // "none", "raw" …
	Keystatus      string // KeyAvailable or KeyUnavailable; empty where there is no key
	EncryptionRoot string // the dataset whose key it is; empty where there is none

	// User holds the user properties that were asked for and have a value.
	User map[string]Value
}

// The states of a key.
const (
	KeyAvailable   = "available"
	KeyUnavailable = "unavailable"
)

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
