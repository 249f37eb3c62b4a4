// Sledctl is the command-line suite for the operators of an illumos sled. Called
// under the name of a host command (zoneadm, dladm, …) it is that command, on
// the simulated sled that SLEDCTL_SIM names.
package main

import (
	"os"

	"github.com/sledctl/sledctl/commands"
)

// version is set when a release is built.
var version = ""

func main() {
	os.Exit(commands.Main(os.Args, os.Stdin, os.Stdout, os.Stderr, os.Environ(), version))
}
