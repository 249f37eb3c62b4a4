package secrets

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/sledctl/sledctl/host"
)

// keepSecrets writes a file of secrets, which must not be there.
type keepSecrets struct {
	File, Name string
	data       []byte
}

// Verb names the step.
func (keepSecrets) Verb() string { return "secret.keep" }

// Undo removes it.
func (s keepSecrets) Undo() any { return Drop{Files: []string{s.File}} }

// Needs is nothing.
func (keepSecrets) Needs() []string { return nil }

// Explain says what is written, and shows nothing of it.
func (s keepSecrets) Explain() []host.Line {
	return []host.Line{host.MkdirLine(path.Dir(s.File), secretDirMode), host.SecretLine(s.File, s.what())}
}

func (s keepSecrets) what() string { return "the secrets of " + s.Name }

// Do writes it, so that it outlives a power cut.
func (s keepSecrets) Do(_ context.Context, h host.Host) error {
	files, dir := h.Files(), path.Dir(s.File)
	err := host.MkdirAll(files, dir, secretDirMode)
	if err == nil {
		err = files.SyncDir(path.Dir(dir))
	}
	if err == nil {
		err = host.WriteSecret(files, s.File, s.data, s.what())
	}
	if err == nil {
		err = files.SyncDir(dir)
	}
	if err != nil {
		return fmt.Errorf("keep %s in %s: %w", s.what(), s.File, err)
	}
	return nil
}

// secretDirMode is that of a directory that only root may look into.
const secretDirMode fs.FileMode = 0o700

// Drop removes files of secrets.
type Drop struct{ Files []string }

// Verb names the step.
func (Drop) Verb() string { return "secret.drop" }

// Undo is nil.
func (Drop) Undo() any { return nil }

// Needs is nothing.
func (Drop) Needs() []string { return nil }

// Explain is what is overwritten and removed.
func (s Drop) Explain() (lines []host.Line) {
	for _, file := range s.Files {
		lines = append(lines, host.WipeLines(file)...)
	}
	return lines
}

// Do removes them. One that is gone is as it should be.
func (s Drop) Do(_ context.Context, h host.Host) error {
	var failed error
	for _, file := range s.Files {
		if err := host.WipeSecret(h.Files(), file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, fmt.Errorf("remove the secrets in %s: %w", file, err))
		}
	}
	return failed
}
