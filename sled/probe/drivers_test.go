package probe

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A command as the code builds it: word is one that only the sled or a setting tells, words
// are any number of them.
const (
	word  = "*"
	words = "…"
)

// Each query that the code can send is one of a recording's questions, or is left out for a
// reason; and each question is one that the code sends.
func TestQuestionsAreWhatDriversSend(t *testing.T) {
	sent := queries(t)
	if len(sent) < 30 {
		t.Fatalf("only %d queries are found in the code: %v", len(sent), sent)
	}
	open, spare := left(), asked()
	for _, q := range Questions() {
		line := q.Command.Shell()
		if !slices.ContainsFunc(sent, func(s string) bool {
			_, shape, _ := strings.Cut(s, ": ")
			return shape[0] != word[0] && fits(shape, line)
		}) && spare[line] == "" {
			t.Errorf("no driver sends %s", line)
		}
	}
	for _, s := range sent {
		_, shape, _ := strings.Cut(s, ": ")
		found := shape[0] != word[0] && slices.ContainsFunc(Questions(), func(q Question) bool { return fits(shape, q.Command.Shell()) })
		switch {
		case found && open[s] != "":
			t.Errorf("%s is left out, and a question", s)
		case !found && open[s] == "":
			t.Errorf("a recording has no %s", s)
		}
		delete(open, s)
	}
	for s := range open {
		t.Errorf("nothing sends %s", s)
	}
}

// fits says whether a command is of a shape.
func fits(shape, line string) bool { return fit(strings.Fields(shape), strings.Fields(line)) }

func fit(shape, line []string) bool {
	switch {
	case len(shape) == 0:
		return len(line) == 0
	case shape[0] == words:
		return fit(shape[1:], line) || len(line) > 0 && fit(shape, line[1:])
	case len(line) == 0:
		return false
	}
	return (shape[0] == word || shape[0] == line[0]) && fit(shape[1:], line[1:])
}

// A shape that begins as a question is no question.
func TestFits(t *testing.T) {
	for shape, want := range map[string]bool{
		"zfs get * … x": true, "zfs get -Hp x": true, "zfs get -Hp": false, "zfs get -Hp x y": false, "zfs … y": false, "* … *": true,
	} {
		if fits(shape, "zfs get -Hp x") != want {
			t.Errorf("%s: want %v", shape, want)
		}
	}
}

// queries are the shapes of the read-only commands that the packages below commands send,
// behind the package's name.
func queries(t *testing.T) []string {
	found := map[string]bool{}
	for _, top := range []string{"agent", "engine", "host", "illumos", "peer", "propolis", "sled", "vnic", "zfs", "zone"} {
		err := filepath.WalkDir("../../"+top, func(dir string, d fs.DirEntry, err error) error {
			name := strings.TrimPrefix(filepath.ToSlash(dir), "../../")
			if err != nil || !d.IsDir() || name == "sled/probe" || d.Name() == "testdata" {
				return err
			}
			for _, shape := range sourceOf(t, dir).sent() {
				found[name+": "+shape] = true
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// source is a package as its files have it.
type source struct {
	functions map[string]*ast.FuncDecl
	constants map[string]ast.Expr
}

func sourceOf(t *testing.T, dir string) source {
	s := source{functions: map[string]*ast.FuncDecl{}, constants: map[string]ast.Expr{}}
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			s.declare(name, d)
		}
	}
	return s
}

func (s source) declare(file string, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		name := d.Name.Name
		if d.Recv != nil { // of no interest by its name
			name = fmt.Sprint(file, " ", d.Pos(), " ", name)
		}
		s.functions[name] = d
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok && d.Tok == token.CONST && len(v.Values) == len(v.Names) {
				for i, n := range v.Names {
					s.constants[n.Name] = v.Values[i]
				}
			}
		}
	}
}

// builds says whether a function returns a command.
func builds(f *ast.FuncDecl) bool {
	return f.Recv == nil && f.Type.Results != nil && isCommand(f.Type.Results.List[0].Type)
}

func isCommand(e ast.Expr) bool {
	selector, ok := e.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != "Command" {
		return false
	}
	pkg, ok := selector.X.(*ast.Ident)
	return ok && pkg.Name == "host"
}

// sent are the read-only commands that functions have which build none for others: what they
// make of what those return.
func (s source) sent() (shapes []string) {
	for _, f := range s.functions {
		if builds(f) || f.Body == nil {
			continue
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok || !s.makes(e) {
				return true
			}
			for _, v := range s.eval(e, nil) {
				if v.readOnly && len(v.list) > 0 {
					shapes = append(shapes, strings.Join(v.list, " "))
				}
			}
			_, called := e.(*ast.CallExpr)
			return !called
		})
	}
	return shapes
}

// makes says whether an expression is a command: written out, of a function, or the function.
func (s source) makes(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.CompositeLit:
		return isCommand(e.Type)
	case *ast.CallExpr:
		return s.makes(e.Fun)
	case *ast.Ident:
		f := s.functions[e.Name]
		return f != nil && builds(f)
	}
	return false
}

// value is what an expression may be: a word, a list of words or a command.
type value struct {
	list     []string
	readOnly bool // of a command
}

func one(text string) []value { return []value{{list: []string{text}}} }

// scope are the values of a function's parameters and variables.
type scope map[string]value

// eval are the values that an expression may have.
func (s source) eval(e ast.Expr, in scope) []value {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil {
			return one(text)
		}
		return one(e.Value)
	case *ast.ParenExpr:
		return s.eval(e.X, in)
	case *ast.Ident:
		return s.name(e.Name, in)
	case *ast.BinaryExpr:
		return product(s.eval(e.X, in), s.eval(e.Y, in), func(a, b value) value {
			return value{list: []string{strings.Join(a.list, "") + strings.Join(b.list, "")}}
		})
	case *ast.CompositeLit:
		if isCommand(e.Type) {
			return s.command(e, in)
		}
		return s.join(e.Elts, in)
	case *ast.CallExpr:
		return s.call(e, in)
	case *ast.SliceExpr:
		return one(words)
	case *ast.SelectorExpr:
		if c, ok := e.X.(*ast.Ident); ok && e.Sel.Name == "Args" && in[c.Name].readOnly {
			return []value{{}} // they are set last
		}
	}
	return one(word)
}

func (s source) name(name string, in scope) []value {
	if v, ok := in[name]; ok {
		return []value{v}
	}
	switch constant := s.constants[name]; {
	case constant != nil:
		return s.eval(constant, nil)
	case name == "nil":
		return []value{{}}
	case s.functions[name] != nil && builds(s.functions[name]): // called by who gets it
		return s.invoke(s.functions[name], nil)
	}
	return one(word)
}

// join are the values of some expressions one behind the other.
func (s source) join(all []ast.Expr, in scope) []value {
	joined := []value{{}}
	for _, e := range all {
		joined = product(joined, s.eval(e, in), func(a, b value) value { return value{list: slices.Concat(a.list, b.list)} })
	}
	return joined
}

func product(a, b []value, with func(a, b value) value) (all []value) {
	for _, x := range a {
		for _, y := range b {
			all = append(all, with(x, y))
		}
	}
	return all
}

// command is a host.Command that is written out.
func (s source) command(e *ast.CompositeLit, in scope) []value {
	all := []value{{list: []string{}}}
	for _, key := range []string{"Program", "Args", "ReadOnly"} {
		i := slices.IndexFunc(e.Elts, func(x ast.Expr) bool { return x.(*ast.KeyValueExpr).Key.(*ast.Ident).Name == key })
		if i < 0 {
			continue
		}
		all = product(all, s.eval(e.Elts[i].(*ast.KeyValueExpr).Value, in), func(a, b value) value {
			if key == "ReadOnly" {
				return value{list: a.list, readOnly: b.list[0] == word} // true is a name that no scope has
			}
			return value{list: slices.Concat(a.list, b.list)}
		})
	}
	return all
}

// call is append, a function of the package, or what is not known.
func (s source) call(e *ast.CallExpr, in scope) []value {
	if name, ok := e.Fun.(*ast.Ident); ok && name.Name == "append" {
		return s.join(e.Args, in)
	} else if ok && s.functions[name.Name] != nil {
		alternatives := [][]value{nil}
		for _, a := range e.Args {
			var next [][]value
			for _, sofar := range alternatives {
				for _, v := range s.eval(a, in) {
					next = append(next, append(slices.Clone(sofar), v))
				}
			}
			alternatives = next
		}
		var all []value
		for _, args := range alternatives {
			all = append(all, s.invoke(s.functions[name.Name], args)...)
		}
		return all
	}
	return one(word)
}

// invoke are the values that a function may return. An argument that is not given may be
// anything.
func (s source) invoke(f *ast.FuncDecl, args []value) []value {
	in, n := scope{}, 0
	for _, field := range f.Type.Params.List {
		_, variadic := field.Type.(*ast.Ellipsis)
		_, list := field.Type.(*ast.ArrayType)
		for _, name := range field.Names {
			switch {
			case variadic && n <= len(args) && args != nil:
				rest := value{list: []string{}}
				for _, a := range args[n:] {
					rest.list = append(rest.list, a.list...)
				}
				in[name.Name] = rest
			case n < len(args) && !(list && slices.Equal(args[n].list, []string{word})):
				in[name.Name] = args[n]
			case variadic || list:
				in[name.Name] = value{list: []string{words}}
			default:
				in[name.Name] = value{list: []string{word}}
			}
			n++
		}
	}
	returned, _ := s.run(f.Body.List, in)
	return returned
}

// run are the values that statements may return, and the scopes in which they may go on.
func (s source) run(all []ast.Stmt, in scope) (returned []value, on []scope) {
	on = []scope{in}
	for _, statement := range all {
		var next []scope
		for _, now := range on {
			values, scopes := s.step(statement, now)
			returned, next = append(returned, values...), append(next, scopes...)
		}
		on = next
	}
	return returned, on
}

// step is run of one statement. Of a condition both is possible, and of a loop one turn and
// none.
func (s source) step(statement ast.Stmt, in scope) (returned []value, on []scope) {
	branches, always := []ast.Stmt(nil), false
	switch x := statement.(type) {
	case *ast.ReturnStmt:
		return s.eval(x.Results[0], in), nil
	case *ast.AssignStmt:
		return nil, s.assign(x, in)
	case *ast.BlockStmt:
		return s.run(x.List, in)
	case *ast.IfStmt:
		branches = []ast.Stmt{x.Body}
		if x.Else != nil {
			branches, always = append(branches, x.Else), true
		}
	case *ast.SwitchStmt:
		for _, c := range x.Body.List {
			branches = append(branches, &ast.BlockStmt{List: c.(*ast.CaseClause).Body})
		}
	case *ast.RangeStmt:
		branches = []ast.Stmt{x.Body}
	}
	if !always {
		on = append(on, in)
	}
	for _, b := range branches {
		values, scopes := s.step(b, maps.Clone(in))
		returned, on = append(returned, values...), append(on, scopes...)
	}
	return returned, on
}

// assign sets a variable, or a field of a command.
func (s source) assign(x *ast.AssignStmt, in scope) (on []scope) {
	if len(x.Lhs) != 1 {
		return []scope{in}
	}
	for _, v := range s.eval(x.Rhs[0], in) {
		now := maps.Clone(in)
		switch left := x.Lhs[0].(type) {
		case *ast.Ident:
			if x.Tok == token.ADD_ASSIGN {
				v.list = []string{strings.Join(in[left.Name].list, "") + strings.Join(v.list, "")}
			}
			now[left.Name] = v
		case *ast.SelectorExpr:
			if name, ok := left.X.(*ast.Ident); ok { // Program, then Args
				c := now[name.Name]
				c.list = slices.Concat(c.list, v.list)
				now[name.Name] = c
			}
		}
		on = append(on, now)
	}
	return on
}
