package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// column is one state of the code in the table.
type column struct {
	title   string
	code    code
	reached string // the share of sim/ that the product's tests reach, if it was measured
}

// table prints one row for each figure, as Markdown.
func table(w io.Writer, columns []column) {
	row := func(what string, cell func(column) string) {
		fmt.Fprintf(w, "| %s |", what)
		for _, c := range columns {
			fmt.Fprintf(w, " %s |", cell(c))
		}
		fmt.Fprintln(w)
	}
	row("", func(c column) string { return c.title })
	row("---", func(column) string { return "---" })
	row("folders with code at the top", func(c column) string { return strconv.Itoa(len(c.code.topFolders())) })
	row("layers of them", func(c column) string { return strconv.Itoa(layers(c.code.arrows())) })
	row("imports between them", func(c column) string { return strconv.Itoa(count(c.code.arrows())) })
	row("packages", func(c column) string { return strconv.Itoa(len(c.code.packages())) })
	row("lines of the product without sim", func(c column) string {
		return strconv.Itoa(c.code.lines(func(f file) bool { return !f.test && top(f.name) != "sim" }))
	})
	row("lines of sim", func(c column) string {
		return strconv.Itoa(c.code.lines(func(f file) bool { return !f.test && top(f.name) == "sim" }))
	})
	row("of sim, reached by the product's tests", func(c column) string { return orDash(c.reached) })
	row("lines of tests", func(c column) string { return strconv.Itoa(c.code.lines(func(f file) bool { return f.test })) })
	row("longest function", func(c column) string {
		f := slices.MaxFunc(c.code.functions, func(a, b function) int { return a.lines - b.lines })
		return fmt.Sprintf("%d lines, `%s` in %s", f.lines, f.name, f.file)
	})
	row("highest cyclomatic complexity, without sim", func(c column) string {
		f := slices.MaxFunc(c.code.withoutSim(), func(a, b function) int { return a.cyclomatic - b.cyclomatic })
		return fmt.Sprintf("%d, `%s` in %s", f.cyclomatic, f.name, f.file)
	})
	row("methods of the largest receiver", func(c column) string {
		name, n := c.code.largestReceiver()
		return fmt.Sprintf("%d, `%s`", n, name)
	})
	row("most Go files in a folder, tests apart", func(c column) string {
		name, n := c.code.fullestFolder()
		return fmt.Sprintf("%d, %s", n, name)
	})
	row("words of an error, on average", func(c column) string { return c.code.wordsPerError() })
}

func orDash(s string) string {
	if s == "" {
		return "not measured"
	}
	return s
}

// sizes prints the lines of each folder's product code.
func sizes(w io.Writer, c code) {
	lines := map[string]int{}
	for _, f := range c.files {
		if !f.test {
			lines[f.folder()] += f.lines
		}
	}
	fmt.Fprint(w, "\n| folder | lines |\n|---|---|\n")
	for _, folder := range slices.Sorted(maps.Keys(lines)) {
		fmt.Fprintf(w, "| %s | %d |\n", folder, lines[folder])
	}
}

func (c code) lines(of func(file) bool) int {
	n := 0
	for _, f := range c.files {
		if of(f) {
			n += f.lines
		}
	}
	return n
}

// packages are the folders that hold product code.
func (c code) packages() []string {
	set := map[string]bool{}
	for _, f := range c.files {
		if !f.test {
			set[f.folder()] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// topFolders are the folders at the top that hold product code.
func (c code) topFolders() []string {
	set := map[string]bool{}
	for _, p := range c.packages() {
		set[top(p)] = true
	}
	return slices.Sorted(maps.Keys(set))
}

func (c code) withoutSim() []function {
	return slices.DeleteFunc(slices.Clone(c.functions), func(f function) bool { return top(f.file) == "sim" })
}

func (c code) largestReceiver() (string, int) { return most(c.methods()) }

// methods is how many each receiver has.
func (c code) methods() map[string]int {
	all := map[string]int{}
	for _, f := range c.functions {
		if f.receiver != "" {
			all[f.receiver]++
		}
	}
	return all
}

func (c code) fullestFolder() (string, int) {
	files := map[string]int{}
	for _, f := range c.files {
		if !f.test {
			files[f.folder()]++
		}
	}
	return most(files)
}

// most returns the name with the highest number, the first of several.
func most(of map[string]int) (string, int) {
	name, n := "", 0
	for _, k := range slices.Sorted(maps.Keys(of)) {
		if of[k] > n {
			name, n = k, of[k]
		}
	}
	return name, n
}

func (c code) wordsPerError() string {
	sum := 0
	for _, n := range c.errors {
		sum += n
	}
	return fmt.Sprintf("%.1f, in %d errors", float64(sum)/float64(max(1, len(c.errors))), len(c.errors))
}

func count(arrows map[string]map[string]bool) int {
	n := 0
	for _, to := range arrows {
		n += len(to)
	}
	return n
}

// share returns the share of statements below sim/ that a coverage profile has
// as run. A block that several test binaries had is run if one of them ran it.
func share(profile string) string {
	statements, ran := map[string]int{}, map[string]bool{}
	for line := range strings.Lines(profile) {
		fields := strings.Fields(line)
		if len(fields) != 3 || !strings.HasPrefix(fields[0], module+"sim/") {
			continue
		}
		n, _ := strconv.Atoi(fields[1])
		statements[fields[0]] = n
		ran[fields[0]] = ran[fields[0]] || fields[2] != "0"
	}
	all, hit := 0, 0
	for block, n := range statements {
		all += n
		if ran[block] {
			hit += n
		}
	}
	return fmt.Sprintf("%.1f %%", 100*float64(hit)/float64(max(1, all)))
}
