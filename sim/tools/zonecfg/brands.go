package zonecfg

import "github.com/sledctl/sledctl/sim/world"

// Brands are the brands of a distribution that can be configured.
func Brands(mode world.Mode) []string {
	switch mode {
	case world.Helios:
		return []string{"omicron1", "ipkg"}
	case world.SmartOS:
		return []string{"joyent", "joyent-minimal", "lx", "bhyve", "kvm"}
	}
	return []string{"sparse", "ipkg", "lipkg", "pkgsrc", "lx", "bhyve", "kvm", "emu", "illumos"}
}
