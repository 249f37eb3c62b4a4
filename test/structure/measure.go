package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// module is the import path that the code's own packages begin with.
const module = "github.com/sledctl/sledctl/"

// code is what was measured of one state of the code.
type code struct {
	files     []file
	functions []function          // of the product, tests apart
	imports   map[string][]string // product package → the product packages that it imports
	errors    []int               // words of each error's text in the product
}

// file is one Go file.
type file struct {
	name  string // from the top: "zone/boot.go"
	lines int
	test  bool // a test, or apparatus of tests
}

func (f file) folder() string { return path.Dir(f.name) }

// function is one function or method of the product.
type function struct {
	file, name string
	receiver   string // "zone.Boot", or nothing
	lines      int
	cyclomatic int // 1 and one more for each if, for, case, && and ||
}

// measure reads Go files, by their names from the top. What is below testdata
// or belongs to another module has been left out by the caller.
func measure(files map[string][]byte) (code, error) {
	c := code{imports: map[string][]string{}}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f := file{name: name, lines: bytes.Count(files[name], []byte("\n")), test: isTest(name)}
		c.files = append(c.files, f)
		if f.test {
			continue
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, name, files[name], parser.SkipObjectResolution)
		if err != nil {
			return c, err
		}
		c.add(f, set, tree)
	}
	return c, nil
}

// isTest reports whether a file is no part of the program: a test, or below
// test/, where the apparatus of tests lives.
func isTest(name string) bool {
	return strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "test/") || strings.Contains(name, "test/")
}

func (c *code) add(f file, set *token.FileSet, tree *ast.File) {
	for _, spec := range tree.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		if own, ok := strings.CutPrefix(imported, module); ok && !slices.Contains(c.imports[f.folder()], own) {
			c.imports[f.folder()] = append(c.imports[f.folder()], own)
		}
	}
	for _, d := range tree.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok {
			c.functions = append(c.functions, function{
				file: f.name, name: fn.Name.Name, receiver: receiver(f.folder(), fn),
				lines:      set.Position(fn.End()).Line - set.Position(fn.Pos()).Line + 1,
				cyclomatic: cyclomatic(fn),
			})
		}
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if text, ok := errorText(call); ok {
				c.errors = append(c.errors, len(strings.Fields(text)))
			}
		}
		return true
	})
}

func receiver(folder string, fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return ""
	}
	of := fn.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if generic, ok := of.(*ast.IndexExpr); ok {
		of = generic.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return folder + "." + name.Name
	}
	return ""
}

func cyclomatic(fn *ast.FuncDecl) int {
	n := 1
	ast.Inspect(fn, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if node.List != nil {
				n++
			}
		case *ast.CommClause:
			if node.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if node.Op == token.LAND || node.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

// errorText returns the format of fmt.Errorf, or the text of errors.New.
func errorText(call *ast.CallExpr) (string, bool) {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 {
		return "", false
	}
	pkg, ok := selector.X.(*ast.Ident)
	if !ok || pkg.Name+"."+selector.Sel.Name != "fmt.Errorf" && pkg.Name+"."+selector.Sel.Name != "errors.New" {
		return "", false
	}
	literal, ok := call.Args[0].(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(literal.Value)
	return text, err == nil
}

// arrows are the imports between the folders at the top.
func (c code) arrows() map[string]map[string]bool {
	out := map[string]map[string]bool{}
	for from, all := range c.imports {
		for _, to := range all {
			a, b := top(from), top(to)
			if out[a] == nil {
				out[a] = map[string]bool{}
			}
			if a != b {
				out[a][b] = true
			}
		}
	}
	return out
}

func top(folder string) string {
	first, _, _ := strings.Cut(folder, "/")
	return first
}

// layers is the number of folders on the longest way down the arrows. Folders
// that import each other, by way of different packages, are counted once.
func layers(arrows map[string]map[string]bool) int {
	deepest := 0
	var down func(at string, seen []string) int
	known := map[string]int{}
	down = func(at string, seen []string) int {
		if n, ok := known[at]; ok {
			return n
		}
		most := 0
		for next := range arrows[at] {
			if !slices.Contains(seen, next) {
				most = max(most, down(next, append(slices.Clone(seen), next)))
			}
		}
		known[at] = most + 1
		return most + 1
	}
	for _, at := range slices.Sorted(maps.Keys(arrows)) {
		deepest = max(deepest, down(at, []string{at}))
	}
	return deepest
}
