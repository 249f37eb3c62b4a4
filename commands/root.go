package commands

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sledctl/sledctl/commands/agent"
	"github.com/sledctl/sledctl/commands/base"
	"github.com/sledctl/sledctl/commands/bootstrap"
	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/doctor"
	"github.com/sledctl/sledctl/commands/events"
	"github.com/sledctl/sledctl/commands/history"
	"github.com/sledctl/sledctl/commands/image"
	"github.com/sledctl/sledctl/commands/instance"
	"github.com/sledctl/sledctl/commands/ledger"
	"github.com/sledctl/sledctl/commands/nics"
	"github.com/sledctl/sledctl/commands/probe"
	"github.com/sledctl/sledctl/commands/propolis"
	"github.com/sledctl/sledctl/commands/reap"
	"github.com/sledctl/sledctl/commands/sim"
	"github.com/sledctl/sledctl/commands/sled"
	"github.com/sledctl/sledctl/commands/status"
	"github.com/sledctl/sledctl/commands/storage"
	"github.com/sledctl/sledctl/commands/top"
	"github.com/sledctl/sledctl/commands/trace"
	"github.com/sledctl/sledctl/commands/vnic"
	"github.com/sledctl/sledctl/commands/volume"
	"github.com/sledctl/sledctl/commands/zone"
	"github.com/sledctl/sledctl/illumos/naming"
)

// topLevel returns the commands below the root, in the order of the manual.
func topLevel() []cli.Word {
	return []cli.Word{
		{Name: "status", Make: status.New},
		{Name: "top", Make: top.New(runLine)},
		{Name: "doctor", Make: doctor.New},
		{Name: "bootstrap", Make: bootstrap.New},
		{Name: "storage", Make: storage.New},
		{Name: "volume", Make: volume.New},
		{Name: "base", Make: base.New},
		{Name: "image", Make: image.New},
		{Name: "vnic", Make: vnic.New},
		{Name: "zone", Make: zone.New},
		{Name: "propolis", Make: propolis.New},
		{Name: "instance", Make: instance.New},
		{Name: "reap", Make: reap.New},
		{Name: "nics", Make: nics.New},
		{Name: "agent", Make: agent.New},
		{Name: "events", Make: events.New},
		{Name: "history", Make: history.New},
		{Name: "trace", Make: trace.New},
		{Name: "ledger", Make: ledger.New},
		{Name: "sled", Make: sled.New},
		{Name: "config", Make: newConfig},
		{Name: "probe", Make: probe.New},
		{Name: "sim", Make: sim.New},
		{Name: "version", Make: newVersion},
		{Name: "completion", Make: newCompletion},
		{Name: "exit-codes", Make: newExitCodes},
		{Name: "privileges", Make: newPrivileges},
	}
}

// newRoot returns the tree of all commands. If the command line names a command, the
// tree has only that one and its subcommand: making them all takes longer than many
// commands do.
func newRoot(env *cli.Env, args ...string) *cobra.Command {
	root := cli.Group("sledctl", "Run VMs on an illumos sled, and leave nothing behind", `
Run VMs on an illumos sled, and leave nothing behind. Each step is a command, and instance ensure does them all. Any
command may be killed at any instant: run it again, or run sledctl reap, and the sled reaches the state that was asked
for. sledctl never touches foreign objects.`)
	root.Example = `  sledctl bootstrap                          # prepare the sled
  sledctl instance ensure web1 --cpus 4 --memory 8G
  sledctl instance list
  sledctl instance delete web1`
	help := root.RunE
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 && env.Streams.Out.Terminal && env.Exists() {
			return status.Bare(env)(cmd, args)
		}
		return help(cmd, args)
	}
	root.SilenceErrors, root.SilenceUsage = true, true
	root.DisableAutoGenTag = true
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetOut(env.Streams.Out)
	root.SetErr(env.Streams.Err)
	root.SetIn(env.Streams.In)
	root.SetFlagErrorFunc(flagError)
	env.AddGlobal(root)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		_ = printHelp(cmd, env.Streams.Out) // the stream remembers its error
	})
	env.Words = args
	env.Add(root, nil, topLevel())
	root.SetHelpCommand(helpCommand(env, root))
	strict(root)
	if env.Completing {
		cli.CompleteOnlyFiles(root)
	}
	return root
}

// helpCommand is help, to which what does not exist is an error.
func helpCommand(env *cli.Env, root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND ...]",
		Short:   "Show the help of a command",
		Example: "  sledctl help instance ensure\n  sledctl help flags          # the flags of every command",
		ValidArgsFunction: func(_ *cobra.Command, words []string, _ string) ([]string, cobra.ShellCompDirective) {
			cmd, rest, err := root.Find(words)
			if err != nil || len(rest) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return cli.Subcommands(cmd), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, words []string) error {
			if slices.Equal(words, []string{"flags"}) {
				_, err := io.WriteString(env.Streams.Out, globalFlagText(root, env.Streams.Out.Width()-1))
				return err
			}
			cmd, rest, err := root.Find(words)
			if err != nil || cmd == nil {
				cmd, rest = root, words
			}
			switch {
			case len(rest) > 0 && cmd.HasAvailableSubCommands():
				return cmd.RunE(cmd, rest)
			case len(rest) > 0:
				return &cli.UsageError{Text: fmt.Sprintf("%s: unknown subcommand %q", cmd.CommandPath(), rest[0]), Advice: "to see its usage, run: " + cmd.CommandPath() + " --help"}
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	}
}

// strict makes every wrong number of arguments a usage error that names the
// argument.
func strict(cmd *cobra.Command) {
	if args := cmd.Args; args != nil && cmd.Run == nil {
		cmd.Args = func(cmd *cobra.Command, given []string) error {
			if args(cmd, given) == nil {
				return nil
			}
			return &cli.UsageError{Text: cmd.CommandPath() + ": " + wrongNumber(cmd.Use, given), Advice: "give: " + cmd.UseLine()}
		}
	}
	for _, c := range cmd.Commands() {
		strict(c)
	}
}

// wrongNumber says which argument of a usage, as NAME [DISK...], is missing, or
// which of those given is one too many.
func wrongNumber(use string, given []string) string {
	var needed []string
	most := 0
	words := strings.Fields(use)
	for i, word := range words[1:] {
		if strings.HasPrefix(word, "--") || len(words[i]) > 2 && strings.HasPrefix(words[i], "--") {
			continue // a flag and its value, or what stands before a program's arguments
		}
		if most++; !strings.HasPrefix(word, "[") && !strings.HasPrefix(word, "...") {
			needed = append(needed, word)
		}
	}
	switch {
	case len(given) < len(needed):
		return needed[len(given)] + " is missing"
	case most == 0:
		return fmt.Sprintf("takes no argument, and was given %q", given[0])
	case len(given) > most && !strings.Contains(use, "..."):
		return fmt.Sprintf("unexpected argument %q", given[most])
	}
	return "wrong number of arguments"
}

// flagError names the flag that is wrong and what would be right, instead of
// pflag's words.
func flagError(cmd *cobra.Command, err error) error {
	e := &cli.UsageError{Text: err.Error(), Advice: "to see the flags, run: " + cmd.CommandPath() + " --help"}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		e.Text = "unknown flag --" + unknown.GetSpecifiedName()
		if unknown.GetSpecifiedShortnames() != "" {
			e.Text = "unknown flag -" + unknown.GetSpecifiedName()
			return e
		}
		var known []string
		eachFlag(cmd, func(name string) { known = append(known, name) })
		if near := naming.Nearest(unknown.GetSpecifiedName(), known); near != "" {
			e.Advice = "did you mean: --" + near
		}
	} else if bare, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		e.Text = "--" + bare.GetFlag().Name + " needs a value"
	} else if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		e.Text = fmt.Sprintf("--%s %q: %s", wrong.GetFlag().Name, wrong.GetValue(), wantedValue(wrong))
	} else if garbled, ok := errors.AsType[*pflag.InvalidSyntaxError](err); ok {
		e.Text = fmt.Sprintf("%q: want --FLAG or --FLAG=VALUE", garbled.GetSpecifiedFlag())
	}
	return e
}

// wantedValue says what a flag takes: what its own type says, or, for a type of
// pflag's, what that is.
func wantedValue(e *pflag.InvalidValueError) string {
	switch kind := e.GetFlag().Value.Type(); kind {
	case "bool":
		return "want true or false"
	case "duration":
		return "want a duration, e.g. 90s or 5m"
	case "int", "int64", "uint", "uint16", "uint64":
		return "want a whole number"
	}
	text := e.Unwrap().Error()
	if _, after, ok := strings.Cut(text, fmt.Sprintf("%q: ", e.GetValue())); ok {
		return after
	}
	return text
}

func eachFlag(cmd *cobra.Command, add func(name string)) {
	visit := func(f *pflag.Flag) { add(f.Name) }
	cmd.Flags().VisitAll(visit)
	cmd.InheritedFlags().VisitAll(visit)
}
