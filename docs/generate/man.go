package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands"
)

// manuals writes a page of section 8 for each command into a directory that it makes.
// They are mdoc(7), as illumos' own; the date is that of all of them.
func manuals(dir string, date time.Time) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, page := range manualPages(commands.Root(), date) {
		if err := os.WriteFile(filepath.Join(dir, name), page, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// manualPages renders a command and all below it, by file name.
func manualPages(cmd *cobra.Command, date time.Time) map[string][]byte {
	all := map[string][]byte{manualName(cmd) + ".8": manualPage(cmd, date)}
	for _, c := range shown(cmd) {
		for name, page := range manualPages(c, date) {
			all[name] = page
		}
	}
	return all
}

// manualName is what man(1) is asked for: sledctl-instance-ensure.
func manualName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

func manualPage(cmd *cobra.Command, date time.Time) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, ".Dd %s\n.Dt %s 8\n.Os\n", date.Format("January 2, 2006"), strings.ToUpper(manualName(cmd)))
	fmt.Fprintf(&out, ".Sh NAME\n.Nm %s\n.Nd %s\n", manualName(cmd), protected(cmd.Short))
	if cmd.Runnable() || cmd.HasSubCommands() {
		out.WriteString(".Sh SYNOPSIS\n" + synopsis(cmd))
	}
	out.WriteString(".Sh DESCRIPTION\n" + manualProse(cmd))
	tagged(&out, "COMMANDS", commandItems(cmd))
	tagged(&out, "OPTIONS", flagItems(cmd))
	if cmd.Runnable() {
		fmt.Fprintf(&out, ".Sh EXIT STATUS\nSee\n.Xr %s 8 .\n", manualName(cmd.Root())+"-exit-codes")
	}
	if cmd.Example != "" {
		out.WriteString(".Sh EXAMPLES\n" + literal(unindented(cmd.Example)))
	}
	out.WriteString(alsoSee(cmd))
	return out.Bytes()
}

// synopsis is the line of usage. What stands in brackets may be left out.
func synopsis(cmd *cobra.Command) string {
	var out strings.Builder
	fmt.Fprintf(&out, ".Nm %s\n", cmd.CommandPath())
	rest := strings.TrimSpace(strings.TrimPrefix(usage(cmd), cmd.CommandPath()))
	for rest != "" {
		var part string
		end := strings.Index(rest, "] ")
		switch {
		case !strings.HasPrefix(rest, "["):
			part, rest, _ = strings.Cut(rest, " ")
			fmt.Fprintf(&out, ".Ar %s\n", argument(part))
		case end < 0:
			fmt.Fprintf(&out, ".Op Ar %s\n", argument(strings.Trim(rest, "[]")))
			rest = ""
		default:
			fmt.Fprintf(&out, ".Op Ar %s\n", argument(rest[1:end]))
			rest = strings.TrimSpace(rest[end+1:])
		}
	}
	return out.String()
}

// manualProse is the command's long text. What is set in columns there stays so.
func manualProse(cmd *cobra.Command) string {
	text := strings.Trim(cmd.Long, "\n")
	if text == "" {
		text = cmd.Short + "."
	}
	var out strings.Builder
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		switch {
		case strings.TrimSpace(paragraph) == "":
		case strings.HasPrefix(paragraph, " "):
			out.WriteString(literal(unindented(paragraph)))
		default:
			if out.Len() > 0 {
				out.WriteString(".Pp\n")
			}
			out.WriteString(sentences(paragraph) + "\n")
		}
	}
	if len(cmd.Aliases) > 0 {
		fmt.Fprintf(&out, ".Pp\nAlso called %s.\n", protected(strings.Join(cmd.Aliases, ", ")))
	}
	return out.String()
}

// literal is text that stays as it is.
func literal(text string) string {
	var out strings.Builder
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		out.WriteString(strings.ReplaceAll(protected(line), "-", `\-`) + "\n")
	}
	return ".Bd -literal -offset indent\n" + out.String() + ".Ed\n"
}

// item is a tag of a list, a line of macros, and its text.
type item struct{ tag, text string }

func tagged(out *bytes.Buffer, title string, items []item) {
	if len(items) == 0 {
		return
	}
	fmt.Fprintf(out, ".Sh %s\n.Bl -tag -width Ds\n", title)
	for _, i := range items {
		fmt.Fprintf(out, ".It %s\n%s\n", i.tag, sentences(i.text))
	}
	out.WriteString(".El\n")
}

func commandItems(cmd *cobra.Command) (items []item) {
	for _, c := range shown(cmd) {
		items = append(items, item{"Xr " + manualName(c) + " 8", c.Short + "."})
	}
	return items
}

// flagItems are the flags as they are typed: "-f, --file FILE" is Fl f , Fl Fl file Ar FILE.
func flagItems(cmd *cobra.Command) (items []item) {
	for _, f := range commands.Flags(cmd.LocalFlags()) {
		var tag []string
		for word := range strings.FieldsSeq(f[0]) {
			word, comma := strings.CutSuffix(word, ",")
			switch {
			case strings.HasPrefix(word, "--"):
				tag = append(tag, "Fl Fl "+argument(word[2:]))
			case strings.HasPrefix(word, "-"):
				tag = append(tag, "Fl "+argument(word[1:]))
			default:
				tag = append(tag, "Ar "+argument(word))
			}
			if comma {
				tag = append(tag, ",")
			}
		}
		items = append(items, item{strings.Join(tag, " "), f[1]})
	}
	return items
}

// alsoSee names the page above, and what holds for all commands.
func alsoSee(cmd *cobra.Command) string {
	root := manualName(cmd.Root())
	pages := []string{root + "-exit-codes"}
	for at := cmd; at.HasParent(); at = at.Parent() {
		pages = append(pages, manualName(at.Parent()))
	}
	slices.Sort(pages)
	pages = slices.Compact(slices.DeleteFunc(pages, func(p string) bool { return p == manualName(cmd) }))
	var out strings.Builder
	for i, p := range pages {
		end := " ,"
		if i == len(pages)-1 {
			end = ""
		}
		fmt.Fprintf(&out, ".Xr %s 8%s\n", p, end)
	}
	return ".Sh SEE ALSO\n" + out.String()
}

// sentences is text with a line for each sentence, as mdoc has it: man(1) sets the blanks
// between them.
func sentences(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	text = regexp.MustCompile(`([^.][.!?][)"']*) `).ReplaceAllString(text, "$1\n")
	return regexp.MustCompile(`\b(e\.g|i\.e)\.\n`).ReplaceAllString(protected(text), `$1.\& `)
}

// protected is text that mdoc prints as it is: no line of it is a macro, no character an
// escape.
func protected(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, `\`, `\e`), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

// argument is one argument of a macro, whatever it looks like.
func argument(text string) string {
	return `"` + `\&` + strings.ReplaceAll(strings.ReplaceAll(text, `\`, `\e`), `"`, `""`) + `"`
}
