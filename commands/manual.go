package commands

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/config"
	"github.com/sledctl/sledctl/commands/terminal"
)

// Root is the tree of all commands, for the manual. Nothing is opened or read
// until one of them runs.
func Root() *cobra.Command {
	streams := terminal.System(os.Stdin, os.Stdout, os.Stderr, nil)
	root := newRoot(NewEnv(streams, nil, ""))
	for todo := []*cobra.Command{root}; len(todo) > 0; todo = append(todo[1:], todo[0].Commands()...) {
		todo[0].Long = wrap(todo[0].Long, PageWidth)
	}
	return root
}

// Setting is one setting, for the manual.
type Setting = config.Key

// Settings lists all settings, in the order of the configuration file.
func Settings() []Setting { return config.Keys() }

// SimulatedConfig is the configuration that a fresh simulated sled is given,
// for the manual: an example that runs.
func SimulatedConfig() string { return simConfig("") }
