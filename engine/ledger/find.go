package ledger

import (
	"path"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/naming"
)

// pools is where the sled agent mounts the pools of M.2 disks, by their uuid
// (oxidecomputer/omicron, common/src/zpool_name.rs).
const pools = "/pool/int"

// Find is every location that may hold a copy: the configured directory, or
// else the package's, and the config dataset of each M.2. It runs no command
// and looks at names only: whether a dataset is mounted and a copy is there,
// Open finds out, and says.
func Find(files host.Files, configured string) []Location {
	var out []Location
	if configured == "" {
		configured = StateDirectory(files)
	}
	if configured != "" {
		out = append(out, Location{Directory: path.Clean(configured)})
	}
	below, _ := files.ReadDir(pools) // not there, or not to be read: no M.2 is mounted
	for _, pool := range below {
		if pool.Mode.IsDir() {
			out = append(out, OnPool(pool.Name))
		}
	}
	return out
}

// StateDirectory is the directory in which a package keeps what sledctl remembers, the first
// of naming.StateDirectories that is there; empty: none is.
func StateDirectory(files host.Files) string {
	for _, dir := range naming.StateDirectories() {
		if info, err := files.Stat(dir); err == nil && info.Mode.IsDir() {
			return dir
		}
	}
	return ""
}

// OnPool is the location on an M.2, given the uuid in its pool's name
// (oxi_<uuid>).
func OnPool(uuid string) Location {
	return Location{Directory: path.Join(pools, uuid, "config", "sledctl"), Pool: uuid}
}
