package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands"
)

// made opens every page.
const made = "<!-- make docs writes this page from the program -->\n"

// pages renders a command and all below it, by file name.
func pages(cmd *cobra.Command) map[string][]byte {
	all := map[string][]byte{pageName(cmd): commandPage(cmd)}
	for _, c := range shown(cmd) {
		for name, page := range pages(c) {
			all[name] = page
		}
	}
	return all
}

// shown are the subcommands that the manual has pages of.
func shown(cmd *cobra.Command) []*cobra.Command {
	var all []*cobra.Command
	for _, c := range cmd.Commands() { // sorted by name
		if !c.Hidden && c.Deprecated == "" && c.Name() != "help" {
			all = append(all, c)
		}
	}
	return all
}

func pageName(cmd *cobra.Command) string {
	return strings.ReplaceAll(cmd.CommandPath(), " ", "_") + ".md"
}

func commandPage(cmd *cobra.Command) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s\n# %s\n", made, cmd.CommandPath())
	if !strings.HasPrefix(cmd.Long, cmd.Short) { // else it is said twice
		fmt.Fprintf(&out, "\n%s.\n", cmd.Short)
	}
	if cmd.Runnable() {
		fmt.Fprintf(&out, "\n%s", indented(usage(cmd)))
	}
	if len(cmd.Aliases) > 0 {
		fmt.Fprintf(&out, "\nAlso called `%s`.\n", strings.Join(cmd.Aliases, "`, `"))
	}
	out.WriteString(prose(cmd.Long))
	section(&out, "Commands", commandTable(cmd))
	section(&out, "Flags", indented(unindented(commands.FlagText(cmd.LocalFlags(), commands.PageWidth))))
	section(&out, "Examples", indented(unindented(cmd.Example)))
	section(&out, "See also", seeAlso(cmd))
	return out.Bytes()
}

func section(out *bytes.Buffer, title, body string) {
	if body != "" {
		fmt.Fprintf(out, "\n## %s\n\n%s", title, body)
	}
}

// usage is the command's line; a group takes a command where others take
// flags.
func usage(cmd *cobra.Command) string {
	if cmd.HasSubCommands() {
		return cmd.CommandPath() + " COMMAND"
	}
	return cmd.UseLine()
}

// prose turns a command's long text into paragraphs. What is set in columns
// there, with spaces in front, stays so.
func prose(long string) string {
	var out strings.Builder
	for paragraph := range strings.SplitSeq(strings.Trim(long, "\n"), "\n\n") {
		switch {
		case strings.TrimSpace(paragraph) == "":
		case strings.HasPrefix(paragraph, " "):
			out.WriteString("\n" + indented(unindented(paragraph)))
		default:
			out.WriteString("\n" + paragraph + "\n")
		}
	}
	return out.String()
}

// commandTable lists the subcommands with what they do.
func commandTable(cmd *cobra.Command) string {
	var out strings.Builder
	for _, c := range shown(cmd) {
		if out.Len() == 0 {
			out.WriteString("| command | |\n|---|---|\n")
		}
		fmt.Fprintf(&out, "| [%s](%s) | %s |\n", c.Name(), pageName(c), cell(c.Short))
	}
	return out.String()
}

// seeAlso links to the command above, and to what holds for all of them.
func seeAlso(cmd *cobra.Command) string {
	if !cmd.HasParent() {
		return "[The configuration](../config.md), [operations](../operations.md).\n"
	}
	root, parent := cmd.Root(), cmd.Parent()
	links := []string{fmt.Sprintf("[%s](%s)", parent.CommandPath(), pageName(parent))}
	if parent != root {
		links = append(links, fmt.Sprintf("[the flags of every command](%s#flags)", pageName(root)))
	}
	for _, c := range root.Commands() {
		if c.Name() == "exit-codes" && c != cmd {
			links = append(links, fmt.Sprintf("[the exit codes](%s)", pageName(c)))
		}
	}
	return strings.Join(links, ", ") + ".\n"
}
