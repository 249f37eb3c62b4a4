package layout

import (
	"context"
	"fmt"
	"net/netip"
	"path"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/ipadm"
	"github.com/sledctl/sledctl/illumos/smf"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// AskTimeout bounds one question to one Propolis: it answers in microseconds
// or not at all.
const AskTimeout = time.Second

// TargetOf is Target. An address that others give is read from the zone when it is
// needed.
func TargetOf(b Blueprint, r record.Record) propolis.Target {
	t := propolis.Target{Name: r.Name, Port: b.Propolis.Port, Versions: b.Versions}
	if r.Incarnation != nil {
		t.Log = propolis.Log{Root: path.Join(r.Incarnation.Zonepath, "root"), File: smf.LogFile(ServiceFMRI(b, r))}
	}
	if r.Spec.Address.Mode == record.Static {
		t.Address = netip.AddrPortFrom(r.Spec.Address.Prefix.Addr(), b.Propolis.Port)
		return t
	}
	t.Programs = []string{"zlogin"}
	zoneName, object, port := r.Incarnation.Zone, AddressObject(b, r), b.Propolis.Port
	t.Find = func(ctx context.Context, h host.Host) (netip.AddrPort, error) {
		all, err := ipadm.Addresses(ctx, h, zoneName)
		if err != nil {
			return netip.AddrPort{}, err
		}
		for _, a := range all {
			if a.Object == object && a.Address.IsValid() && !a.Address.Addr().IsLinkLocalUnicast() {
				return netip.AddrPortFrom(a.Address.Addr(), port), nil
			}
		}
		return netip.AddrPort{}, fmt.Errorf("%s in zone %s: %w", object, zoneName, host.ErrTransient)
	}
	return t
}

// OwnTarget is the target that has to have the instance's machine, and no other.
func OwnTarget(b Blueprint, r record.Record) propolis.Target {
	t := TargetOf(b, r)
	t.ID = r.ID
	return t
}
