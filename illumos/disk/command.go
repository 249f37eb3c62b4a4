package disk

import "github.com/sledctl/sledctl/host"

// contentCommand shows what is on a device or file, with the properties that
// the contents carry.
func contentCommand(device string) host.Command {
	return host.Command{Program: "fstyp", Args: []string{"-a", device}, ReadOnly: true}
}
