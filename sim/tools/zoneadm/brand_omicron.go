package zoneadm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
)

// This file is the omicron1 brand of Helios: a zone is made of a baseline and
// of images, and is not cloned (oxidecomputer/helios-omicron-brand,
// brand/src/bin/brand.rs). Its hooks are one program, which logs how it is
// called.

func omicronHooks() hooks {
	return hooks{
		install: func(h *hook, args []string) int { h.logOmicron("install", args...); return h.beginOmicron() },
		installed: func(h *hook, args []string) int {
			return h.omicron(h.finishOmicron(args))
		},
		uninstall: func(h *hook, args []string) int {
			h.logOmicron("uninstall", args...)
			return h.omicron(h.uninstallOmicron(args))
		},
		clone: unknownOmicron("clone"), cloned: nothing,
		sysboot: func(h *hook) int { return unknownOmicron("sysboot")(h, nil) },
		verify: func(h *hook, command string) int {
			h.logOmicron("verify_adm", command)
			return hookOK
		},
		prestate:  func(h *hook, command int) int { h.logOmicron("prestatechange", fmt.Sprint(command)); return hookOK },
		poststate: func(h *hook, command int) int { h.logOmicron("poststatechange", fmt.Sprint(command)); return hookOK },
	}
}

// unknownOmicron is a command that the brand's configuration names and its
// program does not know.
func unknownOmicron(command string) func(*hook, []string) int {
	return func(h *hook, args []string) int {
		h.logOmicron(command, args...)
		return h.omicron(fmt.Errorf("unrecognised command Some(%q)", command))
	}
}

// omicron ends the program as Rust does a main that returns an error.
func (h *hook) omicron(err error) int {
	if err == nil {
		return hookOK
	}
	h.errf("Error: %s", err)
	return 1
}

// logOmicron appends to /var/log/omicron-brand.log.
func (h *hook) logOmicron(command string, args ...string) {
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
}

// beginOmicron makes the root.
func (h *hook) beginOmicron() int {
	h.outf("INFO: omicron: installing zone %s @ %q...", h.zone, h.path)
	if err := h.tx.Files.Mkdir(h.root(), 0o755); err != nil {
		return h.omicron(errors.New(rustError(err)))
	}
	return hookOK
}

// rustError is how Rust shows what a file operation came to.
func rustError(err error) string {
	number := map[bool]int{true: 2, false: 17}[errors.Is(err, fs.ErrNotExist)]
	return fmt.Sprintf("%s (os error %d)", cli.ErrnoText(err), number)
}

// finishOmicron replicates the system's trees, unpacks the baseline, and then
// each image in its turn.
func (h *hook) finishOmicron(images []string) error {
	for _, tree := range []string{"usr", "lib", "sbin"} {
		h.outf("INFO: omicron: replicating /%s tree...", tree)
		to := path.Join(h.root(), tree)
		if err := mkdirAll(h.tx.Files, to); err != nil {
			return err
		}
		if !exists(h.tx, "/"+tree) {
			continue
		}
		// The real trees are of links to /system/usr and so on; these are copies.
		if err := copyAll(h.tx.Files, "/"+tree, to, globalOnly(tree)); err != nil {
			return err
		}
	}
	h.outf("INFO: omicron: pruning SMF manifests...")
	if err := cli.RemoveAll(h.tx.Files, path.Join(h.root(), "lib/svc/manifest")); err != nil {
		return err
	}
	h.outf("INFO: omicron: pruning global-only files...")
	if err := h.pruneOmicron(); err != nil {
		return err
	}
	h.outf("INFO: omicron: unpacking baseline archive...")
	baseline, err := h.baseline("files.tar.gz")
	if err != nil {
		return err
	}
	if err := unpackImage(h.tx.Files, baseline, "baseline", h.root()); err != nil {
		return err
	}
	for _, image := range images {
		h.outf("INFO: omicron: unpacking image %q...", image)
		if err := unpackImage(h.tx.Files, path.Join("/", image), "layer", h.root()); err != nil {
			return err
		}
	}
	if exists(h.tx, "/etc/default/init") {
		h.outf("INFO: omicron: copying /etc/default/init...")
		if err := mkdirAll(h.tx.Files, path.Join(h.root(), "etc/default")); err != nil { // a real baseline has it
			return err
		}
		if err := copyAll(h.tx.Files, "/etc/default/init", path.Join(h.root(), "etc/default/init"), nil); err != nil {
			return err
		}
	}
	h.outf("INFO: omicron: install complete, probably!")
	return nil
}

// baseline finds a file of the baseline.
func (h *hook) baseline(name string) (string, error) {
	for _, dir := range []string{"/var/run/brand/omicron1/baseline", "/usr/lib/brand/omicron1/baseline"} {
		if at := path.Join(dir, name); exists(h.tx, at) {
			return at, nil
		}
	}
	return "", fmt.Errorf("could not locate %q in any baseline directory", name)
}

// pruneOmicron removes what the baseline says is the global zone's only.
func (h *hook) pruneOmicron() error {
	list, err := h.baseline("gzonly.txt")
	if err != nil {
		return err
	}
	data, err := host.ReadFile(h.tx.Files, list)
	if err != nil {
		return err
	}
	for name := range strings.Lines(string(data)) {
		name = strings.TrimSuffix(name, "\n")
		if strings.HasPrefix(name, "/") {
			return fmt.Errorf("absolute path in baseline remove list: %q", name)
		}
		if err := h.tx.Files.Remove(path.Join(h.root(), name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("removing %q: %w", name, err)
		}
	}
	return nil
}

// uninstallOmicron removes the root; the zonepath and its dataset stay.
func (h *hook) uninstallOmicron(args []string) error {
	options, operands := cli.Getopt(args, "F", nil)
	for _, o := range options {
		if o.Bad != "" {
			return &world.Refusal{Text: "Unrecognized option: '" + o.Bad + "'", Exit: 1} // in the words of Rust's getopts
		}
	}
	if len(operands) > 0 {
		return fmt.Errorf("unexpected arguments %q", operands)
	}
	h.outf("INFO: omicron: uninstalling zone %s...", h.zone)
	return removeBelow(h.tx, h.root())
}
