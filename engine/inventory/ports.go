package inventory

import (
	"context"
	"slices"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/opte"
	"github.com/sledctl/sledctl/vnic"
)

// lookPorts puts MAC addresses to those of the links that are ports of OPTE. opteadm is asked only
// if there is a link of their class, which few sleds have.
func lookPorts(ctx context.Context, h host.Host, links []vnic.Link) error {
	if !slices.ContainsFunc(links, IsMisc) {
		return nil
	}
	ports, err := opte.List(ctx, h)
	if err != nil {
		return err
	}
	for i := range links {
		at := slices.IndexFunc(ports, func(p opte.Listed) bool { return p.Name == links[i].Name })
		if IsMisc(links[i]) && at >= 0 {
			links[i].MAC = ports[at].MAC
		}
	}
	return nil
}

// IsMisc reports whether a link is of the class of ports. One without a MAC is no port: another
// driver's link, or one whose port was not made.
func IsMisc(l vnic.Link) bool { return l.Class == opte.Class }

// HasPorts reports whether there are ports on the sled.
func (inv *Inventory) HasPorts() bool {
	return slices.ContainsFunc(inv.links, func(l vnic.Link) bool { return IsMisc(l) && l.MAC != "" })
}
