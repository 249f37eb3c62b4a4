package agent

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/agent"
	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/agent/inventory"
	"github.com/sledctl/sledctl/agent/registration"
	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/config"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/peer/nexus"
	"github.com/sledctl/sledctl/sled/hardware"
)

// repoDepotPort is where a sled agent serves artifacts of updates (omicron common/src/address.rs,
// REPO_DEPOT_PORT). A registration must name one; here nobody answers there.
const repoDepotPort = 12348

// register sets how the sled makes itself known to the control plane, if nexus.sled_id says as
// what.
func register(e *cli.Env, c config.Nexus, s *agent.Settings) error {
	if c.SledID == "" {
		return nil
	}
	h, err := e.Host()
	if err != nil {
		return err
	}
	at, err := reachable(s.Listen)
	if err != nil {
		return err
	}
	id, rack := uuid.MustParse(c.SledID), uuid.MustParse(cmp.Or(c.RackID, uuid.Nil.String()))
	s.Inventory = func(ctx context.Context) (api.Inventory, error) { return inventoryOf(ctx, e, id, at) }
	s.Identifiers = func(ctx context.Context) (api.Identifiers, error) {
		is, err := hardware.Look(ctx, h)
		return api.Identifiers{RackID: rack, SledID: id, Model: is.Board.Part, Revision: is.Board.Revision, Serial: is.Board.Serial}, err
	}
	s.Registration = &registration.Registration{Settings: registration.Settings{
		ID: id, Client: nexus.Client{Host: h, URL: s.Nexus}, Draw: rand.Float64,
		Sled: func(ctx context.Context) (nexus.Sled, error) { return describe(ctx, h, at) },
		Log:  func(text string, args ...any) { s.Log.Info(text, args...) },
		Warn: func(err error) { s.Log.Warn("the control plane does not know this sled as it is", "cause", err) },
	}}
	return nil
}

// reachable is the address by which the control plane reaches the agent: sleds have IPv6
// addresses (SocketAddrV6 in omicron).
func reachable(listen []agent.Address) (netip.AddrPort, error) {
	var all []netip.AddrPort
	for _, l := range listen {
		at, err := netip.ParseAddrPort(l.Name)
		if err == nil && l.Network == "tcp" && at.Addr().Is6() && !at.Addr().IsUnspecified() && at.Port() != 0 {
			all = append(all, at)
		}
	}
	if len(all) == 0 {
		return netip.AddrPort{}, &cli.UsageError{Text: "nexus.sled_id is set, and the agent listens on no address by which the control plane could reach it",
			Advice: "set agent.listen, or give --listen, to tcp:[IPV6-ADDRESS]:PORT"}
	}
	return all[max(0, slices.IndexFunc(all, func(at netip.AddrPort) bool { return !at.Addr().IsLoopback() }))], nil
}

func describe(ctx context.Context, h host.Host, at netip.AddrPort) (nexus.Sled, error) {
	is, err := hardware.Look(ctx, h)
	return nexus.Sled{
		Address: at.String(), RepoDepotPort: repoDepotPort, Role: nexus.RoleGimlet,
		Baseboard: nexus.Baseboard{Part: is.Board.Part, Serial: is.Board.Serial, Revision: is.Board.Revision},
		Threads:   uint32(is.Threads), RAM: is.RAM, Reservoir: is.Reservoir, CPUFamily: string(is.Family),
	}, err
}

// inventoryOf is what the sled has.
func inventoryOf(ctx context.Context, e *cli.Env, id uuid.UUID, at netip.AddrPort) (api.Inventory, error) {
	c, env, err := e.Operation()
	if err != nil {
		return api.Inventory{}, err
	}
	settings, err := cli.StorageSettings(c)
	if err != nil {
		return api.Inventory{}, err
	}
	seen, err := settings.Look(ctx, env.Host)
	if err != nil {
		return api.Inventory{}, err
	}
	is, err := describe(ctx, env.Host, at)
	if err != nil {
		return api.Inventory{}, err
	}
	pools, perr := seen.Inv.Pools()
	datasets, derr := seen.Inv.Datasets()
	return inventory.Of(inventory.Seen{ID: id, Sled: is, Disks: seen.Disks, Pools: pools, Datasets: datasets}), errors.Join(perr, derr)
}
