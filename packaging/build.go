package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// native returns the variables of builds for this machine: those of make build, so that the two
// share what was compiled.
func native() []string { return []string{"CGO_ENABLED=0"} }

// build makes the program for a sled from the source in a directory. Version control is
// not asked: what Go would record of it differs between a clone and an unpacked archive.
func build(dir, version string) ([]byte, error) {
	temp, err := os.MkdirTemp("", "packaging")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	name := filepath.Join(temp, "sledctl")
	_, err = command(dir, []string{"GOOS=illumos", "GOARCH=amd64", "CGO_ENABLED=0", "GOFLAGS=", "GOAMD64=v1"},
		"go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid= -X main.version="+version, "-o", name, "./cmd/sledctl")
	if err != nil {
		return nil, err
	}
	program, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return markSolaris(program)
}

// manual makes the pages for man(1), of a date.
func manual(dir string, at time.Time) ([]file, error) {
	temp, err := os.MkdirTemp("", "packaging")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	if _, err := command(dir, native(), "go", "run", "-trimpath", "./docs/generate", "-man", at.Format(time.DateOnly), temp); err != nil {
		return nil, err
	}
	pages, err := readAll(temp)
	if err != nil {
		return nil, err
	}
	if len(pages) == 0 {
		return nil, errors.New("docs/generate wrote no manual pages")
	}
	return pages, nil
}

// readAll reads the files of a directory, for packages in which none is written to.
func readAll(dir string) ([]file, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []file
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, file{e.Name(), 0o444, data})
	}
	return all, nil
}

// completions are the program's scripts for the shells, under the names that each looks
// for.
func completions(dir string) ([]file, error) {
	temp, err := os.MkdirTemp("", "packaging")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	here := filepath.Join(temp, "sledctl")
	if _, err := command(dir, native(), "go", "build", "-trimpath", "-o", here, "./cmd/sledctl"); err != nil {
		return nil, err
	}
	var all []file
	for _, s := range []struct{ shell, name string }{{"bash", "sledctl"}, {"fish", "sledctl.fish"}, {"zsh", "_sledctl"}} {
		script, err := command(dir, nil, here, "completion", s.shell)
		if err != nil {
			return nil, err
		}
		all = append(all, file{s.name, 0o444, script})
	}
	return all, nil
}

// command runs a program in a directory, with further variables, and returns what it
// printed.
func command(dir string, variables []string, words ...string) ([]byte, error) {
	var out, said bytes.Buffer
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &said
	cmd.Env = slices.Concat(os.Environ(), variables)
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", strings.Join(words, " "), err, bytes.TrimSpace(said.Bytes()))
	}
	return out.Bytes(), nil
}
