// Package description reads what an operator asks of an instance: flags, a
// document, and a spec or config of its machine.
package description

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/documents"
)

// described joins flags and document, the flags over the document.
func described(streams *terminal.Streams, f Flags) (instance.Wanted, error) {
	own, err := f.cloudInit(streams)
	if f.File == "" || err != nil {
		return own, err
	}
	data, err := cli.ReadDocument(streams, "--file", f.File)
	if err != nil {
		return instance.Wanted{}, err
	}
	below, err := documents.ParseDocument(data, terminal.ParseSize)
	if err != nil {
		return instance.Wanted{}, ErrorOf(f.File, err)
	}
	if below, err = readCloudInit(streams, f.File, below); err != nil {
		return instance.Wanted{}, err
	}
	return own.Over(below), nil
}

// Written is what flags and document describe, with the text of the machine where
// that is a whole, and what it is called.
func Written(streams *terminal.Streams, f Flags) (instance.Wanted, error) {
	w, err := described(streams, f)
	if err != nil {
		return instance.Wanted{}, err
	}
	file := f.Spec
	if file == "" && f.File != "" {
		file = relativeTo(f.File, w.MachineFile)
	}
	switch {
	case file == "-" && f.File == "-":
		return instance.Wanted{}, &cli.UsageError{Text: "--file and --spec cannot both be standard input"}
	case file != "":
		w.MachineFile = file
		w.MachineText, err = cli.ReadDocument(streams, "--spec", file)
	case w.MachineText != nil:
		w.MachineFile = "spec of " + f.File
	}
	return w, err
}

// Wanted is what flags and document describe, with the machine where that is a
// whole.
func Wanted(ctx context.Context, e *cli.Env, f Flags) (instance.Wanted, error) {
	w, err := Written(e.Streams, f)
	if err != nil {
		return instance.Wanted{}, err
	}
	WarnOfUserData(e.Progress, w)
	w, err = Complete(ctx, e, w)
	if w.Machine != nil {
		warnOfSpec(e.Progress, w.Machine.File, *w.Machine)
	}
	return w, err
}

// relativeTo returns the path of a file that a document names. A relative path starts
// at the document's directory.
func relativeTo(document, name string) string {
	if name == "" || filepath.IsAbs(name) || document == "-" {
		return name
	}
	return filepath.Join(filepath.Dir(document), name)
}

// ErrorOf names the file, and the nearest key for an unknown one.
func ErrorOf(name string, err error) error {
	d, ok := errors.AsType[*documents.DocumentError](err)
	if !ok {
		return fmt.Errorf("%s: %w", name, err)
	}
	e := &cli.UsageError{Text: name + ": " + d.Error()}
	if near := naming.Nearest(cli.LastKey(d.Key), d.Known); near != "" {
		e.Advice = "did you mean: " + near
	} else if len(d.Known) > 0 {
		e.Advice = "use one of the known keys: " + cli.OrWords(d.Known)
	}
	return e
}
