package commands

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/config"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/illumos/naming"
)

// newConfig is the command config. Package config has the settings themselves, which every
// other command reads.
func newConfig(env *cli.Env) *cobra.Command {
	cmd := cli.Group("config", "Show the configuration, and whether it is valid", "")
	cmd.AddCommand(newConfigShow(env), newConfigCheck(env))
	return cmd
}

func settingList() terminal.List[config.Setting] {
	type column = terminal.Column[config.Setting]
	tall := terminal.Tall[config.Setting]{
		Head: func(s config.Setting) string { return strings.TrimSpace(s.Name + " = " + s.Value) },
		Detail: func(s config.Setting) string { // of most settings the default; the value alone says so
			if s.From == "default" {
				return ""
			}
			return "from " + s.From
		},
		Style: func(config.Setting) terminal.Style { return terminal.Plain },
	}
	return terminal.List[config.Setting]{Kind: "Setting", Name: func(s config.Setting) string { return s.Name }, Tall: &tall, Columns: []column{
		{Name: "name", Value: func(s config.Setting) string { return s.Name }},
		{Name: "from", Value: func(s config.Setting) string { return s.From }},
		{Name: "value", Value: func(s config.Setting) string { return s.Value }},
	}}
}

func newConfigShow(env *cli.Env) *cobra.Command {
	changed := false
	cmd := &cobra.Command{
		Use: "show [KEY ...]", Short: "Show the settings, and where each comes from",
		Long: `Show the settings, and where each comes from: a file and its line, a variable, or the default. Of a command in
storage.key only the program is printed: the rest may be secret.`,
		Example: "  sledctl config show\n  sledctl config show --changed\n  sledctl config show storage.key network.underlay",
		RunE:    env.Run(func(_ context.Context, keys []string) error { return showConfig(env, keys, changed) }),
	}
	cmd.Flags().BoolVar(&changed, "changed", false, "leave out what is the default")
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, func(context.Context) []string { return settingNames() })
	return cmd
}

func settingNames() (names []string) {
	for _, k := range config.Keys() {
		names = append(names, k.Name)
	}
	return names
}

func showConfig(e *cli.Env, keys []string, changed bool) error {
	if err := settingList().Check(e.Output); err != nil {
		return err
	}
	for _, key := range keys {
		if known := settingNames(); !slices.Contains(known, key) {
			return &cli.NotFoundError{What: "the setting " + key, List: "sledctl config show", Near: naming.Nearest(key, known)}
		}
	}
	source, err := e.ConfigSource()
	if err != nil {
		return err
	}
	all, err := config.Settings(source)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(s config.Setting) bool {
		return len(keys) > 0 && !slices.Contains(keys, s.Name) || changed && s.From == "default"
	})
	return settingList().Print(e.Streams.Out, e.Output, all)
}

func newConfigCheck(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "check [FILE]", Short: "Show whether the configuration, or a file, is valid",
		Long: `Show whether the configuration, or a file, is valid. It prints where the settings come from; exit 2 if something is not valid, with
each problem by its key and line. Of a FILE, or - for standard input, neither the environment nor the sled's own files count.`,
		Example: "  sledctl config check\n  sledctl config check new.toml && cp new.toml /etc/sledctl/config.toml",
		Args:    cobra.MaximumNArgs(1),
		RunE:    env.Run(func(_ context.Context, args []string) error { return checkConfig(env, args) }),
	}
}

func checkConfig(e *cli.Env, args []string) error {
	var source config.Source
	var err error
	if len(args) == 0 {
		source, err = e.ConfigSource()
	} else {
		source, err = cli.ConfigFile(e.Streams, "config check", args[0])
	}
	if err != nil {
		return err
	}
	all, err := config.Settings(source)
	if err != nil {
		return err
	}
	said := "the configuration is valid: " + sources(source, all)
	if out := e.Streams.Out; out.Terminal {
		said = terminal.Folded(said, out.Width())
	}
	_, err = fmt.Fprintln(e.Streams.Out, said)
	return err
}

// sources counts where settings come from.
func sources(source config.Source, all []config.Setting) string {
	from := map[string]int{}
	for _, s := range all {
		place := s.From
		for _, f := range source.Files {
			if strings.HasPrefix(s.From, f.Name+":") {
				place = f.Name
			}
		}
		if strings.HasPrefix(place, "SLEDCTL_") {
			place = "the environment"
		}
		from[place]++
	}
	var said []string
	for _, f := range source.Files {
		said = append(said, fmt.Sprintf("%d settings from %s", from[f.Name], f.Name))
	}
	if n := from["the environment"]; n > 0 {
		said = append(said, fmt.Sprintf("%d from the environment", n))
	}
	return strings.Join(append(said, fmt.Sprintf("%d by default", from["default"])), ", ")
}
