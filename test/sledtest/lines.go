package sledtest

import (
	"hash/crc32"
	"os"
	"slices"
	"testing"

	"github.com/sledctl/sledctl/sim/world"
)

// Every row of the lattice is laid out, and its machines go through their lives
// on it: in the end nothing is left of them, and what others have is as it was.

// Strength is how many values each combination of which is explored has.
func Strength() int {
	if Soak() {
		return 3
	}
	return 2
}

const (
	Web1     = "instance ensure web1" + Web1NICs
	Web1NICs = " --nic over=net0 --nic over=net1,vlan=7"
)

// VPCConfig is that of a sled whose zones are made from images, and which has OPTE.
const VPCConfig = `
[storage]
slots = "gimlet"
key = "development"
[network]
etherstub = "propolis_stub0"
gz_vnic = "propolis_gz0"
gz_address = "fd00:1122:3344:101::1/64"
underlay = "fd00:1122:3344:101::/64"
gateway = "fd00:1122:3344:101::1"
guest_link = "net0"
opte_links = ["net0", "net1"]
opte_address = "fd00:1122:3344:101::1"
`

// TunedConfig has an MTU, so that making a VNIC takes two commands.
const TunedConfig = `
[storage]
slots = "gimlet"
key = "development"
[network]
etherstub = "propolis_stub0"
gz_vnic = "propolis_gz0"
gz_address = "10.77.0.1/16"
underlay = "10.77.0.0/16"
guest_link = "net0"
mtu = 1500
`

// Quick says whether a developer waits: -short, and no race detector, which is to see
// more than that.
func Quick() bool { return testing.Short() && !Raced }

// Sample skips three of four cases of a table where a developer waits or the race detector
// watches, which one case after the other tells nothing new; always the same ones.
func Sample(t *testing.T, name string) {
	t.Helper()
	if testing.Short() && crc32.ChecksumIEEE([]byte(name))%4 != 0 {
		t.Skip("one case of four, where a developer waits or the race detector watches")
	}
}

// Soak says whether time is no matter.
func Soak() bool { return os.Getenv("SLEDCTL_SOAK") != "" }

func (s *Operator) Zones() (names []string) {
	err := s.World().View(s.T.Context(), func(tx *world.Tx) error {
		for _, z := range tx.State.Zones {
			names = append(names, z.Name)
		}
		return nil
	})
	if err != nil {
		s.T.Fatal(err)
	}
	slices.Sort(names)
	return names
}
