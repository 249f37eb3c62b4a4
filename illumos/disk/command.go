package disk

import "github.com/sledctl/sledctl/host"

// treeCommand shows the device tree: with -v the properties and device links,
// with -D the drivers, which identify disks and their controllers.
func treeCommand() host.Command {
	return host.Command{Program: "prtconf", Args: []string{"-vD"}, ReadOnly: true}
}

// contentCommand shows what is on a device or file, with the properties that
// the contents carry.
func contentCommand(device string) host.Command {
	return host.Command{Program: "fstyp", Args: []string{"-a", device}, ReadOnly: true}
}
