package commands

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
)

// eachCommand calls a function for every command that has a page in the manual.
func eachCommand(cmd *cobra.Command, do func(*cobra.Command)) {
	do(cmd)
	for _, c := range cmd.Commands() {
		eachCommand(c, do)
	}
}

// A short text is an imperative of at most 60 characters, without a full stop; the
// long text begins with it; and there are one to four examples.
func TestEachCommandIsDescribedInOneShape(t *testing.T) {
	n := 0
	eachCommand(Root(), func(cmd *cobra.Command) {
		n++
		path := cmd.CommandPath()
		if size := utf8.RuneCountInString(cmd.Short); size == 0 || size > 60 || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: Short has %d characters, want 1 to 60 without a full stop: %q", path, size, cmd.Short)
		}
		verb, _, _ := strings.Cut(cmd.Short, " ")
		if verb = strings.TrimRight(verb, ","); !slices.Contains(imperatives(), verb) {
			t.Errorf("%s: Short begins with %q, want a verb that tests know", path, verb)
		}
		long := strings.Join(strings.Fields(cmd.Long), " ")
		if long != "" && !cmd.HasSubCommands() && !strings.HasPrefix(long, cmd.Short) {
			t.Errorf("%s: Long does not begin with Short: %q", path, long[:min(len(long), 80)])
		}
		examples := 0
		for line := range strings.Lines(cmd.Example) {
			if !strings.HasPrefix(strings.TrimSpace(line), "#") {
				examples++
			}
		}
		if cmd.Runnable() && !cmd.HasSubCommands() && (examples < 1 || examples > 4) {
			t.Errorf("%s: %d examples, want 1 to 4", path, examples)
		}
		visit := func(f *pflag.Flag) {
			_, text := pflag.UnquoteUsage(f)
			if size := utf8.RuneCountInString(text); size == 0 || size > 70 || strings.HasSuffix(text, ".") {
				t.Errorf("%s: the text of --%s has %d characters, want 1 to 70 without a full stop: %q", path, f.Name, size, text)
			}
		}
		cmd.LocalFlags().VisitAll(visit)
	})
	if n < 70 {
		t.Errorf("%d commands were looked at", n)
	}
}

// imperatives are the verbs with which short texts begin.
func imperatives() []string {
	return []string{
		"Add", "Adopt", "Arm", "Attach", "Boot", "Collect", "Compare", "Connect", "Control", "Convert", "Create", "Delete", "Disarm", "Drop", "Edit", "Fill",
		"Get", "Give", "Halt", "Import", "List", "Make", "Manage", "Move", "Open", "Power", "Power-cycle", "Prepare", "Print", "Protect", "Pull", "Put", "Record", "Remember",
		"Remove", "Rename", "Report", "Reset", "Restore", "Run", "Send", "Serve", "Show", "Start", "Sweep", "Take", "Undo", "Verify", "Wait", "Write",
	}
}

// Help is as wide as the terminal: at each width no line is longer, but for a word
// that is, and all words of the texts are there whole, in their order.
func TestHelpIsWrappedAtTheWidthOfTheTerminal(t *testing.T) {
	for _, width := range []int{80, 132, 200} {
		eachCommand(Root(), func(cmd *cobra.Command) {
			streams, out, _ := terminal.Buffers(terminal.Pretended{Terminal: true, Width: width})
			cmd.InitDefaultHelpFlag()
			if err := printHelp(cmd, streams.Out); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(out.String()) {
				line = strings.TrimRight(line, "\n")
				if ansi.StringWidth(line) >= width && len(strings.Fields(line)) > 1 {
					t.Errorf("%s at %d columns has a line of %d: %q", cmd.CommandPath(), width, ansi.StringWidth(line), line)
				}
			}
			got := strings.Join(strings.Fields(out.String()), " ")
			if want := strings.Join(strings.Fields(cmd.Long), " "); !strings.Contains(got, want) {
				t.Errorf("%s at %d columns lacks a part of its text", cmd.CommandPath(), width)
			}
			cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
				if _, text := pflag.UnquoteUsage(f); !f.Hidden && f.Annotations[cli.Belongs] == nil && !strings.Contains(got, text) {
					t.Errorf("%s at %d columns lacks the text of --%s", cmd.CommandPath(), width, f.Name)
				}
				if !f.Hidden && !strings.Contains(got, "--"+f.Name) {
					t.Errorf("%s at %d columns lacks --%s", cmd.CommandPath(), width, f.Name)
				}
			})
		})
	}
}

// A step describes the flags that it uses, and names the others in one line.
func TestAStepDescribesTheFlagsThatItUses(t *testing.T) {
	cmd, _, err := Root().Find([]string{"zone", "create"})
	if err != nil {
		t.Fatal(err)
	}
	help := helpOf(cmd, PageWidth)
	for text, want := range map[string]bool{"volume, file of the host, or image to clone": true, "pool for the zone": true, "virtual CPUs": false, "guest NIC": false, "--cloud-init, --cpus": true, "sledctl help flags": true} {
		if strings.Contains(help, text) != want {
			t.Errorf("%q is in the help: %v, want %v:\n%s", text, !want, want, help)
		}
	}
}

// An example that is too wide is broken at a backslash, never inside quotes or in a
// comment.
func TestExamplesAreBrokenAsAShellReadsThem(t *testing.T) {
	for in, want := range map[string]string{
		"  a bb cc dd ee":                "  a bb cc dd \\\n      ee",
		"  a 'bb cc dd ee ff' gg":        "  a \\\n      'bb cc dd ee ff' gg",
		"  a bb    # a comment of words": "  a bb    \\\n      # a comment of words",
		"  'a bb cc dd ee ff gg hh'":     "  'a bb cc dd ee ff gg hh'",
	} {
		if got := exampleText(in, 14); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
