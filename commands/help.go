package commands

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
)

// PageWidth is the width of help in the manual, and of a stream that has none.
const PageWidth = 79

// columnOfTexts is where the texts of flags begin at most: longer flags have
// their text on the next line.
const columnOfTexts = 30

// printHelp is the help function of every command.
func printHelp(cmd *cobra.Command, to *terminal.Stream) error {
	_, err := io.WriteString(to, helpOf(cmd, to.Width()-1))
	return err
}

// helpOf returns the help of a command in lines of at most width columns. Only a
// longer word makes a longer line.
func helpOf(cmd *cobra.Command, width int) string {
	var b strings.Builder
	section := func(title, text string) {
		if text != "" {
			fmt.Fprintf(&b, "\n%s:\n%s\n", title, strings.TrimRight(text, "\n"))
		}
	}
	b.WriteString(wrap(cmp.Or(strings.TrimSpace(cmd.Long), cmd.Short+"."), width) + "\n")
	section("Usage", wrap("  "+usageLine(cmd), width))
	if len(cmd.Aliases) > 0 {
		section("Aliases", "  "+strings.Join(append([]string{cmd.Name()}, cmd.Aliases...), ", "))
	}
	section("Examples", exampleText(cmd.Example, width))
	section("Commands", commandText(cmd, width))
	section("Help topics (sledctl help TOPIC)", topicText(cmd, width))
	section("Flags", FlagText(cmd.LocalFlags(), width))
	if elsewhere := flagsElsewhere(cmd); elsewhere != "" {
		b.WriteString("\n" + wrap(elsewhere, width) + "\n")
	}
	if cmd.HasParent() {
		b.WriteString("\n" + wrap("Global flags, e.g. --host and --timeout: see sledctl help flags", width) + "\n")
	}
	return b.String()
}

// usageLine is how the command is typed; a group takes a command.
func usageLine(cmd *cobra.Command) string {
	if cmd.HasAvailableSubCommands() {
		return cmd.CommandPath() + " COMMAND"
	}
	return cmd.UseLine()
}

// commandText lists the commands below a group.
func commandText(cmd *cobra.Command, width int) string {
	var names [][2]string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, [2]string{c.Name(), c.Short})
		}
	}
	return inColumns(names, width)
}

// topicText lists what has help and is no command.
func topicText(cmd *cobra.Command, width int) string {
	if cmd.HasParent() {
		return ""
	}
	topics := [][2]string{{"flags", "Print the flags that every command accepts"}}
	for _, c := range cmd.Commands() {
		if c.IsAdditionalHelpTopicCommand() {
			topics = append(topics, [2]string{c.Name(), c.Short})
		}
	}
	return inColumns(topics, width)
}

// FlagText lists the flags that are the command's own, each with its text, in
// lines of at most width columns.
func FlagText(set *pflag.FlagSet, width int) string { return inColumns(Flags(set), width) }

// Flags returns the flags that are the command's own: each as it is typed ("-f, --file
// FILE"), and its text.
func Flags(set *pflag.FlagSet) (all [][2]string) {
	set.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Annotations[cli.Belongs] == nil {
			all = append(all, flagText(f))
		}
	})
	return all
}

// flagText is a flag as it is typed, and its text.
func flagText(f *pflag.Flag) [2]string {
	kind, text := pflag.UnquoteUsage(f)
	name := "    --" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", --" + f.Name
	}
	words := map[string]string{"string": "TEXT", "strings": "TEXT,...", "stringArray": "TEXT", "int": "N", "uint": "N", "number": "N", "duration": "DURATION", "size": "SIZE", "version": "VERSION"}
	if kind = cmp.Or(words[kind], kind); kind != "" {
		name += " " + kind
	}
	usual := f.DefValue
	if f.Value.Type() == "duration" {
		usual = strings.TrimSuffix(strings.TrimSuffix(usual, "0s"), "0m")
	}
	if !slices.Contains([]string{"", "0", "false", "[]"}, usual) && !strings.Contains(text, "default") {
		text += " (default " + usual + ")"
	}
	return [2]string{name, text}
}

// flagsElsewhere names the flags that the command accepts and another describes.
func flagsElsewhere(cmd *cobra.Command) string {
	var names []string
	by := ""
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if where := f.Annotations[cli.Belongs]; where != nil {
			by = where[0]
			names = append(names, "--"+f.Name)
		}
	})
	if len(names) == 0 {
		return ""
	}
	return "Flags of " + by + ": " + strings.Join(names, ", ")
}

// inColumns sets pairs in two columns: the second is wrapped, and begins below the
// first if that is long.
func inColumns(pairs [][2]string, width int) string {
	column := 0
	for _, p := range pairs {
		if n := ansi.StringWidth(p[0]); n <= columnOfTexts-4 || width >= 120 {
			column = max(column, n+4)
		}
	}
	var b strings.Builder
	for _, p := range pairs {
		before := "  " + p[0]
		if n := ansi.StringWidth(before); n+2 > column {
			b.WriteString(before + "\n")
			before = ""
		}
		before += strings.Repeat(" ", max(0, column-ansi.StringWidth(before)))
		for line := range strings.SplitSeq(wrap(p[1], max(20, width-column)), "\n") {
			b.WriteString(strings.TrimRight(before+line, " ") + "\n")
			before = strings.Repeat(" ", column)
		}
	}
	return b.String()
}

// exampleText breaks examples that are wider than the terminal between words, as
// a shell reads them: at a backslash.
func exampleText(text string, width int) string {
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		for ansi.StringWidth(line) > width {
			at := breakOf(line, width-2)
			if at < 0 {
				break
			}
			lines = append(lines, line[:at]+" \\")
			line = "      " + line[at+1:]
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// breakOf is the last blank outside quotes before the width; -1: there is none.
func breakOf(line string, width int) int {
	quote, at := rune(0), -1
	started := false
	for i, r := range line {
		switch {
		case i > width:
			return at
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
		case r == '\'' || r == '"':
			quote, started = r, true
		case r == '#' && (i == 0 || line[i-1] == ' '):
			return at // a comment ends with its line
		case r == ' ' && started:
			at = i
		case r != ' ':
			started = true
		}
	}
	return at
}

// globalFlagText is what sledctl help flags prints.
func globalFlagText(root *cobra.Command, width int) string {
	return wrap("Every command accepts these flags, before or behind its own:", width) + "\n\n" + FlagText(root.PersistentFlags(), width)
}
