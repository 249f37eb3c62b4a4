// Package template fills in templates of Go's text/template, over data that has no methods.
//
// text/template itself calls methods by the names that stand in a template, so that a program
// which executes one keeps every exported method of every type that it has: sledctl would be
// larger by an eighth, and each of its commands would start later. This package reads templates
// with Go's own text/template/parse, and does with them what text/template does: tests
// compare both.
package template

import (
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/sledctl/sledctl/host/fault"
)

// Error is what is wrong with a template, or with what it asks of the data.
type Error struct {
	Line  int    // of the template, from 1
	Field string // that the data has not; empty: it is something else
	Err   error
}

// Error says where, and what.
func (e *Error) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Kind is that of what was given: the template is wrong.
func (*Error) Kind() fault.Kind { return fault.Usage }

// Unwrap gives the reason: ErrIndex, or that of the writer, for example.
func (e *Error) Unwrap() error { return e.Err }

// Execute writes a template, filled in. Data consists of structs, lists, texts, numbers and truth
// values. Errors are *Errors.
func Execute(out io.Writer, text string, data any) (err error) {
	s := &state{out: out, text: text, functions: functions()}
	names := map[string]any{}
	for name := range s.functions {
		names[name] = name
	}
	if s.trees, err = parse.Parse("", text, "", "", names); err != nil {
		return unreadable(err)
	}
	defer func() {
		switch failed := recover().(type) {
		case nil:
		case *Error:
			err = failed
		default:
			panic(failed)
		}
	}()
	s.run("", reflect.ValueOf(data))
	return nil
}

// unreadable is an error of the parser, which says the line only in its text.
func unreadable(err error) error {
	e := &Error{Err: err}
	if found := regexp.MustCompile(`^template: :(\d+)`).FindStringSubmatch(err.Error()); found != nil {
		e.Line, _ = strconv.Atoi(found[1]) // digits
	}
	return e
}

// maxDepth is how often templates call each other at most, as in text/template.
const maxDepth = 100000

// state is a template that is being executed. It panics with an *Error.
type state struct {
	out       io.Writer
	text      string
	trees     map[string]*parse.Tree
	functions map[string]function
	variables []variable
	depth     int
}

type variable struct {
	name  string
	value reflect.Value
}

// flow says how a list ended.
type flow int

const (
	onward flow = iota
	broken
	continued
)

func (s *state) fail(at parse.Node, form string, args ...any) {
	s.failed(at, "", fmt.Errorf(form, args...))
}

func (s *state) failed(at parse.Node, field string, err error) {
	panic(&Error{Line: 1 + strings.Count(s.text[:at.Position()], "\n"), Field: field, Err: err})
}

// run executes a template by its name. It sees none of the caller's variables.
func (s *state) run(name string, dot reflect.Value) {
	callers := s.variables
	s.variables = []variable{{"$", dot}}
	s.walk(dot, s.trees[name].Root)
	s.variables = callers
}

func (s *state) walk(dot reflect.Value, node parse.Node) flow {
	switch node := node.(type) {
	case *parse.ActionNode:
		if value := s.pipeline(dot, node.Pipe); len(node.Pipe.Decl) == 0 {
			s.write(node, printed(value))
		}
	case *parse.TextNode:
		s.write(node, string(node.Text))
	case *parse.ListNode:
		for _, n := range node.Nodes {
			if end := s.walk(dot, n); end != onward {
				return end
			}
		}
	case *parse.IfNode:
		return s.choose(dot, node.BranchNode, false)
	case *parse.WithNode:
		return s.choose(dot, node.BranchNode, true)
	case *parse.RangeNode:
		return s.each(dot, node)
	case *parse.TemplateNode:
		s.call(dot, node)
	case *parse.BreakNode:
		return broken
	case *parse.ContinueNode:
		return continued
	}
	return onward
}

func (s *state) write(at parse.Node, text string) {
	if _, err := s.out.Write([]byte(text)); err != nil {
		s.failed(at, "", err)
	}
}

// choose is if, and with, whose list has the value as its dot.
func (s *state) choose(dot reflect.Value, node parse.BranchNode, with bool) (end flow) {
	mark := len(s.variables)
	switch value := s.pipeline(dot, node.Pipe); {
	case truth(value) && with:
		end = s.walk(value, node.List)
	case truth(value):
		end = s.walk(dot, node.List)
	case node.ElseList != nil:
		end = s.walk(dot, node.ElseList)
	}
	s.variables = s.variables[:mark]
	return end
}

// each is range.
func (s *state) each(dot reflect.Value, node *parse.RangeNode) (end flow) {
	mark := len(s.variables)
	value := s.pipeline(dot, node.Pipe)
	body, some := len(s.variables), false
	once := func(index, elem reflect.Value) bool {
		some = true
		s.assign(node.Pipe, index, elem)
		ended := s.walk(elem, node.List)
		s.variables = s.variables[:body]
		return ended != broken
	}
	switch {
	case !value.IsValid():
	case value.CanInt() || value.CanUint():
		if len(node.Pipe.Decl) > 1 {
			s.fail(node, "a number has no second variable")
		}
		value.Seq()(func(n reflect.Value) bool { return once(reflect.Value{}, n) })
	case value.Kind() == reflect.Slice:
		for i := range value.Len() {
			if !once(reflect.ValueOf(i), value.Index(i)) {
				break
			}
		}
	default:
		s.fail(node, "range over %s", value.Type())
	}
	if !some && node.ElseList != nil {
		end = s.walk(dot, node.ElseList)
	}
	if s.variables = s.variables[:mark]; end == broken {
		return onward // as text/template has it: a break in the list of else ends no more than that
	}
	return end
}

// assign gives the variables of a range what it has come to: one has the element, of two the
// first has the index.
func (s *state) assign(pipe *parse.PipeNode, index, elem reflect.Value) {
	values := []reflect.Value{index, elem}
	if len(pipe.Decl) == 1 {
		values = values[1:]
	}
	for i, v := range pipe.Decl {
		if pipe.IsAssign {
			s.set(v.Ident[0], values[i])
		} else {
			s.variables[len(s.variables)-len(pipe.Decl)+i].value = values[i]
		}
	}
}

func (s *state) call(dot reflect.Value, node *parse.TemplateNode) {
	if s.trees[node.Name] == nil {
		s.fail(node, "no template has the name")
	}
	if s.depth == maxDepth {
		s.fail(node, "templates call each other too often")
	}
	s.depth++
	s.run(node.Name, s.pipeline(dot, node.Pipe))
	s.depth--
}

func (s *state) set(name string, value reflect.Value) {
	s.variables[s.find(name)].value = value
}

// find is where the innermost variable of a name is. The parser takes no name that there is not.
func (s *state) find(name string) int {
	for i, v := range slices.Backward(s.variables) {
		if v.name == name {
			return i
		}
	}
	return 0
}

// truth reports whether a value is one that if takes for true.
func truth(value reflect.Value) bool {
	if !value.IsValid() {
		return false
	}
	is, _ := template.IsTrue(value.Interface())
	return is
}

func printed(value reflect.Value) string {
	if !value.IsValid() {
		return "<no value>"
	}
	return fmt.Sprint(value.Interface())
}
