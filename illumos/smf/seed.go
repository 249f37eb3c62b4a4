package smf

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
)

// Where the repository of a zone lies, what it is made from, and where the new
// one is made: next to it, so that it can be renamed over it.
const (
	repository = "/etc/svc/repository.db"
	seedDB     = "/lib/svc/seed/nonglobal.db"
	newRepo    = repository + ".sledctl"
)

// Seed makes the repository of an installed zone that was never booted know
// manifests, so that it need not import them when it boots: the system's seed
// is copied, the manifests below each of the directories are imported into the
// copy, and the copy is renamed over the repository. Root is ZONEPATH/root;
// the directories are the zone's own, absolute. Clones inherit the repository.
type Seed struct {
	Root      string
	Manifests []string
}

// Verb names the step.
func (Seed) Verb() string { return "smf.seed" }

// Limit is that of a service that starts and imports its manifests.
func (Seed) Limit() (most time.Duration, waits bool) { return 5 * time.Minute, false }

// Undo is nothing: the repository goes with the zone.
func (Seed) Undo() any { return nil }

// Explain is the copy, an svccfg for each directory, and the rename.
func (s Seed) Explain() []host.Line {
	lines := []host.Line{host.CopyLine(path.Join(s.Root, seedDB), path.Join(s.Root, newRepo))}
	for _, c := range s.commands() {
		lines = append(lines, host.CommandLine(c))
	}
	return append(lines, host.RenameLine(path.Join(s.Root, newRepo), path.Join(s.Root, repository)))
}

func (s Seed) commands() []host.Command {
	var all []host.Command
	for _, directory := range s.Manifests {
		all = append(all, importCommand(path.Join(s.Root, newRepo), s.Root, path.Join(s.Root, directory)))
	}
	return all
}

// Do seeds the repository. The one that is there stays until the new one is
// whole and flushed. Errors: *ImportError; those of the files and of svccfg.
func (s Seed) Do(ctx context.Context, h host.Host) error {
	root, err := h.Files().In(s.Root)
	if err != nil {
		return fmt.Errorf("seed the repository: %w", err)
	}
	err = s.make(ctx, h, root)
	if err == nil || errors.Is(err, host.ErrStillRunning) {
		return err // a svccfg that still runs still writes
	}
	for _, leftover := range []string{newRepo, newRepo + "-journal"} {
		if rerr := root.Remove(leftover); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}
	return err
}

func (s Seed) make(ctx context.Context, h host.Host, root host.Files) error {
	if err := host.CopyFile(root, seedDB, newRepo, 0o600); err != nil {
		return err
	}
	for _, c := range s.commands() {
		r, err := h.Run(ctx, c)
		if err != nil {
			return err
		}
		if err := importFailure(c, r); err != nil {
			return err
		}
	}
	if err := root.Sync(newRepo); err != nil {
		return err
	}
	if err := root.Rename(newRepo, repository); err != nil {
		return err
	}
	return root.SyncDir(path.Dir(repository))
}

// ImportError is an import of manifests of which some failed.
type ImportError struct {
	*host.CommandError
	Failed []string // svccfg's words for each
}

// Error is svccfg's words for what failed.
func (e *ImportError) Error() string { return "svccfg: " + strings.Join(e.Failed, "; ") }

func (*ImportError) Kind() fault.Kind { return fault.Failed }

// Unwrap is the command's error.
func (e *ImportError) Unwrap() error { return e.CommandError }

// importFailure reads how svccfg import DIRECTORY ended. It exits 0 also when
// some of several manifests failed, and counts on standard error what it did
// (engine_import in usr/src/cmd/svc/svccfg/svccfg_engine.c).
func importFailure(c host.Command, r host.Result) error {
	if r.Exit != 0 {
		return failure(c, r)
	}
	var failed []string
	for line := range strings.Lines(string(r.Stderr)) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "svccfg: ")
		for _, sign := range []string{"failed to load", "couldn't parse document", "is not valid", "Import of ", "Could not ", "Unable to "} {
			if strings.Contains(line, sign) {
				failed = append(failed, line)
				break
			}
		}
	}
	if failed == nil {
		return nil
	}
	return &ImportError{CommandError: &host.CommandError{Command: c, Result: r}, Failed: failed}
}
