// Package instance is sledctl instance, done here or by a sled's agent.
package instance

import (
	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
)

// New is the command instance.
func New(env *cli.Env) *cobra.Command {
	cmd := cli.Group("instance", "Manage VMs, each in its own zone", "")
	env.Add(cmd, []string{"instance"}, []cli.Word{
		{Name: "ensure", Make: newEnsure},
		{Name: "list", Make: newList},
		{Name: "get", Make: newGet},
		{Name: "edit", Make: newEdit},
		{Name: "start", Make: newStart},
		{Name: "stop", Make: newStop},
		{Name: "reboot", Make: newReboot},
		{Name: "migrate", Make: newMigrate},
		{Name: "delete", Make: newDelete},
		{Name: "keeper", Make: newKeeper},
		{Name: "snapshot", Make: newSnapshot},
		{Name: "copy", Make: newCopy},
		{Name: "export", Make: newExport},
		{Name: "import", Make: newImport},
		{Name: "adopt", Make: newAdopt},
		{Name: "wait", Make: newWait},
		{Name: "watch", Make: newWatch},
		{Name: "console", Make: newConsole},
		{Name: "logs", Make: newLogs},
		{Name: "history", Make: newHistory},
	})
	return cmd
}
