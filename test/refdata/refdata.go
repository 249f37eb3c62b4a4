// Package refdata finds what real systems have published and printed: the
// documents and samples that lie in a directory named shared next to the module, if
// someone has put them there. They are no part of it. It is for tests.
package refdata

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Testing is what a test is to File and Files.
type Testing interface {
	Helper()
	Skip(args ...any)
	Fatal(args ...any)
}

// Read reads the one file that a pattern matches (path.Match, below shared), for
// a test whose working directory is in the module: fs.ErrNotExist if there is
// none.
func Read(pattern string) ([]byte, error) {
	dir, err := shared()
	if err != nil {
		return nil, err
	}
	names, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
	switch {
	case err != nil:
		return nil, err
	case len(names) == 0:
		return nil, fmt.Errorf("shared/%s: %w", pattern, fs.ErrNotExist)
	case len(names) > 1:
		return nil, fmt.Errorf("shared/%s: there are %d", pattern, len(names))
	}
	return os.ReadFile(names[0])
}

// File is Read; without the file, the test is skipped.
func File(t Testing, pattern string) []byte {
	t.Helper()
	data, err := Read(pattern)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Files are all files that match the patterns, by their last names. Without that
// directory, the test is skipped; with it, each pattern must match.
func Files(t Testing, patterns ...string) map[string][]byte {
	t.Helper()
	dir, err := shared()
	if err != nil {
		t.Skip(err)
	}
	all := map[string][]byte{}
	for _, p := range patterns {
		names, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(p)))
		if err != nil || len(names) == 0 {
			t.Fatal(fmt.Sprintf("nothing matches %s (%v)", p, err))
		}
		for _, name := range names {
			if all[filepath.Base(name)], err = os.ReadFile(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	return all
}

// shared is the directory; fs.ErrNotExist if there is none.
func shared() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if filepath.Dir(dir) == dir {
			return "", fmt.Errorf("no module around the working directory: %w", fs.ErrNotExist)
		}
		dir = filepath.Dir(dir)
	}
	dir = filepath.Join(filepath.Dir(dir), "shared")
	_, err = os.Stat(dir)
	return dir, err
}
