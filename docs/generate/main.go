// Generate writes the part of the manual that the program itself knows: one
// page per command, below commands/, the settings, as config.md, and the document
// of what the agent answers, as agent-openapi.json; and, from the comments of the code
// below the working directory, what is not verified, as unverified.md.
//
// usage: go run ./docs/generate DIR
// usage: go run ./docs/generate -man YYYY-MM-DD DIR
//
// With -man it writes manual pages of that date instead.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sledctl/sledctl/agent"
	"github.com/sledctl/sledctl/commands"
)

func main() {
	date := flag.String("man", "", "write manual pages of the date `YYYY-MM-DD`")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: generate [-man YYYY-MM-DD] DIR")
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := write(flag.Arg(0), *date); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func write(dir, date string) error {
	if date == "" {
		return generate(dir, ".")
	}
	at, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return err
	}
	return manuals(dir, at)
}

// generate writes the pages from the program and from the code below root.
func generate(dir, root string) error {
	files, err := sources(root)
	if err != nil {
		return err
	}
	unverified, err := unverifiedPage(files, introduction)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "unverified.md"), unverified, 0o644); err != nil {
		return err
	}
	settings := settingsPage(commands.Settings(), commands.SimulatedConfig())
	if err := os.WriteFile(filepath.Join(dir, "config.md"), settings, 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "privileges.md"), privilegesPage(), 0o644); err != nil {
		return err
	}
	described, err := agent.OpenAPI()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "agent-openapi.json"), append(described, '\n'), 0o644); err != nil {
		return err
	}
	return replace(filepath.Join(dir, "commands"), pages(commands.Root()))
}

// replace makes the pages all that there are: one whose command is gone goes
// too, and one that is as it was is not touched.
func replace(dir string, pages map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	found, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err != nil {
		return err
	}
	for _, name := range found {
		if _, ok := pages[filepath.Base(name)]; ok {
			continue
		}
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	for name, page := range pages {
		name = filepath.Join(dir, name)
		if old, err := os.ReadFile(name); err == nil && bytes.Equal(old, page) {
			continue
		}
		if err := os.WriteFile(name, page, 0o644); err != nil {
			return err
		}
	}
	return nil
}
