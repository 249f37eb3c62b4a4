package commands

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
)

// completeArgs offers words for a command's arguments. Completion never fails:
// what cannot be known offers nothing.
func completeArgs(cmd *cobra.Command, words func(context.Context) []string) {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		all := slices.DeleteFunc(words(cmd.Context()), func(w string) bool { return slices.Contains(args, w) })
		return all, cobra.ShellCompDirectiveNoFileComp
	}
}

// complete offers words for a flag. Only who completes is told: what cobra is
// told it keeps for as long as the process lives.
func (e *Env) complete(cmd *cobra.Command, flag string, words func() []string) {
	e.completeFlag(cmd, flag, func(context.Context) []string { return words() })
}

func (e *Env) completeFlag(cmd *cobra.Command, flag string, words func(context.Context) []string) {
	if !e.completing {
		return
	}
	_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return words(cmd.Context()), cobra.ShellCompDirectiveNoFileComp
	}) // it fails only for a flag that does not exist
}

// completePools offers the pools that zones may be put on.
func (e *Env) completePools(ctx context.Context) []string {
	h, err := e.Host()
	if err != nil {
		return nil
	}
	pools, err := e.zonePools(ctx, h)
	if err != nil {
		return nil
	}
	return pools
}
