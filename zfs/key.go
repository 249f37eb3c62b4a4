package zfs

import (
	"context"
	"fmt"

	"github.com/sledctl/sledctl/host"
)

// Encrypted file systems. zfs reads a key from a file that is there for the
// time of one command. This package lends it such a file and never sees the key.

// Key is the raw key of an encryption root, 32 bytes, and the file that zfs
// reads it from. Package key has them. Printing one never shows the key.
type Key interface {
	// Location is what keylocation is set to: "file:///…".
	Location() string
	// Lend writes the file, runs use, and wipes the file, whatever use did.
	Lend(ctx context.Context, files host.Files, use func() error) error
	// Around explains what Lend does before use and after it.
	Around() (before, after []host.Line)
}

// Cipher is how file systems are encrypted, as the sled agent does it
// (oxidecomputer/omicron illumos-utils/src/zfs.rs).
const Cipher = "aes-256-gcm"

// encrypting are the properties that make a new file system an encryption root.
func encrypting(k Key) []Property {
	return []Property{{"encryption", Cipher}, {"keyformat", "raw"}, {"keylocation", k.Location()}}
}

// with explains commands that need the key.
func with(k Key, commands ...host.Line) []host.Line {
	if k == nil {
		return commands
	}
	before, after := k.Around()
	return append(append(before[:len(before):len(before)], commands...), after...)
}

// lend runs use with the key's file, or without one.
func lend(ctx context.Context, h host.Host, k Key, use func() error) error {
	if k == nil {
		return use()
	}
	return k.Lend(ctx, h.Files(), use)
}

// LoadKey unlocks an encryption root, and with it all that inherits its key.
// Its key must not be loaded (host.ErrState). A key that does not fit is
// ErrWrongKey. What it unlocks is not mounted: that is Mount's.
type LoadKey struct {
	Dataset string
	Key     Key
}

// UnloadKey locks an encryption root. Nothing that has its key may be mounted
// (host.ErrBusy).
type UnloadKey struct {
	Dataset string
	Key     Key // for Undo; may be nil
}

// Verb names the step.
func (LoadKey) Verb() string { return "zfs.load-key" }

// Verb names the step.
func (UnloadKey) Verb() string { return "zfs.unload-key" }

// Undo is UnloadKey.
func (s LoadKey) Undo() any { return UnloadKey(s) }

// Undo is LoadKey, or nil if the key is not known.
func (s UnloadKey) Undo() any {
	if s.Key == nil {
		return nil
	}
	return LoadKey(s)
}

// Explain is the zfs load-key, between what is done with the key's file.
func (s LoadKey) Explain() []host.Line {
	return with(s.Key, host.CommandLine(loadKeyCommand(s.Dataset, s.Key)))
}

// Explain is the zfs unload-key.
func (s UnloadKey) Explain() []host.Line {
	return []host.Line{host.CommandLine(unloadKeyCommand(s.Dataset))}
}

// Do loads it.
func (s LoadKey) Do(ctx context.Context, h host.Host) error {
	loaded := false
	err := ValidateName(s.Dataset)
	if err == nil {
		err = lend(ctx, h, s.Key, func() error {
			err := run(ctx, h, loadKeyCommand(s.Dataset, s.Key), s.Dataset)
			loaded = err == nil
			return err
		})
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("load the key of dataset %s: %w", s.Dataset, err)
	if !loaded {
		return err
	}
	return cleanUp(ctx, err, func(ctx context.Context) error { return UnloadKey{Dataset: s.Dataset}.Do(ctx, h) })
}

// Do unloads it.
func (s UnloadKey) Do(ctx context.Context, h host.Host) error {
	err := ValidateName(s.Dataset)
	if err == nil {
		err = run(ctx, h, unloadKeyCommand(s.Dataset), s.Dataset)
	}
	if err != nil {
		return fmt.Errorf("unload the key of dataset %s: %w", s.Dataset, err)
	}
	return nil
}
