package network

import (
	"testing"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/vnic"
)

// A MAC address that is drawn is none that a link has, also where the first one that would be
// drawn is.
func TestADrawnMACIsFree(t *testing.T) {
	first := operation.DeriveMAC("intent", "vnic0")
	inv := inventory.Of(inventory.Listings{Links: []vnic.Link{{Name: "db1n0", Class: "vnic", MAC: first}}})
	switch drawn := drawMAC(inv, "intent", "vnic0"); {
	case drawn == first:
		t.Errorf("%s is db1n0's", drawn)
	case drawMAC(inventory.Of(inventory.Listings{}), "intent", "vnic0") != first:
		t.Errorf("where it is free, %s is not drawn", first)
	}
}
