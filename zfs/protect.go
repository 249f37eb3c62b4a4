package zfs

import (
	"context"
	"fmt"
	"path"

	"github.com/sledctl/sledctl/host"
)

// Protect makes a directory ready to be mounted on: it exists, is empty and
// immutable. Its fields are what Mountpoint.Protect saw; if something else lies
// there meanwhile, it fails (host.ErrState). What was moved aside stays there.
//
// Guess mount-on-immutable-directory: a file system can be mounted on an immutable directory.
// Check: `zfs.protect` in `sledctl trace` of a bootstrap
type Protect struct {
	Directory string
	Make      bool     // it does not exist
	Entries   []string // what lies in it, and is moved to Aside
	Aside     string   // a directory that does not exist
	Loosen    bool     // it is immutable, although something lies in it
	Unfixable bool     // its file system has no such attribute
}

// directoryMode is the mode of directories that are made to be mounted on.
const directoryMode = 0o755

// Verb names the step.
func (Protect) Verb() string { return "zfs.protect" }

// Undo is nil: nothing is the worse for it.
func (Protect) Undo() any { return nil }

// Explain is what is made, moved and changed.
func (s Protect) Explain() []host.Line {
	var lines []host.Line
	if s.Make {
		lines = append(lines, host.MkdirLine(s.Directory, directoryMode))
	}
	if s.Loosen {
		lines = append(lines, host.CommandLine(loosenCommand(s.Directory)))
	}
	if len(s.Entries) > 0 {
		lines = append(lines, host.MkdirLine(s.Aside, directoryMode))
	}
	for _, name := range s.Entries {
		lines = append(lines, host.RenameLine(path.Join(s.Directory, name), path.Join(s.Aside, name)))
	}
	if !s.Unfixable {
		lines = append(lines, host.CommandLine(fixCommand(s.Directory)))
	}
	return lines
}

// Do makes it so. If it fails halfway the directory is immutable again.
func (s Protect) Do(ctx context.Context, h host.Host) error {
	err := s.prepare(ctx, h)
	if err == nil && !s.Unfixable {
		err = run(ctx, h, fixCommand(s.Directory), s.Directory)
	}
	if err == nil {
		err = s.empty(h.Files())
	}
	if err != nil {
		return fmt.Errorf("protect mountpoint %s: %w", s.Directory, err)
	}
	return nil
}

// prepare makes the directory, or empties it.
func (s Protect) prepare(ctx context.Context, h host.Host) error {
	if err := cleanPath(s.Directory); err != nil {
		return err
	}
	if s.Make {
		return host.MkdirAll(h.Files(), s.Directory, directoryMode)
	}
	m, err := seen(h.Files(), s.Directory)
	switch {
	case err != nil:
		return err
	case m.Mounted:
		return fmt.Errorf("something is mounted on it: %w", host.ErrState)
	case len(s.Entries) == 0:
		return s.empty(h.Files())
	case !s.Loosen:
		return s.moveAside(h.Files())
	}
	if err := run(ctx, h, loosenCommand(s.Directory), s.Directory); err != nil {
		return err
	}
	if err = s.moveAside(h.Files()); err == nil {
		return nil
	}
	return cleanUp(ctx, err, func(ctx context.Context) error { return run(ctx, h, fixCommand(s.Directory), s.Directory) })
}

func (s Protect) moveAside(files host.Files) error {
	if err := files.Mkdir(s.Aside, directoryMode); err != nil {
		return err
	}
	for _, name := range s.Entries {
		if err := files.Rename(path.Join(s.Directory, name), path.Join(s.Aside, name)); err != nil {
			return err
		}
	}
	return nil
}

// empty fails if somebody writes there.
func (s Protect) empty(files host.Files) error {
	entries, err := files.ReadDir(s.Directory)
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("%s lies in it, and did not when it was looked at: %w", entries[0].Name, host.ErrState)
	}
	return err
}
