package system

import (
	"slices"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/packages"
)

// Pkg is pkg(1) as far as the sparse brand depends on it: set-publisher -g ORIGIN NAME,
// unset-publisher NAME, and install and uninstall of entire. What it prints is left out.
func Pkg(tx *world.Tx, c cli.Call) cli.Reply {
	cli.Simulated(len(c.Args) > 1 && c.Zone == world.GlobalZone && tx.State.Mode == world.OmniOS)
	given, operands := cli.Options(c.Args[1:], "g:", nil)
	name := cli.Operand(operands)
	origin := given.One('g')
	var err error
	switch c.Args[0] {
	case "set-publisher":
		cli.Simulated(origin != "")
		err = publisher(tx, name, origin)
	case "unset-publisher":
		err = publisher(tx, name, "")
	case "install", "uninstall":
		cli.Simulated(name == "entire")
		installed := map[string]string{}
		if c.Args[0] == "install" {
			installed[name] = "11-0.151058"
		}
		err = packages.LayInstalled(tx.Files, "omnios", installed)
	default:
		panic(world.Unsimulated{})
	}
	cli.Simulated(err == nil)
	return cli.Reply{}
}

// publisher adds an origin to a publisher, or without one removes it.
func publisher(tx *world.Tx, name, origin string) error {
	all, err := packages.Publishers(tx.Files)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(p packages.Publisher) bool { return p.Name == name })
	switch {
	case origin == "":
		cli.Simulated(i >= 0)
		all = slices.Delete(all, i, i+1)
	case i < 0:
		all = append(all, packages.Publisher{Name: name, Origins: []string{origin}})
	default:
		all[i].Origins = append(all[i].Origins, origin)
	}
	return packages.LayPublishers(tx.Files, all)
}
