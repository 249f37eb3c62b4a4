package zoneadm

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/tools/cli"
)

// This file is the omicron1 brand of Helios: a zone is made of a baseline and
// of images, and is not cloned (oxidecomputer/helios-omicron-brand,
// brand/src/bin/brand.rs). Its hooks are one program, which logs how it is
// called. How it ends where it fails is not simulated.

// Guess omicron1-copies-files: omicron1: files are copied where the brand links; errors are shown
// without what anyhow adds.
// Check: install one
func omicronHooks() hooks {
	return hooks{
		install: beginOmicron, installed: finishOmicron, uninstall: uninstallOmicron,
		clone: func(h *hook, args []string) int { return h.unknownOmicron("clone", args...) }, cloned: nothing,
		sysboot:   func(h *hook) int { return h.unknownOmicron("sysboot") },
		verify:    func(h *hook, command string) int { return h.logOmicron("verify_adm", command) },
		prestate:  func(h *hook, command int) int { return h.logOmicron("prestatechange", fmt.Sprint(command)) },
		poststate: func(h *hook, command int) int { return h.logOmicron("poststatechange", fmt.Sprint(command)) },
	}
}

// unknownOmicron is a command that the brand's configuration names and its
// program does not know.
func (h *hook) unknownOmicron(command string, args ...string) int {
	h.logOmicron(command, args...)
	h.errf("Error: unrecognised command Some(%q)", command)
	return 1
}

// logOmicron appends to /var/log/omicron-brand.log.
func (h *hook) logOmicron(command string, args ...string) int {
	words := append([]string{"/usr/lib/brand/omicron1/brand", "-z", h.zone, "-R", h.path, command}, args...)
	for i, w := range words {
		words[i] = fmt.Sprintf("%q", w)
	}
	line := fmt.Sprintf("%d [%d] [%s]\n", h.tx.Now.UnixMilli(), 1000+h.tx.Count("omicron hook"), strings.Join(words, ", "))
	const log = "/var/log/omicron-brand.log"
	err := h.tx.Files.Append(log, []byte(line))
	if errors.Is(err, fs.ErrNotExist) {
		_ = mkdirAll(h.tx.Files, path.Dir(log))
		_ = cli.WriteFile(h.tx.Files, log, []byte(line), 0o644)
	}
	return hookOK
}

// beginOmicron makes the root.
func beginOmicron(h *hook, args []string) int {
	h.logOmicron("install", args...)
	h.outf("INFO: omicron: installing zone %s @ %q...", h.zone, h.path)
	err := h.tx.Files.Mkdir(h.root(), 0o755)
	if errors.Is(err, fs.ErrExist) {
		h.errf("Error: File exists (os error 17)")
		return 1
	}
	must(err)
	return hookOK
}

// finishOmicron replicates the system's trees, unpacks the baseline, and then
// each image in its turn.
func finishOmicron(h *hook, images []string) int {
	files := h.tx.Files
	for _, tree := range []string{"usr", "lib", "sbin"} {
		h.outf("INFO: omicron: replicating /%s tree...", tree)
		to := path.Join(h.root(), tree)
		must(mkdirAll(files, to))
		// The real trees are of links to /system/usr and so on; these are copies.
		if exists(h.tx, "/"+tree) {
			must(copyAll(files, "/"+tree, to, globalOnly(tree)))
		}
	}
	h.outf("INFO: omicron: pruning SMF manifests...")
	must(cli.RemoveAll(files, path.Join(h.root(), "lib/svc/manifest")))
	h.outf("INFO: omicron: pruning global-only files...")
	h.pruneOmicron()
	h.outf("INFO: omicron: unpacking baseline archive...")
	unpackImage(files, h.baseline("files.tar.gz"), "baseline", h.root())
	for _, image := range images {
		h.outf("INFO: omicron: unpacking image %q...", image)
		unpackImage(files, path.Join("/", image), "layer", h.root())
	}
	if exists(h.tx, "/etc/default/init") {
		h.outf("INFO: omicron: copying /etc/default/init...")
		must(mkdirAll(files, path.Join(h.root(), "etc/default"))) // a real baseline has it
		must(copyAll(files, "/etc/default/init", path.Join(h.root(), "etc/default/init"), nil))
	}
	h.outf("INFO: omicron: install complete, probably!")
	return hookOK
}

// baseline finds a file of the baseline.
func (h *hook) baseline(name string) string {
	at := path.Join("/var/run/brand/omicron1/baseline", name)
	if !exists(h.tx, at) {
		at = path.Join("/usr/lib/brand/omicron1/baseline", name)
	}
	return at
}

// pruneOmicron removes what the baseline says is the global zone's only.
func (h *hook) pruneOmicron() {
	data, err := host.ReadFile(h.tx.Files, h.baseline("gzonly.txt"))
	must(err)
	for name := range strings.Lines(string(data)) {
		cli.Simulated(!strings.HasPrefix(name, "/"))
		if err := h.tx.Files.Remove(path.Join(h.root(), strings.TrimSuffix(name, "\n"))); !errors.Is(err, fs.ErrNotExist) {
			must(err)
		}
	}
}

// uninstallOmicron removes the root; the zonepath and its dataset stay.
func uninstallOmicron(h *hook, args []string) int {
	h.logOmicron("uninstall", args...)
	h.outf("INFO: omicron: uninstalling zone %s...", h.zone)
	must(removeBelow(h.tx, h.root()))
	return hookOK
}
