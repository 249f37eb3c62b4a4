package zoneadm

import (
	"path"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
)

// This file installs a zone from packages: omniosorg/pkg5
// src/brand/ipkg/pkgcreatezone and sparse/pkgcreatezone. What the packages would
// put into the zone is taken from the global zone's own tree, without what is
// the global zone's business; what pkg(1) prints is left out.

// beginTree makes the datasets.
func beginTree(h *hook, args []string) int {
	spec := "a:c:d:e:hk:P:psuv"
	if h.brand.overlays != nil {
		spec = "hb:sv"
	}
	options, operands := cli.Getopt(args, spec, nil)
	seen := map[byte]bool{}
	for _, o := range options {
		seen[o.Letter] = true
		switch {
		case o.Bad != "" || o.Letter == 'h':
			return h.misused("\n        install [-h]\n        install [-s|-v]")
		case o.Letter == 'a' || o.Letter == 'd':
			return h.incomplete("failed to create image\n")
		}
	}
	if len(operands) > 0 || seen['s'] && seen['v'] {
		h.errf("cannot specify both -s and -v options")
		return h.misused("\n        install [-h]\n        install [-s|-v]")
	}
	name, code := h.createEnvironment()
	if code != hookOK {
		return code
	}
	if code := h.createOverlays(name); code != hookOK {
		return code
	}
	if code := h.mountOverlays(name); code != hookOK {
		return code
	}
	h.outf("       Image: Preparing at %s.", h.root())
	h.outf("Sanity Check: Looking for 'entire' incorporation.")
	h.outf("  Installing: Packages (output follows)")
	return hookOK
}

// finishTree lays down the files, and the repository that SMF starts from.
func finishTree(h *hook, _ []string) int {
	if err := h.layTree(); err != nil {
		return h.incomplete("failed to install package\n%s", cli.ErrnoText(err))
	}
	h.out.WriteString(" Postinstall: Copying SMF seed repository ...")
	seed, repository := path.Join(h.root(), "lib/svc/seed/nonglobal.db"), path.Join(h.root(), "etc/svc/repository.db")
	if err := copyAll(h.tx.Files, seed, repository, nil); err != nil {
		h.errf("cp: cannot access %s", seed)
	} else {
		_ = h.tx.Files.Chmod(repository, 0o600)
	}
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
func (h *hook) layTree() error {
	for _, dir := range zoneDirectories() {
		if err := mkdirAll(h.tx.Files, path.Join(h.root(), dir)); err != nil {
			return err
		}
	}
	trees := []string{"usr", "lib", "sbin"}
	if h.brand.overlays != nil {
		trees = []string{"lib/svc", "usr/lib/fm"}
	}
	for _, tree := range trees {
		if !exists(h.tx, "/"+tree) {
			continue
		}
		if err := copyAll(h.tx.Files, "/"+tree, path.Join(h.root(), tree), globalOnly(tree)); err != nil {
			return err
		}
	}
	for _, name := range []string{"etc/release", "etc/passwd", "etc/shadow", "etc/nsswitch.conf", "etc/default/init",
		"etc/inet/hosts", "etc/vfstab", "etc/ssh/sshd_config"} {
		if !exists(h.tx, "/"+name) {
			continue
		}
		if err := copyAll(h.tx.Files, "/"+name, path.Join(h.root(), name), nil); err != nil {
			return err
		}
	}
	if profile := "/usr/lib/brand/" + h.brand.name + "/profile.xml"; exists(h.tx, profile) {
		return copyAll(h.tx.Files, profile, path.Join(h.root(), "etc/svc/profile/platform.xml"), nil)
	}
	return nil
}

// globalOnly says what of a tree the packages do not install in zones.
func globalOnly(tree string) func(name string) bool {
	return func(name string) bool {
		name = path.Join(tree, name)
		return name == "usr/lib/brand" || name == "lib/svc/seed/global.db" || strings.HasPrefix(name, "usr/lib/brand/")
	}
}

func mkdirAll(files host.Files, name string) error { return host.MkdirAll(files, name, 0o755) }

func exists(tx *world.Tx, name string) bool {
	_, err := tx.Files.Stat(name)
	return err == nil
}
