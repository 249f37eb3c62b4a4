package zoneadm

import (
	"path"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/packages"
)

// This file installs a zone from packages: omniosorg/pkg5
// src/brand/ipkg/pkgcreatezone and sparse/pkgcreatezone. What the packages would
// put into the zone is taken from the global zone's own tree, without what is
// the global zone's business; what pkg(1) prints is left out.

// beginTree makes the datasets.
func beginTree(h *hook, args []string) int {
	cli.Simulated(len(args) == 0)
	name, code := h.createEnvironment()
	if code != hookOK {
		return code
	}
	for _, o := range h.brand.overlays { // create_overlays of sparse/common.ksh
		if !h.zfs("create", "-o", "canmount=noauto", name+"/"+o.dataset) {
			return h.fatal(textZFSCreate)
		}
	}
	if code := h.mountOverlays(name); code != hookOK {
		return code
	}
	h.outf("       Image: Preparing at %s.", h.root())
	if data, err := host.ReadFile(h.tx.Files, packages.Catalog); err == nil && h.brand.name == "sparse" && !strings.Contains(string(data), `"entire":`) {
		return h.fatal("Unable to locate the incorporation '' in the preferred publisher ''.\nUse -P to supply a publisher which contains this package.\n")
	}
	h.outf("Sanity Check: Looking for 'entire' incorporation.")
	h.outf("  Installing: Packages (output follows)")
	return hookOK
}

// finishTree lays down the files, and the repository that SMF starts from.
func finishTree(h *hook, _ []string) int {
	h.layTree()
	h.out.WriteString(" Postinstall: Copying SMF seed repository ...")
	seed, repository := path.Join(h.root(), "lib/svc/seed/nonglobal.db"), path.Join(h.root(), "etc/svc/repository.db")
	must(copyAll(h.tx.Files, seed, repository, nil))
	must(h.tx.Files.Chmod(repository, 0o600))
	h.outf(" done.")
	h.outf("        Done: Installation completed in %d seconds.\n", int(h.tx.Latency(world.StepInstall).Seconds()))
	return hookOK
}

// zoneDirectories are those that the packages of a zone have, empty at first.
func zoneDirectories() []string {
	return []string{"dev", "etc/default", "etc/dladm", "etc/inet", "etc/ipadm", "etc/ssh", "etc/svc/profile", "etc/svc/volatile",
		"export/home", "home", "mnt", "opt", "proc", "root", "system/contract", "system/object", "tmp", "usr", "lib", "sbin",
		"var/adm", "var/log", "var/run", "var/svc/log", "var/svc/manifest/site", "var/svc/profile", "var/tmp"}
}

// layTree fills the zone's root. A sparse zone has of /usr and /lib only what
// its overlays show; the rest is the global zone's, by loopback mounts.
//
// Guess files-instead-of-packages: sparse and ipkg: a zone's files are the global zone's, not
// packages; what pkg(1) prints is left out.
// Check: `zoneadm -z ZONE install`
func (h *hook) layTree() {
	for _, dir := range zoneDirectories() {
		must(mkdirAll(h.tx.Files, path.Join(h.root(), dir)))
	}
	trees := []string{"usr", "lib", "sbin"}
	if h.brand.overlays != nil {
		trees = []string{"lib/svc", "usr/lib/fm"}
	}
	for _, name := range append(trees, "etc/release", "etc/passwd", "etc/shadow", "etc/nsswitch.conf", "etc/default/init",
		"etc/inet/hosts", "etc/vfstab", "etc/ssh/sshd_config") {
		if exists(h.tx, "/"+name) {
			must(copyAll(h.tx.Files, "/"+name, path.Join(h.root(), name), globalOnly(name)))
		}
	}
	if profile := "/usr/lib/brand/" + h.brand.name + "/profile.xml"; exists(h.tx, profile) {
		must(copyAll(h.tx.Files, profile, path.Join(h.root(), "etc/svc/profile/platform.xml"), nil))
	}
}

// globalOnly says what of a tree the packages do not install in zones.
func globalOnly(tree string) func(name string) bool {
	return func(name string) bool {
		name = path.Join(tree, name)
		return name == "usr/lib/brand" || name == "lib/svc/seed/global.db" || strings.HasPrefix(name, "usr/lib/brand/")
	}
}
