package commands

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
)

func newVersion(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of sledctl",
		Example: `  sledctl version`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(env.Streams.Out, "sledctl %s %s/%s %s\n", versionText(env.Version), runtime.GOOS, runtime.GOARCH, runtime.Version())
			return err
		},
	}
}

// versionText is what the release was built as, else what Go recorded.
func versionText(version string) string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "devel"
}

func newExitCodes(*cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "Print what each exit code means",
		Long: `Print what each exit code means. If something is left on the host, 3 wins over 1, 6, 7 and 130.

    0   done, or nothing to do (also deleting what does not exist; with --must-exist that is 4)
    1   failed, nothing left behind
    2   usage: a flag, an argument, a document or the configuration is wrong
    3   failed halfway, resumable: run it again
    4   not found
    5   conflict: it exists and differs
    6   locked by another process
    7   deadline passed
    8   refused: protected, needs --yes, needs privileges, needs bootstrap
    9   the ledger is unreadable, misses copies, or its copies disagree
   10   with --detailed-exitcode: there are differences; of status --check and of several sleds: ATTENTION
   11   of status --check and of several sleds: TROUBLE
  130   interrupted`,
	}
}
