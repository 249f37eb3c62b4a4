package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/sledctl/sledctl/host"
)

// Remove removes a bundle. One that is gone already is no failure: another process may have
// made room.
type Remove struct {
	File string // see Bundle.Path
	Last bool   // the directory of its zone goes, too, if it is empty then
	Lock string // file whose flock keeps two from making room at once
}

// Verb names the step.
func (Remove) Verb() string { return "bundle.remove" }

// Undo is nil: what it removes cannot be brought back.
func (Remove) Undo() any { return nil }

// Explain is the file.
func (s Remove) Explain() []host.Line {
	lines := []host.Line{host.RemoveLine(s.File)}
	if s.Last {
		lines = append(lines, host.RemoveLine(path.Dir(s.File)))
	}
	return lines
}

// Do removes it.
func (s Remove) Do(ctx context.Context, h host.Host) error {
	lock, err := h.Files().Lock(ctx, s.Lock, host.LockExclusive)
	if err != nil {
		return fmt.Errorf("remove bundle %s: %w", IDOf(s.File), err)
	}
	defer lock.Unlock()
	if err := h.Files().Remove(s.File); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove bundle %s: %w", IDOf(s.File), err)
	}
	if s.Last {
		_ = h.Files().Remove(path.Dir(s.File)) // where another has come meanwhile, it stays
	}
	return nil
}

// Oldest picks the bundles of one place that are too many for so many bytes, the oldest first.
func Oldest(ofPlace []Bundle, most int64) (remove []Bundle) {
	total := int64(0)
	for _, b := range ofPlace {
		total += b.Size
	}
	for _, b := range ofPlace {
		if total <= most {
			break
		}
		remove = append(remove, b)
		total -= b.Size
	}
	return remove
}
