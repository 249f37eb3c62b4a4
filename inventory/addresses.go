package inventory

import (
	"context"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/ipadm"
)

// Addresses is the part that lists the addresses of the global zone (ipadm
// show-addr). Those of other zones are looked at where a zone is.
const Addresses Part = "addresses"

// Addresses lists the address objects of the global zone.
func (inv *Inventory) Addresses() ([]ipadm.Address, error) { return inv.addresses, inv.Know(Addresses) }

func lookAddresses(ctx context.Context, h host.Host) ([]ipadm.Address, error) {
	return ipadm.Addresses(ctx, h, "")
}
