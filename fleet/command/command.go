// Package command has the command lines of sledctl-fleet.
package command

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/fleet/api"
)

// usageError is a command line that cannot be meant.
type usageError struct{ error }

// ExitCode is that of the program: 2 for a command line that is wrong, else 1.
func ExitCode(err error) int {
	if errors.As(err, new(usageError)) {
		return 2
	}
	return 1
}

// New is the tree of commands. A guard halts VMs on the hosts that sleds gives.
func New(version string, sleds Sleds) *cobra.Command {
	root := &cobra.Command{
		Use:           "sledctl-fleet",
		Short:         "VMs on many sleds, by way of Kubernetes",
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          arguments(cobra.NoArgs),
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(crds(), controllerCommand(), nodeCommand(), guardCommand(sleds), joinCommand(), tokenCommand(), devCommand())
	return root
}

// arguments makes what is wrong with the arguments an error of the command line.
func arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{err}
		}
		return nil
	}
}

func crds() *cobra.Command {
	return &cobra.Command{
		Use:     "crds",
		Short:   "Print the definitions of the fleet's objects",
		Long:    "Print the definitions of the fleet's objects, as YAML for kubectl apply. It changes nothing.",
		Example: "  sledctl-fleet crds | kubectl apply --server-side -f -",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(api.CRDs)
			return err
		},
	}
}
