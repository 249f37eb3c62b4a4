package commands

import (
	"github.com/spf13/cobra"
)

func newInstance(env *Env) *cobra.Command {
	cmd := group("instance", "Manage VMs, each in its own zone", "")
	env.add(cmd, []string{"instance"}, []word{
		{"ensure", newInstanceEnsure}, {"list", newInstanceList}, {"get", newInstanceGet}, {"start", newInstanceStart}, {"stop", newInstanceStop},
		{"reboot", newInstanceReboot}, {"migrate", newInstanceMigrate}, {"delete", newInstanceDelete}, {"adopt", newInstanceAdopt}, {"wait", newInstanceWait},
		{"watch", newInstanceWatch}, {"console", newInstanceConsole}, {"history", newInstanceHistory},
	})
	return cmd
}
