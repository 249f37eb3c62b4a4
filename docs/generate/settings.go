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

1. the environment: ~SLEDCTL_SECTION_KEY~, e.g. ~SLEDCTL_NETWORK_MTU=9000~; an empty variable counts
   as not set;
2. ~/etc/sledctl/config.toml~;
3. ~config.toml~ on an M.2, next to the ledger: ~/pool/int/UUID/config/sledctl/config.toml~;
4. the default.

~sledctl config show~ prints each setting with where it comes from, ~sledctl config check~ whether all of
them are valid, and ~sledctl config check FILE~ a file before it is put in place.

~--config FILE~, or ~SLEDCTL_CONFIG~, replaces both files: sledctl reads neither of them. All files
are TOML, with a section for the first part of a key:

    [network]
    mtu = 9000

A key that is not listed here is an error, which names the key, its line and the nearest known key.
A value out of its bounds is an error, too. Both exit with 2, and nothing is changed.

| value | in the file | in the environment |
|---|---|---|
| list | ~["tank", "rpool"]~ | words between commas: ~tank,rpool~ |
| size | ~"2G"~, or a number of bytes | ~2G~; the units are powers of two, as in zfs(8) |
| time | ~"5m"~ | ~5m~; the units are ~s~, ~m~ and ~h~ |
| true or false | ~true~ | ~true~ |
| name of a link | ~"net0"~: letters, digits, ~_~ and ~.~, a number last, at most 31 bytes | ~net0~ |

These variables are no settings: ~SLEDCTL_HOST~ (as ~--host~), ~SLEDCTL_CONFIG~ (as ~--config~),
~NO_COLOR~, ~TERM~ and ~COLUMNS~ for the terminal, and ~XDG_STATE_HOME~ for the directory of the
simulated sled. A simulated sled never reads the configuration of the computer that it runs on: it
has its own ~/etc/sledctl/config.toml~, below its own root. ~SLEDCTL_HOST_ROOT~ also moves the place
of the files; ~host.root~ in a file does not.

## On a sled whose root forgets

On such a sled ~/etc~ is on a RAM disk, and a file in it is gone after the next boot. To keep the
configuration, copy it to each M.2 after ~sledctl bootstrap~ has prepared them:

    for dir in /pool/int/*/config/sledctl; do cp config.toml "$dir"; done

After a boot, ~sledctl bootstrap~ imports the M.2s, reads the file, and continues with its settings.
Other commands read it once the M.2s are imported. So these settings must be in ~/etc~ of the image
that the sled boots from:

- ~storage.devices~ or ~storage.vdevs~, if the M.2s are in no slots (~storage.slots~);
- the sections ~host~ and ~paths~, which are an error in a file on an M.2.

A setting that you try out in ~/etc~ counts until the next boot.

Both M.2s should have the same file. If they differ, sledctl uses the one that was changed last,
because an M.2 that was missing comes back with an old one. Each command warns of a difference, of a
missing copy and of one that cannot be read, and prints the command that makes them equal; sledctl
copies none by itself. If the only copy cannot be read, that is an error.
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
			fmt.Fprintf(&out, "\n## %s\n\n| key | default | values | meaning |\n|---|---|---|---|\n", section)
		}
		fmt.Fprintf(&out, "| `%s`<br>`%s` | %s | %s; e.g. %s | %s |\n",
			s.Name, s.Variable, code(s.Default), cell(s.Values), cell(code(s.Example)), cell(s.Doc))
	}
	fmt.Fprintf(&out, "\n## A file\n\nThis is the file of a fresh simulated sled:\n\n```toml\n%s```\n", example)
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
