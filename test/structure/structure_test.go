package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The limits of the code. A folder, file or function that is over one stands in
// exceptions, with the figure that it has there: it may shrink, not grow, and an
// exception that is not needed any longer fails the test.
const (
	mostAtTheTop   = 24  // entries, those that begin with a dot apart
	mostFiles      = 25  // Go files of a folder, tests apart
	mostLines      = 450 // of a file, tests and all
	mostLinesOfSim = 300 // of a product file of the simulator
	mostCyclomatic = 20  // of a product function; the simulator's commands have as many cases as the real ones
)

func TestTheCodeStaysWithinItsLimits(t *testing.T) {
	files, err := read("../..")
	if err != nil {
		t.Fatal(err)
	}
	c, err := measure(files)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.files) < 500 || len(c.functions) < 3000 {
		t.Fatalf("only %d files with %d functions were found", len(c.files), len(c.functions))
	}
	for of := range mostMethods {
		if c.methods()[of] == 0 {
			t.Errorf("there is no %s any longer", of)
		}
	}
	entries, err := os.ReadDir("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range judge(over(c, entriesOf(entries)), exceptions()) {
		t.Error(fault)
	}
}

func entriesOf(all []os.DirEntry) int {
	n := 0
	for _, e := range all {
		if !strings.HasPrefix(e.Name(), ".") && e.Name() != "bin" && e.Name() != "dist" { // what make makes
			n++
		}
	}
	return n
}

// mostMethods are the limits of those receivers that everything used to end up in.
var mostMethods = map[string]int{"commands/cli.Env": 60, "sled/instance.Settings": 40}

// over returns what is above a limit, and its figure.
func over(c code, entries int) map[string]int {
	out := map[string]int{}
	exceed := func(what string, figure, limit int) {
		if figure > limit {
			out[what] = figure
		}
	}
	exceed("entries at the top", entries, mostAtTheTop)
	folders := map[string]int{}
	for _, f := range c.files {
		limit := mostLines
		if !f.test && top(f.name) == "sim" {
			limit = mostLinesOfSim
		}
		exceed("lines of "+f.name, f.lines, limit)
		if !f.test {
			folders[f.folder()]++
		}
	}
	for folder, n := range folders {
		exceed("files in "+folder, n, mostFiles)
	}
	for of, limit := range mostMethods {
		exceed("methods of "+of, c.methods()[of], limit)
	}
	for _, f := range c.withoutSim() {
		exceed("paths through "+f.name+" in "+f.file, f.cyclomatic, mostCyclomatic)
	}
	return out
}

// judge compares what is over a limit with what may be.
func judge(found, allowed map[string]int) []string {
	var out []string
	for what, figure := range found {
		switch most, ok := allowed[what]; {
		case !ok:
			out = append(out, fmt.Sprintf("%s: %d is too many", what, figure))
		case figure > most:
			out = append(out, fmt.Sprintf("%s: %d, and it had %d when it was excepted", what, figure, most))
		}
	}
	for what := range allowed {
		if _, ok := found[what]; !ok {
			out = append(out, what+": is within the limit by now: remove the exception")
		}
	}
	slices.Sort(out)
	return out
}

func TestALimitIsNoticed(t *testing.T) {
	source := "package zone\n\nimport \"github.com/sledctl/sledctl/host\"\n\n" +
		"func (b *Boot) judge(n int) {\n" + strings.Repeat("\tif n > 1 && n < 9 {\n\t}\n", 10) + "}\n"
	files := map[string][]byte{
		"zone/boot.go":        []byte(source),
		"sim/tools/zone.go":   []byte("package tools\n" + strings.Repeat("\n", 300)),
		"commands/cli/env.go": []byte("package cli\n"),
		"zone/boot_test.go":   []byte("package zone\n" + strings.Repeat("\n", 450)),
	}
	for i := range 61 {
		files["commands/cli/env.go"] = fmt.Appendf(files["commands/cli/env.go"], "func (e *Env) F%d() {}\n", i)
	}
	for i := range mostFiles + 1 {
		files[fmt.Sprintf("vnic/f%d.go", i)] = []byte("package vnic\n")
	}
	c, err := measure(files)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"entries at the top: 25 is too many",
		"files in vnic: 26 is too many",
		"files in zfs: is within the limit by now: remove the exception",
		"lines of sim/tools/zone.go: 301 is too many",
		"lines of zone/boot_test.go: 451, and it had 450 when it was excepted",
		"methods of commands/cli.Env: 61 is too many",
		"paths through judge in zone/boot.go: 21 is too many",
	}
	if diff := cmp.Diff(want, judge(over(c, 25), map[string]int{"lines of zone/boot_test.go": 450, "files in zfs": 30})); diff != "" {
		t.Error(diff)
	}
	if name, n := c.largestReceiver(); name != "commands/cli.Env" || n != 61 {
		t.Errorf("the largest receiver is %s with %d", name, n)
	}
	if n := count(c.arrows()); n != 1 || layers(c.arrows()) != 2 {
		t.Errorf("%d imports in %d layers", n, layers(c.arrows()))
	}
}

func TestTheShareOfSimThatIsReached(t *testing.T) {
	profile := "mode: set\n" +
		module + "sim/tools/zfs.go:1.1,2.2 3 0\n" +
		module + "sim/tools/zfs.go:1.1,2.2 3 1\n" +
		module + "sim/tools/zfs.go:3.1,4.2 1 0\n" +
		module + "zfs/list.go:3.1,4.2 9 0\n"
	if got := share(profile); got != "75.0 %" {
		t.Error(got)
	}
}
