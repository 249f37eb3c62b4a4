package cli

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// CompleteArgs offers words for a command's arguments. Completion never fails:
// what cannot be known offers nothing.
func CompleteArgs(cmd *cobra.Command, words func(context.Context) []string) {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		all := slices.DeleteFunc(words(cmd.Context()), func(w string) bool { return slices.Contains(args, w) })
		return all, cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteInTurn offers words for the first argument, and others for those after it.
func CompleteInTurn(cmd *cobra.Command, first, rest func(context.Context) []string) {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		words := first
		if len(args) > 0 {
			words = rest
		}
		return words(cmd.Context()), cobra.ShellCompDirectiveNoFileComp
	}
}

// Complete offers words for a flag. It registers them only when the shell asks for
// completions: cobra keeps what is registered for as long as the process lives.
func (e *Env) Complete(cmd *cobra.Command, flag string, words func() []string) {
	e.CompleteFlag(cmd, flag, func(context.Context) []string { return words() })
}

// CompleteFlag offers words for a flag, which may take a look at the sled.
func (e *Env) CompleteFlag(cmd *cobra.Command, flag string, words func(context.Context) []string) {
	e.complete(cmd, flag, words, cobra.ShellCompDirectiveNoFileComp)
}

// CompleteStart is CompleteFlag for words that something follows.
func (e *Env) CompleteStart(cmd *cobra.Command, flag string, words func(context.Context) []string) {
	e.complete(cmd, flag, words, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace)
}

// CompleteNameOrFile is CompleteFlag for what may also be the name of a file: a shell offers those
// where no name fits.
func CompleteNameOrFile(e *Env, cmd *cobra.Command, flag string, words func(context.Context) []string) {
	e.complete(cmd, flag, words, cobra.ShellCompDirectiveDefault)
}

func (e *Env) complete(cmd *cobra.Command, flag string, words func(context.Context) []string, how cobra.ShellCompDirective) {
	if !e.Completing {
		return
	}
	_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return words(cmd.Context()), how
	}) // it fails only for a flag that does not exist
}

// CompleteOnlyFiles has a shell offer file names only where a command takes files. It
// follows all else, and offers nothing for the other arguments and flags.
func CompleteOnlyFiles(cmd *cobra.Command) {
	if cmd.ValidArgsFunction == nil && len(cmd.ValidArgs) == 0 && !takesFile(cmd.Use) {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		_, has := cmd.GetFlagCompletionFunc(f.Name)
		if kind, _ := pflag.UnquoteUsage(f); !has && !takesFile(kind) {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, cobra.NoFileCompletions)
		}
	})
	for _, c := range cmd.Commands() {
		CompleteOnlyFiles(c)
	}
}

// takesFile says whether a word of a usage stands for a file's name.
func takesFile(usage string) bool {
	return slices.ContainsFunc([]string{"FILE", "DIR", "PATH", "COMMAND"}, func(word string) bool { return strings.Contains(usage, word) })
}

// Recorded offers a name of each record that the ledger has of a kind, as far as they can be read.
func Recorded[T any](e *Env, all func(ledger.View) ([]T, error), name func(T) string) func(context.Context) []string {
	return func(ctx context.Context) (names []string) {
		view, err := e.View(ctx)
		if err != nil {
			return nil
		}
		records, err := all(view)
		if err != nil {
			return nil
		}
		for _, r := range records {
			names = append(names, name(r))
		}
		return names
	}
}

// CompleteLinks offers the links that a VNIC may be over.
func (e *Env) CompleteLinks(ctx context.Context) []string {
	h, err := e.Host()
	if err != nil {
		return nil
	}
	links, err := inventory.Look(ctx, h, inventory.Want{Parts: []inventory.Part{inventory.Links}}).Links()
	if err != nil {
		return nil
	}
	var names []string
	for _, l := range links {
		if l.Class != "vnic" && !inventory.IsMisc(l) { // nor a port of OPTE
			names = append(names, l.Name)
		}
	}
	return names
}

// CompleteKinds offers what the keys of the ledger's facts begin with.
func (e *Env) CompleteKinds(ctx context.Context) []string {
	view, err := e.View(ctx)
	if err != nil {
		return nil
	}
	kinds := map[string]bool{}
	for key := range view.All("") {
		kind, _, _ := strings.Cut(key, "/")
		kinds[kind+"/"] = true
	}
	return slices.Sorted(maps.Keys(kinds))
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

// CompleteKeepers are the words for keepers of sleds and instances.
func CompleteKeepers(context.Context) (words []string) {
	for _, k := range record.Keepers() {
		words = append(words, string(k))
	}
	return words
}
