package disk

import "github.com/sledctl/sledctl/host"

// treeCommand shows the device tree: with -v the properties and device links,
// with -D the drivers, by which disks and what they are behind are told.
func treeCommand() host.Command {
	return host.Command{Program: "prtconf", Args: []string{"-vD"}, ReadOnly: true}
}

// contentCommand says what is on a device or file, with what that tells of
// itself.
func contentCommand(device string) host.Command {
	return host.Command{Program: "fstyp", Args: []string{"-a", device}, ReadOnly: true}
}
