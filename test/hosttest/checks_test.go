package hosttest_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"testing"

	"github.com/sledctl/sledctl/host"
)

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fails checks the kind of an error, and that it is a *fs.PathError.
func fails(t *testing.T, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("got %v, want %v", err, kind)
	}
	if _, is := errors.AsType[*fs.PathError](err); !is {
		t.Errorf("%v is no *fs.PathError", err)
	}
}

func put(t *testing.T, f host.Files, name, text string) {
	t.Helper()
	file, err := f.Open(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	ok(t, err)
	_, err = io.WriteString(file, text)
	ok(t, err)
	ok(t, file.Close())
}

func holds(t *testing.T, f host.Files, name, want string) {
	t.Helper()
	got, err := host.ReadFile(f, name)
	if err != nil {
		t.Error(err)
	} else if string(got) != want {
		t.Errorf("%s holds %q, want %q", name, got, want)
	}
}
