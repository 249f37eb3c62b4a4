package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands"
)

// absence is a sentence that begins with what the program lacks, and lacking is
// what it says it lacks: they are looked up in the tree of commands.
var (
	absence = regexp.MustCompile(`(?:There (?:is|are)|sledctl (?:has|offers)|It (?:has|offers)) (?:no|not yet an?) [^.\n|]*`)
	lacking = regexp.MustCompile(`\b(?:no|not yet an?) ([A-Za-z-]+(?: (?:API|migration))?)`)
)

// known are things that a command offers under another word.
var known = map[string]string{"http api": "agent", "api": "agent", "daemon": "agent", "migration": "migrate", "live migration": "migrate"}

// TestNoPageDeniesWhatTheProgramDoes holds each claim of absence against the
// commands that there are: by their names, and by what they are also called.
func TestNoPageDeniesWhatTheProgramDoes(t *testing.T) {
	commanded := map[string]string{}
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for _, word := range strings.Split(c.Name(), "-") {
			commanded[word] = c.CommandPath()
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(commands.Root())
	pages, err := filepath.Glob("../*.md")
	if err != nil || len(pages) < 10 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	for _, page := range append(pages, "../../README.md") {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, claim := range denied(string(data), commanded) {
			t.Errorf("%s: %s", filepath.Base(page), claim)
		}
	}
	if claims := denied("There is no migration and no HTTP API.", commanded); len(claims) != 2 {
		t.Errorf("a page that denies both is held to %q", claims)
	}
}

// denied are the claims of absence in a text that a command contradicts.
func denied(text string, commanded map[string]string) []string {
	var claims []string
	for _, sentence := range absence.FindAllString(text, -1) {
		for _, found := range lacking.FindAllStringSubmatch(sentence, -1) {
			word := strings.ToLower(found[1])
			if also, ok := known[word]; ok {
				word = also
			}
			if by, ok := commanded[word]; ok {
				claims = append(claims, "says «"+sentence+"», but there is "+by)
			}
		}
	}
	return claims
}
