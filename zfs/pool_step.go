package zfs

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/sledctl/sledctl/host"
)

// The steps that make, change, import and export pools. None of them uses what
// zpool refuses at first: a device that has anything on it is not taken.

// CreatePool makes a pool of one device. Neither a pool of that name
// (host.ErrExists) nor one on the device (ErrInUse) may be there.
type CreatePool struct {
	Name, Device string
	Properties   []Property // of the pool: ashift
}

// SetPool gives a property of an imported pool a value.
type SetPool struct {
	Pool, Name, Value string
	Old               string // what Undo goes back to; empty: nothing
}

// ImportPool imports a pool that is not imported (host.ErrExists), by its GUID.
// Its file systems are mounted as far as they can be: one that cannot, for what
// lies on its mountpoint, is no failure of this step.
type ImportPool struct {
	Name, GUID string
	Dir        string // where its devices are; empty: among all disks
	// Force takes a pool that another system was the last to use (ErrInUse), as
	// one with a new host id after a boot is.
	Force bool
}

// ExportPool exports an imported pool, with all that is mounted of it. While
// something is in use it is tried again, until the context ends.
type ExportPool struct {
	Name, GUID string // GUID empty: whichever has the name
	Dir        string // for Undo
}

// Verb names the step.
func (CreatePool) Verb() string { return "zpool.create" }

// Limit leaves room for labels on slow disks.
func (CreatePool) Limit() (most time.Duration, waits bool) { return 5 * time.Minute, false }

// Verb names the step.
func (SetPool) Verb() string { return "zpool.set" }

// Verb names the step.
func (ImportPool) Verb() string { return "zpool.import" }

// Limit leaves room for a pool that was not exported: its log is replayed, on each of its disks.
func (ImportPool) Limit() (most time.Duration, waits bool) { return 10 * time.Minute, false }

// Verb names the step.
func (ExportPool) Verb() string { return "zpool.export" }

// Limit leaves room for what is still to be written.
func (ExportPool) Limit() (most time.Duration, waits bool) { return 5 * time.Minute, false }

// Undo is nil: a pool is never destroyed to tidy up.
func (CreatePool) Undo() any { return nil }

// Undo is SetPool, or nil if the old value is not known.
func (s SetPool) Undo() any {
	if s.Old == "" {
		return nil
	}
	return SetPool{Pool: s.Pool, Name: s.Name, Value: s.Old, Old: s.Value}
}

// Undo is ExportPool.
func (s ImportPool) Undo() any { return ExportPool{Name: s.Name, GUID: s.GUID, Dir: s.Dir} }

// Undo is ImportPool, or nil if its identity is not known.
func (s ExportPool) Undo() any {
	if s.GUID == "" {
		return nil
	}
	return ImportPool{Name: s.Name, GUID: s.GUID, Dir: s.Dir}
}

// Explain is the zpool create.
func (s CreatePool) Explain() []host.Line {
	return []host.Line{host.CommandLine(createPoolCommand(s.Name, s.Device, s.Properties))}
}

// Explain is the zpool set.
func (s SetPool) Explain() []host.Line {
	return []host.Line{host.CommandLine(setPoolCommand(s.Pool, Property{s.Name, s.Value}))}
}

// Explain is the zpool import.
func (s ImportPool) Explain() []host.Line {
	return []host.Line{host.CommandLine(importCommand(s.GUID, s.Dir, s.Force))}
}

// Explain is the zpool export.
func (s ExportPool) Explain() []host.Line {
	return []host.Line{host.CommandLine(exportCommand(s.Name))}
}

// Do creates it. If zpool fails and the pool is there all the same, it stays.
func (s CreatePool) Do(ctx context.Context, h host.Host) error {
	if err := errors.Join(ValidatePool(s.Name), validateDevice(s.Device), validateProperties(s.Properties)); err != nil {
		return fmt.Errorf("create pool: %w", err)
	}
	err := run(ctx, h, createPoolCommand(s.Name, s.Device, s.Properties), s.Name, s.Device)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("create pool %s on %s: %w", s.Name, s.Device, err)
	if !isCommandError(err) || isKind(err, host.ErrExists, host.ErrRefused, host.ErrNotFound) {
		return err
	}
	return cleanUp(ctx, err, func(ctx context.Context) error {
		guid, err := poolGUID(ctx, h, s.Name)
		if err != nil {
			return err
		}
		return fmt.Errorf("pool %s, guid %s, is there now, and no pool is destroyed", s.Name, guid)
	})
}

// Do sets it.
func (s SetPool) Do(ctx context.Context, h host.Host) error {
	p := Property{s.Name, s.Value}
	err := errors.Join(ValidatePool(s.Pool), p.validate())
	if err == nil {
		err = run(ctx, h, setPoolCommand(s.Pool, p), s.Pool)
	}
	if err != nil {
		return fmt.Errorf("set %s of pool %s: %w", s.Name, s.Pool, err)
	}
	return nil
}

func (s ImportPool) check() error {
	if err := ValidatePool(s.Name); err != nil {
		return err
	}
	if _, err := digits(s.GUID); err != nil {
		return fmt.Errorf("guid of pool %s: %w", s.Name, err)
	}
	if s.Dir != "" && (!path.IsAbs(s.Dir) || path.Clean(s.Dir) != s.Dir) {
		return fmt.Errorf("directory %q is not a clean absolute path", s.Dir)
	}
	return nil
}

// Do imports it, and exports it again if it is not the one that was meant.
func (s ImportPool) Do(ctx context.Context, h host.Host) error {
	if err := s.check(); err != nil {
		return fmt.Errorf("import pool: %w", err)
	}
	err := run(ctx, h, importCommand(s.GUID, s.Dir, s.Force), s.GUID, s.Name)
	if err == nil || onlyMounts(err) {
		err = isPool(ctx, h, s.Name, s.GUID)
		if err == nil {
			return nil
		}
	} else if !isCommandError(err) || isKind(err, host.ErrExists, host.ErrNotFound, host.ErrRefused) {
		return fmt.Errorf("import pool %s: %w", s.Name, err)
	}
	return cleanUp(ctx, fmt.Errorf("import pool %s: %w", s.Name, err), func(ctx context.Context) error {
		err := isPool(ctx, h, s.Name, s.GUID)
		if err == nil {
			err = ExportPool{Name: s.Name, GUID: s.GUID}.Do(ctx, h)
		}
		return err
	})
}

// onlyMounts says whether all that zpool complained of is file systems that it
// could not mount, or share.
//
// Guess import-despite-mounts: what `zpool import` prints about mountpoints that are taken begins
// with "cannot mount" or "cannot share", and the pool is imported all the same.
// Check: import one with a file under a mountpoint
func onlyMounts(err error) bool {
	e, ok := errors.AsType[*host.CommandError](err)
	if !ok || len(e.Result.Stderr) == 0 {
		return false
	}
	of := regexp.MustCompile(`^cannot (mount|share) '[^']+': .+$`)
	for line := range strings.Lines(string(e.Result.Stderr)) {
		if !of.MatchString(strings.TrimSuffix(line, "\n")) {
			return false
		}
	}
	return true
}

// Do exports it.
func (s ExportPool) Do(ctx context.Context, h host.Host) error {
	err := ValidatePool(s.Name)
	if err == nil {
		err = patiently(ctx, func(attempt int) error {
			err := s.once(ctx, h)
			if attempt > 0 && errors.Is(err, host.ErrNotFound) {
				return nil
			}
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("export pool %s: %w", s.Name, err)
	}
	return nil
}

func (s ExportPool) once(ctx context.Context, h host.Host) error {
	if err := isPool(ctx, h, s.Name, s.GUID); err != nil {
		return err
	}
	c := exportCommand(s.Name)
	r, err := h.Run(ctx, c)
	if err == nil && r.Exit != 0 {
		// Any of its mountpoints may be in the way, and is named.
		err = failureOf(c, r, func(name string) bool { return name == s.Name || path.IsAbs(name) })
	}
	return err
}
