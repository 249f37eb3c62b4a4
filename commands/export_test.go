package commands

import "github.com/sledctl/sledctl/sim/world"

// SimulatedConfigOf is what a fresh simulated sled of a mode is given.
func SimulatedConfigOf(mode world.Mode) string { return simConfig(mode) }
