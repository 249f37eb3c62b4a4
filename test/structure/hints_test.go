package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A hint starts with a verb, and a command that it names comes at its end: the reader
// sees what the command is for before it is typed.
func TestEachHintStartsWithAVerb(t *testing.T) {
	files, err := read("../..")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if isTest(name) || top(name) == "sim" || top(name) == "test" || !strings.HasSuffix(name, ".go") {
			continue
		}
		hints, err := hintsIn(name, files[name])
		if err != nil {
			t.Fatal(err)
		}
		found += len(hints)
		for _, h := range hints {
			if !startsWithVerb(h) {
				t.Errorf("%s: hint %q does not start with a verb", name, h)
			}
			if commandInside(h) {
				t.Errorf("%s: hint %q names a command in its middle", name, h)
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d hints were found", found)
	}
}

// startsWithVerb reports whether a hint starts with one of the verbs that hints start
// with. A hint with a further one adds it here.
func startsWithVerb(hint string) bool {
	first, _, _ := strings.Cut(hint, " ")
	return slices.Contains(strings.Fields(`
		to add ask bring choose correct describe find fix give import install keep leave put reboot
		remove run set stop take upgrade use wait
		did`), strings.Trim(first, ":")) // "did you mean"
}

// command is a command of sledctl as a hint names it.
var command = regexp.MustCompile(`sledctl (agent|base|bootstrap|help|history|instance|ledger|nics|propolis|reap|sim [a-rt-z]|storage|trace|vnic|zone)`)

// commandInside reports whether a hint names a command anywhere but at its end, behind
// what it is for and a colon. (sledctl sim shell is a place to be in.)
func commandInside(hint string) bool {
	for part := range strings.SplitSeq(hint, "; ") {
		if at := command.FindStringIndex(part); at != nil && at[0] > 0 && !strings.HasSuffix(part[:at[0]], ": ") && !strings.HasSuffix(part[:at[0]], ": pfexec ") {
			return true
		}
	}
	return false
}

// hintsIn returns the beginning of each hint of a file: what functions called Hint, or
// something that ends so, return, what is set as the Advice of an error, and what is set
// as the Hint of a report, here or by a function of the file that it calls. A hint that
// begins with the path of a command begins with "sledctl".
func hintsIn(name string, source []byte) (hints []string, err error) {
	tree, err := parser.ParseFile(token.NewFileSet(), name, source, 0)
	if err != nil {
		return nil, err
	}
	makers := makersOfHints(tree)
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Body != nil && (strings.HasSuffix(n.Name.Name, "Hint") || slices.Contains(makers, n.Name.Name)) {
				hints = append(hints, beginnings(n.Body)...)
				return false
			}
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Advice" {
				hints = append(hints, beginnings(n.Value)...)
			}
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				if isHint(left) && i < len(n.Rhs) {
					hints = append(hints, beginnings(n.Rhs[i])...)
				}
			}
		}
		return true
	})
	return hints, nil
}

func isHint(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "hint"
	case *ast.SelectorExpr:
		return e.Sel.Name == "Advice" || e.Sel.Name == "Hint"
	}
	return false
}

// makersOfHints returns the names of the functions that a file calls to set the Hint of
// a report, and of hintOf, which one file calls and another one has.
func makersOfHints(tree *ast.File) []string {
	names := []string{"hintOf"}
	ast.Inspect(tree, func(n ast.Node) bool {
		set, ok := n.(*ast.AssignStmt)
		if !ok || !slices.ContainsFunc(set.Lhs, isHint) {
			return true
		}
		for _, right := range set.Rhs {
			ast.Inspect(right, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					switch f := call.Fun.(type) {
					case *ast.Ident:
						names = append(names, f.Name)
					case *ast.SelectorExpr:
						names = append(names, f.Sel.Name)
					}
				}
				return true
			})
		}
		return true
	})
	return names
}

// beginnings returns the first word and more of each text below a node.
func beginnings(n ast.Node) (all []string) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.Op == token.ADD {
				all = append(all, beginnings(n.X)...) // what follows is its middle
				return false
			}
		case *ast.CallExpr:
			f, ok := n.Fun.(*ast.SelectorExpr)
			switch {
			case ok && f.Sel.Name == "CommandPath":
				all = append(all, "sledctl")
				return false
			case ok && f.Sel.Name == "Sprintf":
				all = append(all, beginnings(n.Args[0])...)
				return false
			case ok && f.Sel.Name != "Or":
				return false // a text that something else is told
			}
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING && strings.Trim(text, "; ") != "" && !strings.HasPrefix(text, "; ") {
				all = append(all, text)
			}
		}
		return true
	})
	return all
}

func TestAHintWithoutAVerbIsFound(t *testing.T) {
	const source = `package p
func (e *one) Hint() string { return "to see it, run: sledctl get " + e.name }
func (e *two) Hint() string {
	known := "--flag lets it"
	return known + "; or not"
}
func exitHint(n int) string {
	if n == 1 { return fmt.Sprintf("sledctl get %d", n) }
	return map[int]string{2: "run it"}[n]
}
var a = &UsageError{Text: "no", Advice: cmd.CommandPath() + " --help"}
func do() { e.Advice = "` + "`sledctl`" + ` does it" }
func of() { d.Hint = joined("; ", hintOf(err), d.keptIn()) }
func (d three) keptIn() string { return "the rest is in " + d.file }
`
	hints, err := hintsIn("p.go", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	var bad []string
	for _, h := range hints {
		if !startsWithVerb(h) {
			bad = append(bad, h)
		}
	}
	want := []string{"--flag lets it", "sledctl get %d", "sledctl", "`sledctl` does it", "the rest is in "}
	for hint, inside := range map[string]bool{
		"to list them, run: sledctl zone list": false, "to list them, sledctl zone list": true,
		"use sledctl zone list; or not": true, "to see it, run: sledctl trace; to list them, run: sledctl zone list": false,
	} {
		if commandInside(hint) != inside {
			t.Errorf("%q has a command inside: %v", hint, !inside)
		}
	}
	if len(hints) != 7 || fmt.Sprint(bad) != fmt.Sprint(want) {
		t.Errorf("%q of %q, want %q", bad, hints, want)
	}
}
