package commands

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
)

func newCompletion(env *cli.Env) *cobra.Command {
	shells := []string{"bash", "zsh", "fish"}
	return &cobra.Command{
		Use:       "completion bash|zsh|fish",
		Short:     "Print a shell's completion script",
		Long:      `Print a shell's completion script. It completes subcommands, flags, and the names of existing instances, zones and VNICs.`,
		Example:   `  sledctl completion bash > /etc/bash_completion.d/sledctl`,
		Args:      cobra.ExactArgs(1),
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			root, out := cmd.Root(), env.Streams.Out
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, true)
			}
			return &cli.UsageError{Text: "completion: unknown shell \"" + args[0] + "\"", Advice: "give one of " + strings.Join(shells, ", ")}
		},
	}
}
