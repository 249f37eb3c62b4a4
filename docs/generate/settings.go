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
2. ~/etc/sledctl/config.toml~;
3. ~config.toml~ on an M.2, next to the ledger: ~/pool/int/UUID/config/sledctl/config.toml~;
4. the default.

The file that ~--config~ or ~SLEDCTL_CONFIG~ names stands for both files: neither of them is read. Files are TOML.

A key that is not listed here is an error that names the key, its line, and the nearest key that there is. Sizes are powers of two, as
in zfs(8): ~2G~. Lists are arrays in the file, and words between commas in the environment.

These variables are read in addition to the settings: ~SLEDCTL_HOST~ (as ~--host~), ~SLEDCTL_CONFIG~ (as ~--config~), ~NO_COLOR~ and ~TERM~, and
~XDG_STATE_HOME~ for the place of the simulated sled. A simulated sled never reads the configuration of the machine that it runs on: it has its own
~/etc/sledctl/config.toml~, below its own root.

## On a sled whose root forgets

~/etc~ lies on a RAM disk there: what is written to it is gone after the next boot. To keep the file, copy it to each M.2, once they are prepared:

    for dir in /pool/int/*/config/sledctl; do cp config.toml "$dir"; done

After a boot, bootstrap imports the M.2s first, reads the file, and continues with its settings; other commands read it once they are imported. So the M.2s
must be found without it: where they are in no slots (~storage.slots~), ~storage.devices~ or ~storage.vdevs~ must come with the image that the sled boots from, in ~/etc~, and so must the
sections ~host~ and ~paths~, which are an error in a file on an M.2. What is tried out in ~/etc~ counts until the next boot.

Both M.2s should have the same file. Where they differ, the one that was changed last is used: an M.2 that was missing comes back with an old one. Each command warns of it, and of a
copy that is missing or cannot be read, and says how to make them equal; sledctl copies none by itself. Where a copy cannot be read and no other is there, nothing is assumed: that is an error.
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
