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
	wrapAll(root)
	return root
}

// wrapAll wraps the texts as help does.
func wrapAll(cmd *cobra.Command) {
	cmd.Long = wrap(cmd.Long, helpWidth)
	for _, c := range cmd.Commands() {
		wrapAll(c)
	}
}

// Setting is one setting, for the manual.
type Setting = config.Key

// Settings lists all settings, in the order of the configuration file.
func Settings() []Setting { return config.Keys() }

// SimulatedConfig is the configuration that a fresh simulated sled is given,
// for the manual: an example that runs.
func SimulatedConfig() string { return simConfig("") }
