package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
)

// CompleteArgs offers words for a command's arguments. Completion never fails:
// what cannot be known offers nothing.
func CompleteArgs(cmd *cobra.Command, words func(context.Context) []string) {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		all := slices.DeleteFunc(words(cmd.Context()), func(w string) bool { return slices.Contains(args, w) })
		return all, cobra.ShellCompDirectiveNoFileComp
	}
}

// Complete offers words for a flag. It registers them only when the shell asks for
// completions: cobra keeps what is registered for as long as the process lives.
func (e *Env) Complete(cmd *cobra.Command, flag string, words func() []string) {
	e.CompleteFlag(cmd, flag, func(context.Context) []string { return words() })
}

// CompleteFlag offers words for a flag, which may take a look at the sled.
func (e *Env) CompleteFlag(cmd *cobra.Command, flag string, words func(context.Context) []string) {
	if !e.Completing {
		return
	}
	_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return words(cmd.Context()), cobra.ShellCompDirectiveNoFileComp
	}) // it fails only for a flag that does not exist
}

// CompletePools offers the pools that zones may be put on.
func (e *Env) CompletePools(ctx context.Context) []string {
	h, err := e.Host()
	if err != nil {
		return nil
	}
	pools, err := e.ZonePools(ctx, h)
	if err != nil {
		return nil
	}
	return pools
}
