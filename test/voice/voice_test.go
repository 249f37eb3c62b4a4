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
	"regexp/syntax"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

//go:embed phrases.txt
var phrases string

func TestNoPhraseIsLeft(t *testing.T) {
	all := expressions(t)
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
		for _, hit := range hits(all, textOf(from, data)) {
			t.Errorf("%s: %s", from, hit)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// expression is one of phrases.txt.
type expression struct {
	*regexp.Regexp
	needs []string // one of them is in whatever it matches, in lower case: quick to look for
}

func (e expression) may(lower string) bool {
	return e.needs == nil || slices.ContainsFunc(e.needs, func(s string) bool { return strings.Contains(lower, s) })
}

func expressions(t *testing.T) (all []expression) {
	t.Helper()
	for line := range strings.Lines(phrases) {
		text := strings.TrimSuffix(line, "\n")
		re, err := regexp.Compile(text)
		if err != nil {
			t.Fatal(err)
		}
		tree, err := syntax.Parse(text, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, expression{re, needs(tree)})
	}
	return all
}

// needs returns literals of which each match has at least one; nil: there are none.
func needs(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		return []string{strings.ToLower(string(re.Rune))}
	case syntax.OpCapture, syntax.OpPlus:
		return needs(re.Sub[0])
	case syntax.OpConcat:
		var best []string
		for _, sub := range re.Sub {
			if n := needs(sub); n != nil && (best == nil || shortest(n) > shortest(best)) {
				best = n
			}
		}
		return best
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			n := needs(sub)
			if n == nil {
				return nil
			}
			all = append(all, n...)
		}
		return all
	}
	return nil
}

func shortest(of []string) int {
	return len(slices.MinFunc(of, func(a, b string) int { return len(a) - len(b) }))
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

func hits(all []expression, text string) (out []string) {
	lower := strings.ToLower(text)
	all = slices.DeleteFunc(slices.Clone(all), func(e expression) bool { return !e.may(lower) })
	n := 0
	for line := range strings.Lines(text) {
		n++
		lower := strings.ToLower(line)
		for _, e := range all {
			if !e.may(lower) {
				continue
			}
			if m := e.FindString(line); m != "" {
				out = append(out, fmt.Sprintf("line %d: %q", n, m))
			}
		}
	}
	return out
}

// The sample is put together here, so that it is no phrase of this file.
func TestAPhraseIsFound(t *testing.T) {
	ever, caller := "ho"+"ever", "for w"+"ho calls"
	source := "package sim\n\n// W" + ever + " waits " + caller + " it, waits.\nconst text = `w" + ever + "`\n"
	want := []string{`line 3: "W` + ever + `"`, `line 3: "` + caller + `"`}
	if diff := cmp.Diff(want, hits(expressions(t), textOf("sim/a.go", []byte(source)))); diff != "" {
		t.Error(diff)
	}
	if got := hits(expressions(t), textOf("zone/a.go", []byte(source))); len(got) != 3 {
		t.Errorf("outside sim: %v", got)
	}
}
