package zfs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sledctl/sledctl/host"
)

// ChangeKey gives an encryption root another key, and sets user properties that
// tell which it is, such as its epoch. The old key must be loaded
// (ErrKeyNotLoaded).
//
// illumos does both in one command, so that there is no moment at which the one is
// new and the other old. OpenZFS takes no user properties with a key
// (zfs_crypto_verify_rewrap_nvlist of lib/libzfs/libzfs_crypto.c): there Coming
// is set before and removed at the end: a process that finds it knows that the key is
// one of two.
//
// Guess change-key-sets-properties: `change-key -o` sets user properties with the key, as the sled
// agent has it do; where that is refused, as OpenZFS does, `storage rekey` announces the key in
// `sledctl:next-epoch` first.
// Check: that line, then `zfs get keylocation,sledctl:epoch`
type ChangeKey struct {
	Dataset    string
	Key        Key
	Properties []Property // user properties
	Coming     []Property // those that announce the key; none: it is not changed where they are needed
	// Old and its properties are what Undo goes back to; nil: nothing.
	Old           Key
	OldProperties []Property
	OldComing     []Property
}

// Verb names the step.
func (ChangeKey) Verb() string { return "zfs.change-key" }

// Undo is ChangeKey, or nil if the old key is not known.
func (s ChangeKey) Undo() any {
	if s.Old == nil {
		return nil
	}
	return ChangeKey{Dataset: s.Dataset, Key: s.Old, Properties: s.OldProperties, Old: s.Key, OldProperties: s.Properties, Coming: s.OldComing, OldComing: s.Coming}
}

// Explain is the zfs change-key, between what is done with the key's file. Where
// zfs takes no properties with a key, other commands come before and after it.
func (s ChangeKey) Explain() []host.Line {
	return with(s.Key, host.CommandLine(changeKeyCommand(s.Dataset, s.Key, s.Properties)))
}

// carries reports whether the dataset has the properties that go with the key. They
// are set together with it (spa_keystore_change_key_sync in
// usr/src/uts/common/fs/zfs/dsl_crypt.c): then the key is changed, whatever an error
// says. Without properties, nothing shows that.
func (s ChangeKey) carries(ctx context.Context, h host.Host, properties []Property) bool {
	if len(properties) == 0 {
		return false
	}
	is, err := Get(ctx, h, s.Dataset, names(properties)...)
	return err == nil && !slices.ContainsFunc(properties, func(p Property) bool { return is.User[p.Name] != (Value{p.Value, Local}) })
}

// apartKey is where a host remembers that its zfs takes no properties with a key.
type apartKey struct{}

// Do changes it.
func (s ChangeKey) Do(ctx context.Context, h host.Host) error {
	err := s.check()
	if err == nil {
		err = s.change(ctx, h)
	}
	if err != nil {
		return fmt.Errorf("change the key of dataset %s: %w", s.Dataset, err)
	}
	return nil
}

func (s ChangeKey) change(ctx context.Context, h host.Host) error {
	if apart, _ := host.Recall[bool](h, apartKey{}); !apart || len(s.Coming) == 0 {
		err := s.rewrap(ctx, h, s.Properties)
		if len(s.Coming) == 0 || len(s.Properties) == 0 || !isLacking(err) {
			return err
		}
		host.Remember(h, apartKey{}, true)
	}
	return s.apart(ctx, h)
}

// rewrap is the one command.
func (s ChangeKey) rewrap(ctx context.Context, h host.Host, properties []Property) error {
	changed := false
	err := lend(ctx, h, s.Key, func() error {
		err := run(ctx, h, changeKeyCommand(s.Dataset, s.Key, properties), s.Dataset)
		changed = err == nil || s.carries(ctx, h, properties)
		if changed {
			return nil
		}
		return err
	})
	if err != nil && changed {
		return &host.LeftoverError{Cause: err, Err: errors.New("the key is changed all the same")}
	}
	return err
}

// apart announces the key, changes it, and then records that it has changed. A process
// that is killed in between leaves a dataset that FindKey unlocks.
func (s ChangeKey) apart(ctx context.Context, h host.Host) error {
	if err := setAll(ctx, h, s.Dataset, s.Coming); err != nil {
		return err
	}
	if err := s.rewrap(ctx, h, nil); err != nil {
		return err // what announces it stays: that it was not changed, this error does not prove
	}
	err := setAll(ctx, h, s.Dataset, s.Properties)
	if err == nil {
		err = inheritAll(ctx, h, s.Dataset, names(s.Coming))
	}
	if err != nil {
		return &host.LeftoverError{Cause: err, Err: errors.New("the key is changed, and the dataset does not say so yet")}
	}
	return nil
}

func setAll(ctx context.Context, h host.Host, dataset string, properties []Property) error {
	for _, p := range properties {
		if err := run(ctx, h, setCommand(dataset, p), dataset); err != nil {
			return err
		}
	}
	return nil
}

func inheritAll(ctx context.Context, h host.Host, dataset string, properties []string) error {
	for _, p := range properties {
		if err := run(ctx, h, inheritCommand(dataset, p), dataset); err != nil {
			return err
		}
	}
	return nil
}

func names(properties []Property) []string {
	var all []string
	for _, p := range properties {
		all = append(all, p.Name)
	}
	return all
}

func (s ChangeKey) check() error {
	for _, p := range append(s.Properties[:len(s.Properties):len(s.Properties)], s.Coming...) {
		if !userProperty(p.Name) {
			return &NameError{What: "property", Name: p.Name, Reason: "is no user property: it has no ':'"}
		}
	}
	return errors.Join(ValidateName(s.Dataset), validateProperties(s.Properties), validateProperties(s.Coming))
}
