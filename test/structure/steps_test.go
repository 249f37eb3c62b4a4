package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// elsewhere are steps that one package's tests cannot do, and what holds them.
var elsewhere = map[string]string{
	"sled/instance/migration.Send": "it needs two sleds: the scripts of migrations and the kill matrix",
	"sled/moves.SendVolume":        "it needs two sleds: the scripts of migrations and the kill matrix",
	"sled/moves.Hand":              "it needs two sleds: the scripts of migrations and the kill matrix",
}

// Each type that is a step is held to what steps promise: its package's tests name it in
// a file that runs steptest.Conform.
func TestEveryStepConforms(t *testing.T) {
	files, err := read("../..")
	if err != nil {
		t.Fatal(err)
	}
	steps, unheld := stepsOf(files)
	if len(steps) < 50 {
		t.Errorf("only %d steps were found", len(steps))
	}
	for _, name := range unheld {
		if elsewhere[name] == "" {
			t.Errorf("%s is a step, and no case of test/steptest in its package", name)
		}
	}
	for name := range elsewhere {
		if !slices.Contains(unheld, name) {
			t.Errorf("%s is held by test/steptest, or gone: remove the exception", name)
		}
	}
}

// stepsOf are the types that have the methods of a step, and those of them that no test
// gives to the suite.
func stepsOf(files map[string][]byte) (steps, unheld []string) {
	methods, suites := map[string]map[string]bool{}, map[string]string{}
	for name, data := range files {
		switch {
		case strings.HasSuffix(name, "_test.go") && strings.Contains(string(data), "steptest.Conform("):
			suites[path.Dir(name)] += string(data)
		case isTest(name):
		default:
			tree, err := parser.ParseFile(token.NewFileSet(), name, data, parser.SkipObjectResolution)
			if err != nil {
				continue // the compiler says it better
			}
			for _, d := range tree.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
					of := receiver(path.Dir(name), fn)
					if methods[of] == nil {
						methods[of] = map[string]bool{}
					}
					methods[of][fn.Name.Name] = true
				}
			}
		}
	}
	for _, of := range slices.Sorted(maps.Keys(methods)) {
		if m := methods[of]; !m["Verb"] || !m["Explain"] || !m["Do"] || !m["Undo"] {
			continue
		}
		steps = append(steps, of)
		literal := regexp.MustCompile(`\b` + strings.TrimPrefix(path.Ext(of), ".") + `[{(]`)
		if !literal.MatchString(suites[strings.TrimSuffix(of, path.Ext(of))]) {
			unheld = append(unheld, of)
		}
	}
	return steps, unheld
}

func TestAStepThatDoesNotConformIsNoticed(t *testing.T) {
	source := "package zone\n"
	for _, of := range []string{"Boot", "Halt"} {
		for _, method := range []string{"Verb", "Explain", "Do", "Undo"} {
			source += "func (" + of + ") " + method + "() {}\n"
		}
	}
	_, unheld := stepsOf(map[string][]byte{
		"zone/step.go":      []byte(source + "func (Zone) Do() {}\n"),
		"zone/step_test.go": []byte("package zone\nfunc f() { steptest.Conform(t, steptest.Case{Step: Boot{}}) }\n"),
	})
	if !slices.Equal(unheld, []string{"zone.Halt"}) {
		t.Errorf("%v", unheld)
	}
}
