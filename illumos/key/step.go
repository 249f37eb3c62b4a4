package key

import (
	"context"
	"fmt"

	"github.com/sledctl/sledctl/host"
)

// Wipe overwrites and removes a key file that a killed run has left; see Left.
type Wipe struct{ File string }

// Verb names the step.
func (Wipe) Verb() string { return "key.wipe" }

// Undo is nil.
func (Wipe) Undo() any { return nil }

// Explain is the overwriting and the removal.
func (s Wipe) Explain() []host.Line { return host.WipeLines(s.File) }

// Do wipes it. A missing file is an error (fs.ErrNotExist).
func (s Wipe) Do(_ context.Context, h host.Host) error {
	if err := host.WipeSecret(h.Files(), s.File); err != nil {
		return fmt.Errorf("wipe key file: %w", err)
	}
	return nil
}
