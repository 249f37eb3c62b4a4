package zoneadm

import (
	"path"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// This file has the hooks of brands whose zones run no illumos of their own:
// bhyve, kvm and emu get a root that is nearly empty.

// createRoot is omniosorg/pkg5 src/brand/bhyve/createzone.
func createRoot(h *hook, args []string) int {
	if _, operands := cli.Getopt(args, "R:z:", nil); len(operands) != len(args) {
		return h.misused("")
	}
	if err := h.tx.Files.Mkdir(h.root(), 0o755); err != nil {
		h.errf("mkdir: Failed to make directory \"root\"; %s", cli.ErrnoText(err))
		return h.incomplete("Failed to build miniroot")
	}
	for _, dir := range []string{"dev", "etc", "usr", "sbin", "lib", "var/run", "tmp"} {
		if err := host.MkdirAll(h.tx.Files, path.Join(h.root(), dir), 0o755); err != nil {
			return h.incomplete("Failed to build miniroot")
		}
	}
	uuid := ""
	if z := h.tx.FindZone(h.zone); z != nil {
		uuid = z.UUID
	}
	for name, text := range map[string]string{"etc/passwd": "root:x:0:0:Super-User:/:/sbin/sh\n", "etc/uuid": uuid + "\n"} {
		if err := cli.WriteFile(h.tx.Files, path.Join(h.root(), name), []byte(text), 0o644); err != nil {
			return h.incomplete("Failed to build miniroot")
		}
	}
	return hookOK
}

// destroyZonepath is omniosorg/pkg5 src/brand/bhyve/uninstall.
func destroyZonepath(h *hook, _ []string) int {
	if ds := h.zonepathDataset(h.path); ds != "" {
		if !h.zfs("destroy", "-r", ds) {
			return hookFatal
		}
		return hookOK
	}
	h.removeAll(h.path)
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
		if err != nil {
			return err
		}
		return cli.WriteFile(files, to, data, info.Mode.Perm())
	}
	if err := host.MkdirAll(files, to, info.Mode.Perm()); err != nil {
		return err
	}
	entries, err := files.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if skip != nil && skip(e.Name) {
			continue
		}
		below := func(name string) bool { return skip != nil && skip(path.Join(e.Name, name)) }
		if err := copyAll(files, path.Join(from, e.Name), path.Join(to, e.Name), below); err != nil {
			return err
		}
	}
	return nil
}

// zonepathDataset is get_zonepath_ds of usr/src/lib/brand/shared/zone/common.ksh:
// the file system whose mountpoint is exactly this; empty if there is none.
func (h *hook) zonepathDataset(dir string) string {
	_, out := h.quietZFS("list", "-H", "-t", "filesystem", "-o", "name,mountpoint")
	for line := range strings.Lines(out) {
		if name, where, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t"); where == dir {
			return name
		}
	}
	return ""
}
