// Command fuzz runs every fuzz test of the module for a while, and fails where
// one finds something or tries too few inputs to find anything:
//
//	go run ./test/fuzz [-time 10s] [-least 1000] [PACKAGE ...]
//
// Inputs are hardly minimised. What the tests run counts coverage differently
// each time (maps, libraries), and go test would spend its minute on one input.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

func main() {
	each := flag.Duration("time", 10*time.Second, "how long each test is run")
	least := flag.Int("least", 1000, "how many inputs it must have tried by then")
	flag.Parse()
	packages := flag.Args()
	if len(packages) == 0 {
		packages = []string{"./..."}
	}
	tests, err := list(packages)
	if err == nil && len(tests) == 0 {
		err = fmt.Errorf("no fuzz test in %s", strings.Join(packages, " "))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		os.Exit(1)
	}
	failed := 0
	for _, t := range tests {
		tried, err := t.run(*each)
		switch {
		case err != nil:
			failed++
			fmt.Printf("FAIL %-50s %7d inputs: %v\n", t, tried, err)
		case tried < *least:
			failed++
			fmt.Printf("FAIL %-50s %7d inputs: want at least %d\n", t, tried, *least)
		default:
			fmt.Printf("ok   %-50s %7d inputs\n", t, tried)
		}
	}
	fmt.Printf("%d passed, %d failed\n", len(tests)-failed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}

// test is one fuzz test.
type test struct{ pkg, name string }

func (t test) String() string { return t.pkg + "." + t.name }

// list finds the fuzz tests of packages.
func list(packages []string) ([]test, error) {
	out, err := exec.Command("go", append([]string{"test", "-list", "^Fuzz"}, packages...)...).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	var tests []test
	var names []string
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 1 && strings.HasPrefix(words[0], "Fuzz"):
			names = append(names, words[0])
		case len(words) > 1 && words[0] == "ok":
			for _, name := range names {
				tests = append(tests, test{words[1], name})
			}
			names = nil
		}
	}
	return tests, nil
}

// tried is where go test says how many inputs it has run.
var tried = regexp.MustCompile(`execs: ([0-9]+)`)

// run runs the test, and counts the inputs.
func (t test) run(each time.Duration) (inputs int, err error) {
	cmd := exec.Command("go", "test", "-run", "^$", "-fuzz", "^"+t.name+"$", "-fuzztime", each.String(), "-fuzzminimizetime", "10x", t.pkg)
	out, err := cmd.CombinedOutput()
	lines := bufio.NewScanner(strings.NewReader(string(out)))
	var last []string
	for lines.Scan() {
		if found := tried.FindStringSubmatch(lines.Text()); found != nil {
			inputs, _ = strconv.Atoi(found[1])
			continue
		}
		last = append(last, lines.Text())
	}
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, strings.Join(last, "\n"))
	}
	return inputs, err
}
