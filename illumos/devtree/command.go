package devtree

import "github.com/sledctl/sledctl/host"

// command shows the device tree: with -v the properties and device links, with -D the
// drivers.
func command() host.Command {
	return host.Command{Program: "prtconf", Args: []string{"-vD"}, ReadOnly: true}
}
