package template

import (
	"reflect"
	"strings"
	"text/template/parse"
)

// pipeline is the value of a pipeline. The variables that it declares stay.
func (s *state) pipeline(dot reflect.Value, pipe *parse.PipeNode) reflect.Value {
	if pipe == nil {
		return reflect.Value{}
	}
	var piped []reflect.Value // what the command before has made
	for _, command := range pipe.Cmds {
		piped = []reflect.Value{s.command(dot, command, piped)}
	}
	for _, v := range pipe.Decl {
		if pipe.IsAssign {
			s.set(v.Ident[0], piped[0])
		} else {
			s.variables = append(s.variables, variable{v.Ident[0], piped[0]})
		}
	}
	return piped[0]
}

// command is the value of a function and its arguments, or of one operand.
func (s *state) command(dot reflect.Value, command *parse.CommandNode, piped []reflect.Value) reflect.Value {
	first := command.Args[0]
	if name, ok := first.(*parse.IdentifierNode); ok {
		return s.function(dot, name, command.Args[1:], piped)
	}
	if len(command.Args)+len(piped) > 1 {
		s.fail(first, "what is no function has arguments")
	}
	if first.Type() == parse.NodeNil {
		s.fail(first, "nil is no command")
	}
	return s.operand(dot, first)
}

func (s *state) operand(dot reflect.Value, node parse.Node) reflect.Value {
	switch node := node.(type) {
	case *parse.DotNode:
		return dot
	case *parse.FieldNode:
		return s.fields(dot, node, node.Ident)
	case *parse.VariableNode:
		return s.fields(s.variables[s.find(node.Ident[0])].value, node, node.Ident[1:])
	case *parse.ChainNode:
		if node.Node.Type() == parse.NodeNil {
			s.fail(node, "nil has no fields")
		}
		return s.fields(s.operand(dot, node.Node), node, node.Field)
	case *parse.PipeNode:
		return s.pipeline(dot, node)
	case *parse.IdentifierNode:
		return s.function(dot, node, nil, nil)
	case *parse.BoolNode:
		return reflect.ValueOf(node.True)
	case *parse.StringNode:
		return reflect.ValueOf(node.Text)
	case *parse.NumberNode:
		return s.number(node)
	}
	return reflect.Value{} // nil
}

// number has the type that Go gives a constant.
func (s *state) number(node *parse.NumberNode) reflect.Value {
	hex := len(node.Text) > 2 && node.Text[0] == '0' && (node.Text[1] == 'x' || node.Text[1] == 'X') && !strings.ContainsAny(node.Text, "pP")
	switch {
	case node.IsComplex:
		return reflect.ValueOf(node.Complex128)
	case node.IsFloat && !hex && node.Text[0] != '\'' && strings.ContainsAny(node.Text, ".eEpP"):
		return reflect.ValueOf(node.Float64)
	case !node.IsInt:
		s.fail(node, "a number is too large")
	}
	return reflect.ValueOf(int(node.Int64))
}

// fields follows names from a value.
func (s *state) fields(value reflect.Value, at parse.Node, names []string) reflect.Value {
	for _, name := range names {
		if !value.IsValid() {
			s.fail(at, "nothing has a field")
		}
		if value.Kind() != reflect.Struct || !value.FieldByName(name).IsValid() {
			s.failed(at, name, errField)
		}
		value = value.FieldByName(name)
	}
	return value
}

// function calls one. Of the arguments of and and or, none is looked at behind the one that
// decides.
func (s *state) function(dot reflect.Value, node *parse.IdentifierNode, args []parse.Node, piped []reflect.Value) reflect.Value {
	f := s.functions[node.Ident]
	if given := len(args) + len(piped); given < f.least || f.most > 0 && given > f.most {
		s.fail(node, "wrong number of arguments for %s", node.Ident)
	}
	var values []reflect.Value
	for _, arg := range args {
		value := s.operand(dot, arg)
		if f.decides != nil && f.decides(value) {
			return value
		}
		values = append(values, value)
	}
	value, err := f.do(append(values, piped...))
	if err != nil {
		s.failed(node, "", err)
	}
	return value
}
