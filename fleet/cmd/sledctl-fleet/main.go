// Sledctl-fleet runs VMs on many sleds, by way of Kubernetes. docs/fleet.md says which of
// its parts runs where.
package main

import (
	"fmt"
	"os"

	"github.com/sledctl/sledctl/fleet/command"
)

var version = "devel" // of the build

func main() {
	if err := command.New(version).Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "error: "+err.Error())
		os.Exit(command.ExitCode(err))
	}
}
