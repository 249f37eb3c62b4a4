// Sledctl-fleet runs VMs on many sleds, by way of Kubernetes. docs/fleet.md says which of
// its parts runs where.
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/sledctl/sledctl/fleet/command"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
)

var version = "devel" // of the build

func main() {
	if err := command.New(version, sled).Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "error: "+err.Error())
		os.Exit(command.ExitCode(err))
	}
}

// sled is the one that we run on, or a simulated one.
func sled(name string) (host.Host, error) {
	if name == "illumos" {
		return host.NewIllumos(host.IllumosOptions{}), nil
	}
	dir, ok := strings.CutPrefix(name, "sim:")
	if !ok {
		return nil, fmt.Errorf("host %q: want illumos or sim:DIR", name)
	}
	simulated, err := sim.Open(dir)
	if err != nil {
		return nil, err
	}
	return simulated.Host(), nil
}
