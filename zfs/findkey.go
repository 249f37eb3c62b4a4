package zfs

import (
	"context"
	"errors"
	"fmt"

	"github.com/sledctl/sledctl/host"
)

// FindKey unlocks an encryption root that does not say which key it has: one
// after the other is tried, and then the dataset says which it is, as the sled
// agent has it (oxidecomputer/omicron illumos-utils/src/zfs.rs). If none fits the error
// is ErrWrongKey, and nothing is changed.
type FindKey struct {
	Dataset string
	Keys    []Candidate
	Drop    []string // user properties that are of no use once it is known
}

// Candidate is a key that may be the right one, and the properties that the dataset has
// then.
type Candidate struct {
	Key        Key
	Properties []Property // user properties
}

// Verb names the step.
func (FindKey) Verb() string { return "zfs.find-key" }

// Undo locks it again.
func (s FindKey) Undo() any { return UnloadKey{Dataset: s.Dataset} }

// Explain is what the key that fits takes: it shows each.
func (s FindKey) Explain() []host.Line {
	var all []host.Line
	for i, c := range s.Keys {
		if i > 0 {
			all = append(all, host.Line{Kind: host.LineWait, Text: "# if that key does not fit:"})
		}
		all = append(all, with(c.Key, host.CommandLine(loadKeyCommand(s.Dataset, c.Key)))...)
		for _, p := range c.Properties {
			all = append(all, host.CommandLine(setCommand(s.Dataset, p)))
		}
		for _, p := range s.Drop {
			all = append(all, host.CommandLine(inheritCommand(s.Dataset, p)))
		}
	}
	return all
}

// Do finds it.
func (s FindKey) Do(ctx context.Context, h host.Host) error {
	for _, c := range s.Keys {
		load := LoadKey{Dataset: s.Dataset, Key: c.Key}
		err := load.Do(ctx, h)
		if errors.Is(err, ErrWrongKey) {
			continue
		}
		if err != nil {
			return err
		}
		if err = setAll(ctx, h, s.Dataset, c.Properties); err == nil {
			err = inheritAll(ctx, h, s.Dataset, s.Drop)
		}
		if err == nil {
			return nil
		}
		err = fmt.Errorf("write down which key dataset %s has: %w", s.Dataset, err)
		return cleanUp(ctx, err, func(ctx context.Context) error { return UnloadKey{Dataset: s.Dataset}.Do(ctx, h) })
	}
	return fmt.Errorf("load the key of dataset %s: none of %d fits: %w", s.Dataset, len(s.Keys), ErrWrongKey)
}
