package network_test

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/boot"
	"github.com/sledctl/sledctl/sim/world/network"
)

// newNetworkTx is a sled with the VNICs v0 and v1 over an etherstub.
func newNetworkTx(t *testing.T) *world.Tx {
	t.Helper()
	s := boot.Fresh(boot.Options{Seed: 3})
	tx := world.NewTx(s, s.Booted.Add(time.Minute), nil)
	if err := network.CreateEtherstub(tx, "stub0", true); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"v0", "v1"} {
		if err := network.CreateVNIC(tx, network.VNIC{Name: name, Over: "stub0", Temporary: true}); err != nil {
			t.Fatal(err)
		}
	}
	return tx
}

// dls_devnet_setzid in usr/src/uts/common/io/dls/dls_mgmt.c.
func TestALinkIsTakenFromAZoneThatDoesNotUseIt(t *testing.T) {
	tx := newNetworkTx(t)
	network.StartStack(tx, "z1")
	if err := network.LendLink(tx, "z1", "v0"); err != nil {
		t.Fatal(err)
	}
	if err := network.LendLink(tx, "z1", "v0"); err != nil {
		t.Errorf("lent to where it is: %v", err)
	}
	if err := network.CreateInterface(tx, "z1", "v0", true); err != nil {
		t.Fatal(err)
	}
	if err := network.LendLink(tx, "z2", "v0"); !errors.Is(err, network.LinkBusy) {
		t.Errorf("plumbed in z1: %v", err)
	}
	if err := network.DeleteInterface(tx, "z1", "v0"); err != nil {
		t.Fatal(err)
	}
	if err := network.LendLink(tx, "z2", "v0"); err != nil || network.FindLink(tx, "v0").Zone != "z2" {
		t.Errorf("unused in z1: %v, in zone %q", err, network.FindLink(tx, "v0").Zone)
	}
	if err := network.LendLink(tx, "z2", "v9"); !errors.Is(err, network.LinkNotFound) {
		t.Errorf("no such link: %v", err)
	}
}

// A machine that runs holds its links in its zone.
func TestAMachineHoldsItsLinks(t *testing.T) {
	tx := newNetworkTx(t)
	tx.State.Processes = []*world.Process{{PID: 1, Zone: world.GlobalZone, VM: &world.VM{Links: []string{"v0"}, Timeline: []world.Timepoint{{State: "Running", From: tx.Now}}}}}
	if err := network.LendLink(tx, "z1", "v0"); !errors.Is(err, network.LinkBusy) {
		t.Errorf("open in a machine: %v", err)
	}
	if err := network.LendLink(tx, "z1", "v1"); err != nil {
		t.Errorf("not open: %v", err)
	}
}

func TestLinksGoBack(t *testing.T) {
	tx := newNetworkTx(t)
	if err := network.LendLink(tx, "z1", "v0"); err != nil {
		t.Fatal(err)
	}
	network.StartStack(tx, "z1")
	if _, err := network.CreateAddress(tx, "z1", network.NewAddress{Object: "v0/v4", Type: "static", Address: "10.0.0.5/24", Temporary: true}); err != nil {
		t.Fatal(err)
	}
	network.ClearStack(tx, "z1")
	if stay := network.ReturnLinks(tx, "z1"); len(stay) != 0 {
		t.Errorf("links that stay: %v", stay)
	}
	if l := network.FindLink(tx, "v0"); l.Zone != "" {
		t.Errorf("v0 after the halt: %+v", l)
	}
	if tx.State.Stacks["z1"] != nil {
		t.Error("the stack of the halted zone is still there")
	}
}

func TestPersistentAddressesOutliveTheHaltOfTheirZone(t *testing.T) {
	tx := newNetworkTx(t)
	if err := network.CreateVNIC(tx, network.VNIC{Name: "p0", Over: "net0"}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := network.LendLink(tx, "z1", "p0"); err != nil {
			t.Fatal(err)
		}
		network.StartStack(tx, "z1")
		if network.FindAddress(tx, "z1", "p0/v4") == nil {
			if _, err := network.CreateAddress(tx, "z1", network.NewAddress{Object: "p0/v4", Type: "static", Address: "10.0.0.5/24"}); err != nil {
				t.Fatal(err)
			}
		}
		zone, ok := network.AddressOwner(tx, netip.MustParseAddr("10.0.0.5"))
		if zone != "z1" || !ok {
			t.Errorf("10.0.0.5 is in %q (%v)", zone, ok)
		}
		network.ClearStack(tx, "z1")
		network.ReturnLinks(tx, "z1")
		if _, ok := network.AddressOwner(tx, netip.MustParseAddr("10.0.0.5")); ok {
			t.Error("a halted zone answers")
		}
	}
	network.DropStack(tx, "z1")
	if tx.State.Stacks["z1"] != nil {
		t.Error("dropped stack is there")
	}
}

func TestMACs(t *testing.T) {
	for text, want := range map[string]string{
		"2:8:20:a1:0:f": "02:08:20:a1:00:0f", "02:08:20:A1:00:0F": "02:08:20:a1:00:0f",
		"2:8:20:a1:0": "", "2:8:20:a1:0:f:1": "", "2:8:20:a1:0:100": "", "2:8:20:a1:0:g": "", "": "", "2:8:20:a1::f": "", "+2:8:20:a1:0:f": "",
	} {
		got, ok := network.ParseMAC(text)
		if ok != (want != "") || ok && got != want {
			t.Errorf("ParseMAC(%q) = %q, %v", text, got, ok)
		}
		if ok && network.PrintMAC(got) != "2:8:20:a1:0:f" {
			t.Errorf("PrintMAC(%q) = %q", got, network.PrintMAC(got))
		}
	}
}

// A DHCP server gives no address to two clients.
func TestLeasesAreFree(t *testing.T) {
	tx := newNetworkTx(t)
	var leases []string
	for i := range 20 {
		name := "n" + string(rune('a'+i)) + "0"
		if err := network.CreateVNIC(tx, network.VNIC{Name: name, Over: "net0", Temporary: true}); err != nil {
			t.Fatal(err)
		}
		a, err := network.CreateAddress(tx, world.GlobalZone, network.NewAddress{Object: name + "/d", Type: "dhcp", Temporary: true})
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(leases, a.Address) || a.Address == "" {
			t.Errorf("lease %q of %s, others %v", a.Address, name, leases)
		}
		leases = append(leases, a.Address)
	}
}
