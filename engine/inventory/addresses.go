package inventory

import (
	"context"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/ipadm"
)

// Addresses is the part that lists the addresses of the global zone (ipadm
// show-addr). Those of other zones are looked at where a zone is.
const Addresses Part = "addresses"

// Addresses lists the address objects of the global zone.
func (inv *Inventory) Addresses() ([]ipadm.Address, error) { return inv.addresses, inv.Know(Addresses) }

// AddressesOn lists the addresses that the global zone has on a link; an object
// that has none yet stands for itself.
func (inv *Inventory) AddressesOn(link string) []string {
	var all []string
	for _, a := range inv.addresses {
		switch on, _, _ := strings.Cut(a.Object, "/"); {
		case on != link:
		case a.Address.IsValid():
			all = append(all, a.Address.String())
		default:
			all = append(all, a.Object)
		}
	}
	return all
}

func lookAddresses(ctx context.Context, h host.Host) ([]ipadm.Address, error) {
	return ipadm.Addresses(ctx, h, "")
}
