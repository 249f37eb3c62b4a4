package instance

import (
	"fmt"
	"strconv"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/propolis/packaging"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// suits refuses what cannot be brought up this way.
func suits(k layout.Packaging, s Settings, inv *inventory.Inventory, a record.Address) error {
	if link, there := inv.Link(s.ControlLink); there && link.MTU != 0 && k.MTU > link.MTU {
		return &NarrowLinkError{Link: link.Name, Is: link.MTU, Needed: k.MTU}
	}
	if !k.ByItself {
		return nil
	}
	if s.MTU != 0 && s.MTU != k.MTU {
		return &record.InputError{
			Field: "network.mtu", Value: strconv.Itoa(s.MTU),
			Want: fmt.Sprintf("%d or 0: the service in the zone image sets it", k.MTU),
		}
	}
	if a.Mode != record.Static || !a.Prefix.Addr().Is6() || a.Prefix.Bits() != packaging.PrefixLength || !layout.GatewayOf(s.Blueprint(), a).IsValid() {
		want := fmt.Sprintf(
			"an IPv6 address, e.g. fd00::5/%d, with a gateway, which the service in the zone image wants "+
				"(network.underlay and network.gateway give both)",
			packaging.PrefixLength,
		)
		return &record.InputError{Field: "address", Value: a.String(), Want: want}
	}
	return nil
}

// NarrowLinkError is a control link over which VNICs cannot have the MTU that
// they must have.
type NarrowLinkError struct {
	Link       string
	Is, Needed int
}

// Error shows both.
func (e *NarrowLinkError) Error() string {
	return fmt.Sprintf("the control link %s has an MTU of %d, and control VNICs need %d", e.Link, e.Is, e.Needed)
}

func (*NarrowLinkError) Kind() fault.Kind { return fault.Refused }

// Hint says what would be right.
func (e *NarrowLinkError) Hint() string {
	return "to give the sled its own control network, set network.etherstub; or run: " +
		"dladm set-linkprop -p mtu=" + strconv.Itoa(e.Needed) + " " + e.Link
}
