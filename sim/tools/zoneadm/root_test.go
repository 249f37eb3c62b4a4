package zoneadm

import (
	"testing"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/boot"
	"github.com/sledctl/sledctl/test/hosttest"
)

// Two zones can have one root, if they are told to, but not at a time
// (vplat_create).
func TestARootIsUsedOnce(t *testing.T) {
	tx := world.NewTx(boot.Fresh(boot.Options{}), world.Now(), hosttest.Memory())
	c := world.Config{Brand: "sparse", Zonepath: "/zones/z1", IPType: "exclusive"}
	z := &world.Zone{Name: "z2", State: "installed", Config: c}
	tx.State.Zones = append(tx.State.Zones, z, &world.Zone{
		Name: "z1", State: "installed", Config: c, Kernel: &world.Kernel{ID: 1, State: "running", Config: c},
	})
	m := startDaemon(tx, z, "boot")
	m.brand = &brand{}
	if m.begin() != nil || m.d.Lines[len(m.d.Lines)-1] != "not simulated: zone root /zones/z1/root already in use" {
		t.Errorf("said %q", m.d.Lines)
	}
}
