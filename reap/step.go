package reap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/sledctl/sledctl/host"
)

// wipeKey overwrites and removes a file that holds a key.
type wipeKey struct{ Name string }

// Verb names the step.
func (wipeKey) Verb() string { return "key.wipe" }

// Undo is nil.
func (wipeKey) Undo() any { return nil }

// Explain is the overwriting and the removal.
func (s wipeKey) Explain() []host.Line { return host.WipeLines(s.Name) }

// Do wipes it. One that is gone went with the run that made it.
func (s wipeKey) Do(_ context.Context, h host.Host) error {
	err := host.WipeSecret(h.Files(), s.Name)
	if _, left := h.Files().Stat(s.Name); errors.Is(left, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("wipe key file %s: %w", s.Name, err)
	}
	return nil
}
