package commands_test

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sledctl/sledctl/commands"
	"github.com/sledctl/sledctl/test/sledtest"
)

// What is wrong with a command line is said with the argument or the flag, and
// what would be right.
func TestAWrongCommandLineIsNamed(t *testing.T) {
	s := sledtest.New(t, sledtest.Small(), "")
	for line, want := range map[string]string{
		"instance get":                           "sledctl instance get: NAME|UUID is missing",
		"instance delete":                        "instance delete: which instance?",
		"base retire a b":                        `sledctl base retire: unexpected argument "b"`,
		"zone exec":                              "sledctl zone exec: ZONE|INSTANCE is missing",
		"zone exec z1":                           "sledctl zone exec: COMMAND is missing",
		"sim fault add":                          "sledctl sim fault add: NAME is missing",
		"sim fault add a b":                      `sledctl sim fault add: unexpected argument "b"`,
		"version x":                              `sledctl version: takes no argument, and was given "x"`,
		"instance list -z":                       "unknown flag -z\n",
		"instance list -Hz":                      "unknown flag -z\n",
		"instance ensure a --cpu 2":              "unknown flag --cpu\nsledctl: hint: did you mean: --cpus",
		"instance ensure a -f":                   "--file needs a value",
		"instance ensure a --=3":                 `"--=3": want --FLAG or --FLAG=VALUE`,
		"instance ensure a --cpus x":             `--cpus "x": want a whole number`,
		"instance ensure a --memory 1Q":          `--memory "1Q": want a number of bytes`,
		"instance ensure a --protect=maybe":      `--protect "maybe": want true or false`,
		"instance list --timeout 1x":             `--timeout "1x": want a duration, e.g. 90s or 5m`,
		"instance ensure a --nic over=net0,mac=": `--nic "over=net0,mac=": want over=LINK`,
	} {
		if a := s.Try(line); a.Exit != 2 || !strings.Contains(a.Errs, want) || !strings.Contains(a.Errs, "hint: ") {
			t.Errorf("sledctl %s: exit %d: %swant %s", line, a.Exit, a.Errs, want)
		}
	}
}

// No flag of any command has an error as a library says it.
func TestErrorsOfFlagsAreNoLibrarys(t *testing.T) {
	s := sledtest.New(t, sledtest.Small(), "")
	wrong := func(line string) {
		a := s.Try(line)
		for _, words := range []string{"invalid argument", "strconv", "accepts", "arg(s)", "shorthand", "time: ", "parse error", "invalid syntax", "flag: "} {
			if strings.Contains(a.Errs, words) {
				t.Errorf("sledctl %s: %q in %s", line, words, a.Errs)
			}
		}
		if a.Exit != 2 {
			t.Errorf("sledctl %s: exit %d: %s", line, a.Exit, a.Errs)
		}
	}
	tried := 0
	var each func(cmd *cobra.Command)
	each = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			each(c)
		}
		if !cmd.Runnable() || cmd.HasAvailableSubCommands() || cmd.DisableFlagParsing {
			return
		}
		line := strings.TrimPrefix(cmd.CommandPath(), "sledctl ")
		wrong(line + " --no-such-flag")
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			switch f.Value.Type() {
			case "bool", "int", "uint", "uint64", "duration":
				wrong(line + " --" + f.Name + "=?")
				tried++
			}
		})
	}
	each(commands.Root())
	if tried < 60 {
		t.Errorf("only %d flags were tried", tried)
	}
}
