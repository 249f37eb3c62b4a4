package world

// Disk is a slot of the sled with the disk in it, blank or not.
type Disk struct {
	Name   string `json:"name"` // c1t0d0
	Kind   string `json:"kind"` // u2, m2
	Slot   int    `json:"slot"`
	Vendor string `json:"vendor"`
	Model  string `json:"model"`
	Serial string `json:"serial"`
	Size   uint64 `json:"size"` // bytes
	Gone   bool   `json:"gone,omitempty"`
	Pool   string `json:"pool,omitempty"` // whose label it carries

	// Layout is its partition table: "" for none, LayoutM2, LayoutWhole.
	Layout string `json:"layout,omitempty"`
	// Failing is set while all its input and output ends with EIO.
	Failing bool `json:"failing,omitempty"`
	// Scraps are its slices on which the labels of a destroyed pool are left.
	Scraps []string `json:"scraps,omitempty"`
	// Image is what was on it at an earlier time.
	Image *Image `json:"image,omitempty"`
}

// Image is a copy of what is on a disk. The contents of its file systems lie
// aside, see Dataset.Tree.
type Image struct {
	Layout   string     `json:"layout"`
	Scraps   []string   `json:"scraps,omitempty"`
	Serial   string     `json:"serial"` // of the disk that it is of
	Pool     *Pool      `json:"pool,omitempty"`
	Datasets []*Dataset `json:"datasets,omitempty"`
}

// Pool is a pool, imported or not.
type Pool struct {
	Name       string            `json:"name"`
	GUID       uint64            `json:"guid"`
	Vdevs      []string          `json:"vdevs"` // disks (c1t0d0), slices (c1t0d0s5) or absolute file names
	Size       uint64            `json:"size"`
	Health     string            `json:"health"`
	Imported   bool              `json:"imported"`
	Properties map[string]string `json:"properties,omitempty"`

	// What its labels say next to that.
	TXG      uint64 `json:"txg,omitempty"`      // of the last change of its configuration
	HostID   uint32 `json:"host_id,omitempty"`  // of the system that had it last
	Accessed int64  `json:"accessed,omitempty"` // when that was, in seconds since 1970
	Exported bool   `json:"exported,omitempty"` // zpool export has released it

	// Unloaded is a pool that the system knows of, and could not open when it
	// booted. Nothing of it can be reached.
	Unloaded bool `json:"unloaded,omitempty"`
	// Orphaned is a pool that the system keeps using although its disk was
	// replaced: no label of it is left.
	Orphaned bool `json:"orphaned,omitempty"`
	// Ballast is what fills the pool next to its datasets, in bytes.
	Ballast uint64 `json:"ballast,omitempty"`
}

// Dataset is a file system, volume or snapshot.
type Dataset struct {
	Name     string            `json:"name"`
	Type     string            `json:"type"` // filesystem, volume, snapshot
	GUID     uint64            `json:"guid"`
	Created  uint64            `json:"created"` // transaction group
	Origin   string            `json:"origin,omitempty"`
	Local    map[string]string `json:"local,omitempty"`     // properties set here
	Mounted  string            `json:"mounted,omitempty"`   // where it is mounted, whatever its mountpoint says
	Used     uint64            `json:"used"`                // bytes of its own
	Tree     string            `json:"tree,omitempty"`      // directory of its contents while it is not mounted; empty: it has none yet
	Time     int64             `json:"time,omitempty"`      // of its creation, in seconds since 1970
	Deferred bool              `json:"deferred,omitempty"`  // a snapshot that is destroyed once nothing depends on it
	Key      string            `json:"key,omitempty"`       // encryption roots: the SHA-256 of the key
	KeyReady bool              `json:"key_ready,omitempty"` // encryption roots: the key is loaded
	// Immutable are directories in which nothing can be made, by their names
	// from the top of the file system.
	Immutable []string `json:"immutable,omitempty"`
}
