package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands"
)

// TestEveryLinkOfTheManualLeadsSomewhere follows the links of all pages,
// written by hand or by us.
func TestEveryLinkOfTheManualLeadsSomewhere(t *testing.T) {
	dir := t.TempDir()
	docs := filepath.Join(dir, "docs")
	if err := os.CopyFS(docs, os.DirFS("..")); err != nil {
		t.Fatal(err)
	}
	if err := generate(docs, "../.."); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"README.md", "CHANGELOG.md", "LICENSE"} {
		data, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	link := regexp.MustCompile(`\]\(([^)#]+)(#[^)]*)?\)`)
	links := 0
	err := filepath.WalkDir(dir, func(name string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".md" {
			return err
		}
		data, err := os.ReadFile(name)
		for _, found := range link.FindAllStringSubmatch(string(data), -1) {
			if strings.Contains(found[1], "://") {
				continue
			}
			links++
			if _, err := os.Stat(filepath.Join(filepath.Dir(name), found[1])); err != nil {
				t.Errorf("%s leads to %s, which does not exist", filepath.Base(name), found[1])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if links < 20 {
		t.Errorf("only %d links found", links)
	}
}

// TestTheFirstPageStaysShort keeps README.md within what is read at one sitting: what
// does not fit has a page of its own.
func TestTheFirstPageStaysShort(t *testing.T) {
	data, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(data), "\n"); lines > 160 {
		t.Errorf("README.md has %d lines, want at most 160", lines)
	}
}

// TestEveryCommandIsExplained holds for each command that it has a sentence
// and, if it does something, an example.
func TestEveryCommandIsExplained(t *testing.T) {
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Short == "" {
			t.Errorf("%s has no sentence", cmd.CommandPath())
		}
		if !cmd.HasSubCommands() && cmd.Runnable() && cmd.Example == "" {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		for _, c := range shown(cmd) {
			visit(c)
		}
	}
	visit(commands.Root())
}

func TestAPageWhoseCommandIsGoneGoesToo(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"gone.md": "old", "same.md": "same", "notes.txt": "mine"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := replace(dir, map[string][]byte{"same.md": []byte("same"), "new.md": []byte("new")}); err != nil {
		t.Fatal(err)
	}
	var names []string
	found, err := os.ReadDir(dir)
	for _, f := range found {
		names = append(names, f.Name())
	}
	if diff := cmp.Diff([]string{"new.md", "notes.txt", "same.md"}, names); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestColumnsOfALongTextStay(t *testing.T) {
	got := prose("First words,\nmore words.\n\n  in use    an instance has it\n            still\n\nLast.")
	want := "\nFirst words,\nmore words.\n\n    in use    an instance has it\n              still\n\nLast.\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestEveryModuleIsExplained compares docs/dependencies.md with each go.mod.
func TestEveryModuleIsExplained(t *testing.T) {
	explained := firstColumn(t, filepath.Join("..", "dependencies.md"))
	var required, direct []string
	for _, file := range []string{"go.mod", "test/tools/go.mod", "fleet/go.mod", "fleet/tools/go.mod", "fleet/e2e/kube/go.mod"} {
		data, err := os.ReadFile(filepath.Join("..", "..", file))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			words := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
			if len(words) < 2 || !strings.HasPrefix(words[1], "v") {
				continue
			}
			required = append(required, words[0])
			if len(words) == 2 {
				direct = append(direct, words[0])
			}
		}
	}
	for _, module := range direct {
		if !slices.Contains(explained, module) {
			t.Errorf("docs/dependencies.md does not tell what %s is for", module)
		}
	}
	for _, module := range explained {
		if !slices.Contains(required, module) {
			t.Errorf("docs/dependencies.md explains %s, which is not required", module)
		}
	}
}

// firstColumn lists the modules that open the rows of a page's tables.
func firstColumn(t *testing.T, page string) []string {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var modules []string
	for line := range strings.Lines(string(data)) {
		cells := strings.Split(line, "|")
		if len(cells) > 2 && strings.Contains(cells[1], ".") {
			modules = append(modules, strings.TrimSpace(cells[1]))
		}
	}
	if len(modules) == 0 {
		t.Fatalf("%s explains nothing", page)
	}
	return modules
}
