package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/commands"
)

const settingsIntro = `
# The configuration

A setting is taken from the first of these that has it:

1. the environment: ~SLEDCTL_SECTION_KEY~; an empty variable counts as not set;
2. the configuration file: TOML, ~/etc/sledctl/config.toml~ or the one that ~--config~ or ~SLEDCTL_CONFIG~ names;
3. the default.

A key that is not listed here is an error that names the key, its line, and the nearest key that there is. Sizes are powers of two, as
in zfs(8): ~2G~. Lists are arrays in the file, and words between commas in the environment.

These variables are read beside the settings: ~SLEDCTL_HOST~ (as ~--host~), ~SLEDCTL_CONFIG~ (as ~--config~), ~NO_COLOR~ and ~TERM~, and
~XDG_STATE_HOME~ for the place of the simulated sled. A simulated sled never reads the configuration of the machine that it runs on: it has its own
~/etc/sledctl/config.toml~, below its own root.
`

// settingsPage lists the settings by section, and shows a file.
func settingsPage(settings []commands.Setting, example string) []byte {
	var out bytes.Buffer
	out.WriteString(made + strings.ReplaceAll(settingsIntro, "~", "`"))
	section := ""
	for _, s := range settings {
		of, _, _ := strings.Cut(s.Name, ".")
		if of != section {
			section = of
			fmt.Fprintf(&out, "\n## %s\n\n| key | default | meaning |\n|---|---|---|\n", section)
		}
		fmt.Fprintf(&out, "| `%s`<br>`%s` | %s | %s |\n", s.Name, s.Variable, code(s.Default), cell(s.Doc))
	}
	fmt.Fprintf(&out, "\n## A file\n\nThis is what a fresh simulated sled is given:\n\n```toml\n%s```\n", example)
	return out.Bytes()
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

// cell is text that a table cannot mistake for its own.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
