package cli

import (
	"context"
	"errors"
	"io/fs"
	"net/netip"
	"path"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/commands/config"
	"github.com/sledctl/sledctl/engine/bundle"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/propolis/packaging"
	"github.com/sledctl/sledctl/sled/base"
	"github.com/sledctl/sledctl/sled/bootstrap"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/memory"
	"github.com/sledctl/sledctl/sled/network"
	"github.com/sledctl/sledctl/sled/reap"
	"github.com/sledctl/sledctl/sled/snapshot"
	"github.com/sledctl/sledctl/sled/storage"
	"github.com/sledctl/sledctl/sled/volume"
)

// How the configuration becomes the settings of the domain packages.

// Prefixes are those of the names that sledctl gives.
func Prefixes(c config.Config) naming.Prefixes { return c.Names.Prefixes() }

// NetworkSettings are what the network takes from the configuration.
func NetworkSettings(c config.Config) network.Settings {
	return network.Settings{
		Names: Prefixes(c), ControlLink: c.Network.ControlLink, Etherstub: c.Network.Etherstub,
		GuestLink: c.Network.GuestLink, GZVNIC: c.Network.GZVNIC, GZAddress: c.Network.GZAddress, MTU: c.Network.MTU,
	}
}

// brand is the one brand whose zones can be cloned and hold little.
const brand = "sparse"

// BaseSettings are what bases take from the configuration.
func BaseSettings(c config.Config) base.Settings {
	return base.Settings{Names: Prefixes(c), Brand: brand, Packaging: packagingSettings(c)}
}

func packagingSettings(c config.Config) packaging.Settings {
	return packaging.Settings{Kind: packaging.Kind(c.Propolis.Packaging), Directory: c.Propolis.Directory, Images: c.Propolis.Images}
}

// Instances are the settings of instances, and what their operations work with.
func (e *Env) Instances(ctx context.Context) (instance.Settings, operation.Env, error) {
	c, env, err := e.Operation()
	if err != nil {
		return instance.Settings{}, env, err
	}
	s, err := e.instanceSettings(ctx, c, env.Host)
	return s, env, err
}

// NoInstances are the settings on a sled that runs no VMs: what they are recorded to be,
// but no network.
func (e *Env) NoInstances() (instance.Settings, operation.Env, error) {
	c, env, err := e.Operation()
	if err != nil {
		return instance.Settings{}, env, err
	}
	s, err := e.settingsOn(c, env.Host, network.Record{})
	return s, env, err
}

// instanceSettings are made of the configuration, and of what the network
// has recorded.
func (e *Env) instanceSettings(ctx context.Context, c config.Config, h host.Host) (instance.Settings, error) {
	view, err := e.View(ctx)
	if err != nil {
		return instance.Settings{}, err
	}
	net, prepared, err := network.Load(view)
	if err != nil {
		return instance.Settings{}, err
	}
	if !prepared {
		return instance.Settings{}, &failure.RefusedError{Err: errors.New("the sled's network is not prepared"), Advice: failure.PrepareHint}
	}
	return e.settingsOn(c, h, net)
}

// settingsOn are made of the configuration, on a sled with this network.
func (e *Env) settingsOn(c config.Config, h host.Host, net network.Record) (instance.Settings, error) {
	namespace, err := SledName(c, h.Files())
	if err != nil {
		return instance.Settings{}, err
	}
	s := zoneSettings(c)
	s.Asks = record.Operator
	s.Namespace, s.ControlLink, s.GZVNIC, s.GuestLink = naming.NamespaceID(namespace), net.ControlLink, net.GZVNIC, c.Network.GuestLink
	s.CPUs, s.Memory = c.Instance.CPUs, uint64(c.Instance.Memory)
	s.Pools, s.Reservoir, s.RunDir, s.Bundles = c.Storage.ZonePools, c.Instance.Reservoir != (config.Reservoir{}), c.Paths.Run, BundleSettings(c)
	s.MakeBase, s.Versions = makeBase(c), &e.versions
	s.SecretDir = SecretDir(c, h)
	withVolumes(c, &s, snapshot.Record{})
	if c.Network.GZAddress.IsValid() {
		s.Reserved = []netip.Addr{c.Network.GZAddress.Addr()}
	}
	if s.GuestLink == "" && net.Etherstub == "" {
		s.GuestLink = net.ControlLink
	}
	return s, nil
}

// zoneSettings are what the zones of instances follow from, which the configuration
// alone says.
func zoneSettings(c config.Config) instance.Settings {
	return instance.Settings{
		Names: Prefixes(c), MTU: c.Network.MTU, Underlay: c.Network.Underlay, Gateway: c.Network.Gateway,
		OPTE:     layout.OPTE{Links: c.Network.OPTELinks, Address: c.Network.OPTEAddress, Boundary: c.Network.OPTEBoundary},
		Propolis: PropolisSettings(c), Base: recordedBase, Disk: recordedDisk, Volume: volume.PathOf, Spares: c.Instance.Spares, SparesBooted: c.Instance.SparesBooted, Pools: c.Storage.ZonePools,
	}
}

// SecretDir is next to the ledger, where secrets lie that have no encrypted
// dataset; empty: there is no place for it.
func SecretDir(c config.Config, h host.Host) string {
	home := ledger.WantedLocations(ledger.Find(h.Files(), c.Paths.Ledger))
	if len(home) == 0 {
		return ""
	}
	return path.Join(home[0].Directory, "sledctl-secrets")
}

// PropolisSettings are those of the server, and of how it comes into zones.
func PropolisSettings(c config.Config) layout.Propolis {
	p := layout.Propolis{Packaging: packagingSettings(c), Binary: c.Propolis.Binary, Bootrom: c.Propolis.Bootrom, LibraryPath: c.Propolis.LibraryPath, Port: c.Propolis.Port,
		FMRI: base.FMRI}
	below := func(name string) string {
		if path.IsAbs(name) {
			return name
		}
		return path.Join(c.Propolis.Directory, name)
	}
	p.Binary, p.Bootrom = below(p.Binary), below(p.Bootrom)
	return p
}

func recordedBase(view ledger.View, pool string) (instance.Base, bool) {
	r, ok := base.Current(view, pool)
	return instanceBase(r), ok
}

func recordedDisk(view ledger.View, pool string) string {
	known, _ := storage.Records(view) // an error is reported by what needs the records
	for _, r := range known {
		if r.Pool == pool {
			return r.Place()
		}
	}
	return ""
}

// makeBase creates the base zones that instances lack.
func makeBase(c config.Config) func(context.Context, operation.Env, string, bool, bool) (instance.Base, operation.Report, error) {
	return func(ctx context.Context, env operation.Env, pool string, dryRun, keep bool) (instance.Base, operation.Report, error) {
		made, report, err := BaseSettings(c).Ensure(ctx, env, pool, dryRun, keep)
		return instanceBase(made), report, err
	}
}

// fillSpares has zones cloned ahead. A base that a dry run has planned is taken for made.
func fillSpares(c config.Config) func(context.Context, operation.Env, string, base.Record, bool) (operation.Report, error) {
	return func(ctx context.Context, env operation.Env, pool string, from base.Record, dryRun bool) (operation.Report, error) {
		s := zoneSettings(c)
		if dryRun && from.UUID == "" {
			planned := instanceBase(from)
			planned.Planned = true
			s.Base = func(ledger.View, string) (instance.Base, bool) { return planned, true }
		}
		return s.FillSpares(ctx, env, pool, dryRun)
	}
}

// SparePools lists the pools that have a base, in order.
func SparePools(view ledger.View) []string {
	bases, _ := base.All(view) // an error is reported by what needs the records
	var pools []string
	for _, b := range bases {
		pools = append(pools, b.Pool)
	}
	slices.Sort(pools)
	return slices.Compact(pools)
}

// instanceBase is a base as an instance is made from it.
func instanceBase(r base.Record) instance.Base {
	return instance.Base{Zone: r.Zone, UUID: r.UUID, Dataset: r.Dataset, Mark: r.Mark, Brand: r.Brand}
}

// SledName is what tells this sled from others: the configured name, else the
// name of the node.
func SledName(c config.Config, files host.Files) (string, error) {
	if c.Names.Sled != "" {
		return c.Names.Sled, nil
	}
	data, err := host.ReadFile(files, "/etc/nodename")
	if errors.Is(err, fs.ErrNotExist) {
		return "sled", nil
	}
	return strings.TrimSpace(string(data)), err
}

// BootstrapSettings are what bootstrap takes from the configuration.
func (e *Env) BootstrapSettings() (bootstrap.Settings, error) {
	c, err := e.Config()
	if err != nil {
		return bootstrap.Settings{}, err
	}
	disks, err := StorageSettings(c)
	if err != nil {
		return bootstrap.Settings{}, err
	}
	disks.FormatBlank, disks.Lost, disks.RefreshWitness = e.FormatBlank, e.NewLedger, e.RefreshWitness
	e.WarnOfKeys(disks)
	return bootstrap.Settings{
		Storage: disks, Memory: memory.Settings{Auto: c.Instance.Reservoir.Auto, Percent: c.Instance.Reservoir.Percent, Reservoir: uint64(c.Instance.Reservoir.Size)}, Network: NetworkSettings(c), Reap: ReapSettings(c), Base: BaseSettings(c),
		CreateLedger: e.createLedger, RelocateLedger: e.relocateLedger, RefreshWitness: e.RefreshWitness, Pools: e.ZonePools,
		Reread:     func() (bootstrap.Settings, error) { e.rereadConfig(); return e.BootstrapSettings() },
		FillSpares: fillSpares(c), Spares: c.Instance.Spares,
		Begin: func(part string) { e.Progress.Say("%s", part) },
	}, nil
}

// ZonePools lists the pools that zones may be put on.
func (e *Env) ZonePools(ctx context.Context, h host.Host) ([]string, error) {
	c, err := e.Config()
	if err != nil {
		return nil, err
	}
	return zonePools(ctx, c, h)
}

func zonePools(ctx context.Context, c config.Config, h host.Host) ([]string, error) {
	if len(c.Storage.ZonePools) > 0 {
		return c.Storage.ZonePools, nil
	}
	return storage.ZonePools(ctx, h)
}

// ReapSettings are what reap takes from the configuration.
func ReapSettings(c config.Config) reap.Settings {
	return reap.Settings{
		Names: Prefixes(c), Links: NetworkSettings(c).Under(), Keys: path.Join(c.Paths.Run, "key"), Bundles: BundleSettings(c),
		BootsAgain: zoneSettings(c).BootsAgain, JudgeSpares: zoneSettings(c).JudgeSpares,
	}
}

// BundleSettings are what bundles take from the configuration.
func BundleSettings(c config.Config) bundle.Settings {
	return bundle.Settings{Dir: c.Bundle.Directory, Max: int64(c.Bundle.MaxSize), Lock: bundle.LockName(c.Paths.Run)}
}
