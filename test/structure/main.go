// Structure prints how the code is built: a table of packages, layers, sizes
// and shares, as docs/architecture.md has it.
//
//	go run ./test/structure                     # of the code here
//	go run ./test/structure -before 11c88b6     # next to that of a commit
//	go run ./test/structure -folders            # and the lines of each folder
//
// How much of sim/ the product's tests reach takes minutes to measure, and is
// in the table where -reached names a profile of go test -coverprofile.
package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "structure:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, args []string) error {
	flags := flag.NewFlagSet("structure", flag.ContinueOnError)
	before := flags.String("before", "", "a commit to compare with")
	reached := flags.String("reached", "", "a coverage profile of sim/ by the product's tests")
	folders := flags.Bool("folders", false, "print the lines of each folder too")
	if err := flags.Parse(args); err != nil {
		return err
	}
	here, err := read(".")
	if err != nil {
		return err
	}
	now, err := measure(here)
	if err != nil {
		return err
	}
	columns := []column{{"here", now, ""}}
	if *before != "" {
		then, err := archived(*before)
		if err != nil {
			return err
		}
		was, err := measure(then)
		if err != nil {
			return err
		}
		columns = []column{{*before, was, ""}, columns[0]}
	}
	if *reached != "" {
		profile, err := os.ReadFile(*reached)
		if err != nil {
			return err
		}
		columns[len(columns)-1].reached = share(string(profile))
	}
	table(w, columns)
	if *folders {
		sizes(w, now)
	}
	return nil
}

// ours reports whether a file belongs to the code that is measured.
func ours(name string) bool {
	for _, part := range strings.Split(name, "/") {
		if part == "testdata" || strings.HasPrefix(part, ".") || strings.HasPrefix(part, "_") {
			return false
		}
	}
	return strings.HasSuffix(name, ".go")
}

// read returns the Go files below dir, nested modules apart.
func read(dir string) (map[string][]byte, error) {
	out := map[string][]byte{}
	return out, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil && name != dir {
				return fs.SkipDir
			}
			return nil
		}
		from, err := filepath.Rel(dir, name)
		if err != nil || !ours(filepath.ToSlash(from)) {
			return err
		}
		out[filepath.ToSlash(from)], err = os.ReadFile(name)
		return err
	})
}

// archived returns the Go files of a commit.
func archived(commit string) (map[string][]byte, error) {
	var stderr bytes.Buffer
	git := exec.Command("git", "archive", "--format=tar", commit)
	git.Stderr = &stderr
	data, err := git.Output()
	if err != nil {
		return nil, fmt.Errorf("git archive %s: %w: %s", commit, err, stderr.String())
	}
	out := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if ours(h.Name) {
			if out[h.Name], err = io.ReadAll(r); err != nil {
				return nil, err
			}
		}
	}
}
