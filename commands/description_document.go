package commands

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/documents"
)

// described joins flags and document, the flags over the document.
func described(streams *terminal.Streams, f specFlags) (instance.Wanted, error) {
	if f.file == "" {
		return f.wanted, nil
	}
	data, err := readDocument(streams, "--file", f.file)
	if err != nil {
		return instance.Wanted{}, err
	}
	below, err := documents.ParseDocument(data, terminal.ParseSize)
	if err != nil {
		return instance.Wanted{}, documentError(f.file, err)
	}
	return f.wanted.Over(below), nil
}

// written is what flags and document describe, with the text of the machine where
// that is a whole, and what it is called.
func written(streams *terminal.Streams, f specFlags) (instance.Wanted, error) {
	w, err := described(streams, f)
	if err != nil {
		return instance.Wanted{}, err
	}
	file := f.spec
	if file == "" && f.file != "" {
		file = beside(f.file, w.MachineFile)
	}
	switch {
	case file == "-" && f.file == "-":
		return instance.Wanted{}, &usageError{text: "--file and --spec cannot both be standard input"}
	case file != "":
		w.MachineFile = file
		w.MachineText, err = readDocument(streams, "--spec", file)
	case w.MachineText != nil:
		w.MachineFile = "spec of " + f.file
	}
	return w, err
}

// wantedBy is what flags and document describe, with the machine where that is a
// whole.
func wantedBy(e *Env, f specFlags) (instance.Wanted, error) {
	w, err := written(e.Streams, f)
	if err != nil {
		return instance.Wanted{}, err
	}
	w, err = withMachine(e, w)
	if w.Machine != nil {
		warnOfSpec(e.progress, w.Machine.File, *w.Machine)
	}
	return w, err
}

// beside is a file that a document names: its place is that of the document.
func beside(document, name string) string {
	if name == "" || filepath.IsAbs(name) || document == "-" {
		return name
	}
	return filepath.Join(filepath.Dir(document), name)
}

// documentError names the file, and the nearest key for an unknown one.
func documentError(name string, err error) error {
	d, ok := errors.AsType[*documents.DocumentError](err)
	if !ok {
		return fmt.Errorf("%s: %w", name, err)
	}
	e := &usageError{text: name + ": " + d.Error()}
	if near := terminal.Nearest(lastKey(d.Key), d.Known); near != "" {
		e.hint = "did you mean: " + near
	} else if len(d.Known) > 0 {
		e.hint = "known here: " + orWords(d.Known)
	}
	return e
}
