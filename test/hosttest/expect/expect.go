// Package expect says what a test of file systems expects of one.
package expect

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"testing"

	"github.com/sledctl/sledctl/host"
)

// OK ends the test if there is an error.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Fails checks the kind of an error, and that it is a *fs.PathError.
func Fails(t testing.TB, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("got %v, want %v", err, kind)
	}
	if _, is := errors.AsType[*fs.PathError](err); !is {
		t.Errorf("%v is no *fs.PathError", err)
	}
}

// Put writes a file as a program does: open, write, close.
func Put(t testing.TB, f host.Files, name, text string) {
	t.Helper()
	file, err := f.Open(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	OK(t, err)
	_, err = io.WriteString(file, text)
	OK(t, err)
	OK(t, file.Close())
}

// Holds checks what is in a file.
func Holds(t testing.TB, f host.Files, name, want string) {
	t.Helper()
	got, err := host.ReadFile(f, name)
	if err != nil {
		t.Error(err)
	} else if string(got) != want {
		t.Errorf("%s holds %q, want %q", name, got, want)
	}
}
