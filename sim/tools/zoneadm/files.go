package zoneadm

import (
	"path"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// createRoot is omniosorg/pkg5 src/brand/bhyve/createzone, which kvm and emu share:
// zones that run no illumos of their own get a root that is nearly empty.
func createRoot(h *hook, _ []string) int {
	for _, dir := range []string{"dev", "etc", "usr", "sbin", "lib", "var/run", "tmp"} {
		must(mkdirAll(h.tx.Files, path.Join(h.root(), dir)))
	}
	return hookOK
}

// removeAll is rm -rf. A directory on which something is mounted is emptied,
// but stays, as for rm(1).
func (h *hook) removeAll(name string) { _ = removeBelow(h.tx, name) }

func removeBelow(tx *world.Tx, name string) error {
	return cli.RemoveExcept(tx.Files, name, func(dir string) bool { return zfs.MountedAt(tx, dir) != nil })
}

// copyAll copies a file or a directory with all that is in it, except what
// skip says by its name below from.
func copyAll(files host.Files, from, to string, skip func(name string) bool) error {
	info, err := files.Stat(from)
	if err != nil {
		return err
	}
	if !info.Mode.IsDir() {
		data, err := host.ReadFile(files, from)
		must(err)
		return cli.WriteFile(files, to, data, info.Mode.Perm())
	}
	must(host.MkdirAll(files, to, info.Mode.Perm()))
	entries, err := files.ReadDir(from)
	for _, e := range entries {
		if skip != nil && skip(e.Name) {
			continue
		}
		below := func(name string) bool { return skip != nil && skip(path.Join(e.Name, name)) }
		must(copyAll(files, path.Join(from, e.Name), path.Join(to, e.Name), below))
	}
	return err
}

// zonepathDataset is get_zonepath_ds of usr/src/lib/brand/shared/zone/common.ksh:
// the file system whose mountpoint is exactly this; empty if there is none.
func (h *hook) zonepathDataset(dir string) string {
	if d := zfs.ByMountpoint(h.tx, dir); d != nil {
		return d.Name
	}
	return ""
}

func mkdirAll(files host.Files, name string) error { return host.MkdirAll(files, name, 0o755) }

func exists(tx *world.Tx, name string) bool {
	_, err := tx.Files.Stat(name)
	return err == nil
}
