// Package voice holds what people read, in the code and on the pages, to plain
// English: none of the phrases in phrases.txt may occur.
package voice

import (
	_ "embed"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

//go:embed phrases.txt
var phrases string

// TestNoPhraseIsLeft counts the lines of each folder at the top in which a phrase
// occurs, once for each phrase. A folder that still has some may not get more, and
// one that has fewer lowers its number in left.
func TestNoPhraseIsLeft(t *testing.T) {
	all := expressions(t)
	found, first := map[string]int{}, map[string]string{}
	err := filepath.WalkDir("../..", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		from, err := filepath.Rel("../..", name)
		if err != nil {
			return err
		}
		from = filepath.ToSlash(from)
		if d.IsDir() {
			return skipped(from)
		}
		if !isRead(from) {
			return nil
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		folder, _, _ := strings.Cut(from, "/")
		for _, hit := range hits(all, textOf(from, data)) {
			found[folder]++
			if first[folder] == "" {
				first[folder] = from + ": " + hit
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	may := left()
	for _, folder := range slices.Sorted(mapsKeys(found, may)) {
		switch n := found[folder]; {
		case n > may[folder]:
			t.Errorf("%s has %d phrases, and may have %d: %s", folder, n, may[folder], first[folder])
		case n < may[folder]:
			t.Errorf("%s has %d phrases left: lower its number from %d", folder, n, may[folder])
		}
	}
}

func mapsKeys(of ...map[string]int) func(func(string) bool) {
	keys := map[string]bool{}
	for _, m := range of {
		for k := range m {
			keys[k] = true
		}
	}
	return func(yield func(string) bool) {
		for k := range keys {
			if !yield(k) {
				return
			}
		}
	}
}

func expressions(t *testing.T) (all []*regexp.Regexp) {
	t.Helper()
	for line := range strings.Lines(phrases) {
		re, err := regexp.Compile(strings.TrimSuffix(line, "\n"))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, re)
	}
	return all
}

func skipped(dir string) error {
	base := filepath.Base(dir)
	if dir != "." && (strings.HasPrefix(base, ".") || base == "testdata" || dir == "bin" || dir == "dist") {
		return fs.SkipDir
	}
	return nil
}

// isRead reports whether a file is one that people read.
func isRead(name string) bool {
	return strings.HasSuffix(name, ".go") || strings.HasPrefix(name, "docs/") || name == "README.md" || name == "CHANGELOG.md"
}

// textOf is what of a file is sledctl's own text: in the simulator, literals quote
// real commands.
func textOf(name string, data []byte) string {
	if !strings.HasPrefix(name, "sim/") {
		return string(data)
	}
	out := slices.Clone(data)
	var s scanner.Scanner
	set := token.NewFileSet()
	file := set.AddFile(name, set.Base(), len(data))
	s.Init(file, data, nil, scanner.ScanComments)
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return string(out)
		}
		if tok == token.STRING {
			for i := range len(literal) {
				if at := file.Offset(pos) + i; at < len(out) && out[at] != '\n' {
					out[at] = '_'
				}
			}
		}
	}
}

func hits(all []*regexp.Regexp, text string) (out []string) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		for _, re := range all {
			if m := re.FindString(line); m != "" {
				out = append(out, fmt.Sprintf("line %d: %q", n, m))
			}
		}
	}
	return out
}

func TestAPhraseIsFound(t *testing.T) {
	const source = "package sim\n\n// Whoever waits for who calls it, waits.\nconst text = `whoever`\n"
	want := []string{`line 3: "Whoever"`, `line 3: "for who calls"`}
	if diff := cmp.Diff(want, hits(expressions(t), textOf("sim/a.go", []byte(source)))); diff != "" {
		t.Error(diff)
	}
	if got := hits(expressions(t), textOf("zone/a.go", []byte(source))); len(got) != 3 {
		t.Errorf("outside sim: %v", got)
	}
}
