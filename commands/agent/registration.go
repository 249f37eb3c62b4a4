package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/agent"
	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/agent/inventory"
	"github.com/sledctl/sledctl/agent/reconciler"
	"github.com/sledctl/sledctl/agent/registration"
	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/config"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/devtree"
	"github.com/sledctl/sledctl/illumos/disk"
	"github.com/sledctl/sledctl/peer/nexus"
	"github.com/sledctl/sledctl/sled/hardware"
	"github.com/sledctl/sledctl/sled/storage"
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
	s.Reconciler = reconciler.New(reconciler.Settings{
		Warn:   func(err error) { s.Log.Warn("the sled is not as the control plane wants it", "cause", err) },
		Assign: func(ctx context.Context, a storage.Assignment) error { return assign(ctx, e, a) },
		Apply:  func(ctx context.Context) (storage.Assignment, bool, storage.Applied, error) { return apply(ctx, e) },
	})
	s.Inventory = func(ctx context.Context) (api.Inventory, error) {
		i, err := inventoryOf(ctx, e, id, at)
		if err != nil {
			return i, err
		}
		wanted, err := assigned(ctx, e)
		s.Reconciler.Report(&i, wanted)
		return i, err
	}
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

// serving is what operations of the agent work with: they wait for commands that are at work.
func serving(e *cli.Env) (storage.Settings, operation.Env, error) {
	c, env, err := e.Operation()
	if err != nil {
		return storage.Settings{}, env, err
	}
	env.Wait, env.Observe, env.By.Via = true, nil, operation.ViaAgent
	s, err := cli.StorageSettings(c)
	s.RefreshWitness = e.RefreshWitness
	return s, env, err
}

// assign keeps what the control plane wants.
func assign(ctx context.Context, e *cli.Env, a storage.Assignment) error {
	_, env, err := serving(e)
	if err != nil {
		return err
	}
	return storage.Assign(ctx, env, a)
}

// assigned is what the control plane wants; nil: nothing.
func assigned(ctx context.Context, e *cli.Env) (*api.SledConfig, error) {
	view, err := e.View(ctx)
	if err != nil {
		return nil, err
	}
	a, there, err := storage.Assigned(view)
	if err != nil || !there {
		return nil, err
	}
	var wanted api.SledConfig
	err = json.Unmarshal(a.Body, &wanted)
	return &wanted, err
}

// apply has the U.2s be as the control plane wants them, as bootstrap does.
func apply(ctx context.Context, e *cli.Env) (a storage.Assignment, there bool, is storage.Applied, err error) {
	view, err := e.View(ctx)
	if err != nil {
		return a, there, is, err
	}
	s, env, err := serving(e)
	if err != nil {
		return a, there, is, err
	}
	if _, there, err = storage.Assigned(view); err != nil || !there {
		return a, there, is, err
	}
	if _, err = s.Ensure(ctx, env, []disk.Kind{disk.U2}, false); err != nil && !errors.As(err, new(*storage.PartialError)) {
		return a, there, is, err
	}
	return s.Applied(ctx, env.Host, view)
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
	h, err := devtree.Prefetch(ctx, env.Host)
	if err != nil {
		return api.Inventory{}, err
	}
	seen, err := settings.Look(ctx, h)
	if err != nil {
		return api.Inventory{}, err
	}
	is, err := describe(ctx, h, at)
	if err != nil {
		return api.Inventory{}, err
	}
	pools, perr := seen.Inv.Pools()
	datasets, derr := seen.Inv.Datasets()
	return inventory.Of(inventory.Seen{ID: id, Sled: is, Disks: seen.Disks, Pools: pools, Datasets: datasets}), errors.Join(perr, derr)
}
