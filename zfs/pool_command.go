package zfs

import "github.com/sledctl/sledctl/host"

// poolColumns are those of a pool's line. The lines of its devices have columns
// of their own, whatever is asked for.
const poolColumns = "name,size,allocated,free,health,guid,failmode"

// poolsCommand lists all pools with their devices. -P is full paths: without it
// a file and a disk of one name look the same.
func poolsCommand() host.Command {
	return host.Command{Program: "zpool", Args: []string{"list", "-HpvP", "-o", poolColumns}, ReadOnly: true}
}

// plainPoolsCommand lists all pools where zpool cannot do that, and statusCommand
// their devices.
func plainPoolsCommand() host.Command {
	return host.Command{Program: "zpool", Args: []string{"list", "-H", "-o", "name,guid,health,failmode"}, ReadOnly: true}
}

func statusCommand() host.Command {
	return host.Command{Program: "zpool", Args: []string{"status"}, ReadOnly: true}
}

// poolCommand looks at one pool, on any implementation.
func poolCommand(pool string) host.Command {
	return host.Command{Program: "zpool", Args: []string{"list", "-H", "-o", "name,guid", pool}, ReadOnly: true}
}

// importableCommand looks for pools on the devices of a directory, or on all.
func importableCommand(dir string) host.Command {
	return host.Command{Program: "zpool", Args: append([]string{"import"}, searched(dir)...), ReadOnly: true}
}

func searched(dir string) []string {
	if dir == "" {
		return nil
	}
	return []string{"-d", dir}
}

func createPoolCommand(pool, device string, properties []Property) host.Command {
	args := []string{"create"}
	for _, p := range properties {
		args = append(args, "-o", p.Name+"="+p.Value)
	}
	return host.Command{Program: "zpool", Args: append(args, pool, device)}
}

func setPoolCommand(pool string, p Property) host.Command {
	return host.Command{Program: "zpool", Args: []string{"set", p.Name + "=" + p.Value, pool}}
}

func importCommand(pool, dir string, force bool) host.Command {
	args := []string{"import"}
	if force {
		args = append(args, "-f")
	}
	return host.Command{Program: "zpool", Args: append(append(args, searched(dir)...), pool)}
}

func exportCommand(pool string) host.Command {
	return host.Command{Program: "zpool", Args: []string{"export", pool}}
}
