package doctor

import (
	"context"
	"errors"
	"time"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/ipadm"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/illumos/reservoir"
	"github.com/sledctl/sledctl/illumos/system"
	"github.com/sledctl/sledctl/propolis/packaging"
	"github.com/sledctl/sledctl/vnic"
	"github.com/sledctl/sledctl/zfs"
)

// Settings are what is configured and recorded, as far as a check compares it with the
// host.
type Settings struct {
	RunDir    string // where the last result is kept
	LedgerDir string // paths.ledger; empty: the M.2s
	// Lacking is why Propolis cannot come into a zone here; nil: it can.
	Lacking error
	// Image says that zones are installed from Oxide's image, which has needs of its own.
	Image bool
	// Server is the server where Image does not say that it is in an image.
	Server Server

	Reservoir uint64 // instance.reservoir, in bytes; 0: left as it is
	Memory    uint64 // of an instance that does not say

	ControlLink, Etherstub string // network.control_link, network.etherstub
	MTU                    int    // of control VNICs; 0: that of the link
	DHCP                   bool   // control addresses are given, not chosen from network.underlay

	// Packaging is how Propolis comes into a zone here; empty: it cannot.
	Packaging packaging.Kind
	Images    []string // propolis.images

	Program string // this program, as the host names it; empty: it lies elsewhere

	Names naming.Prefixes // by which zones are sledctl's
	// Patience is how long the questions may take; 0: Patience.
	Patience time.Duration

	// Records reads what the ledger records.
	Records func(context.Context) (Recorded, error)
}

// Recorded is what the ledger records; the zero value where there is none yet.
type Recorded struct {
	ControlLink string // that it has chosen
	Largest     uint64 // memory of the largest instance, in bytes
	Instance    string // its name; empty: there is none
	Bases       int    // base zones that were finished
	// Objects are the zones, by name, and the VMs, by instance, that it has.
	Objects map[string]bool
}

// Question is something that the host is asked, for one check or for several.
type Question string

// The questions.
const (
	askRelease    Question = "release"
	askKernel     Question = "kernel"
	askZone       Question = "zone"
	askPrivileges Question = "privileges"
	askPools      Question = "pools"
	askMounts     Question = "mounts"
	askLedger     Question = "ledger"
	askSync       Question = "sync"
	askReservoir  Question = "reservoir"
	askSwap       Question = "swap"
	askRecords    Question = "records"
	askLinks      Question = "links"
	askRoute      Question = "route"
	askAddresses  Question = "addresses"
	askServices   Question = "services of other owners"
	askOthers     Question = "zones and VMs of other owners"
	askPublisher  Question = "publisher"
	askEntire     Question = "entire"
	askBaseline   Question = "baseline"
	askImages     Question = "images"
	askInstalled  Question = "services of sledctl"
	askVMM        Question = "vmm"
	askViona      Question = "viona"
	askServer     Question = "server"
	askBuild      Question = "build"
	askBootrom    Question = "bootrom"
)

// Seen are the answers. A check reads those that it asks for.
type Seen struct {
	Settings   Settings
	Now        time.Time
	Release    string
	Kernel     system.Kernel
	Zone       string
	Privileges system.Privileges
	Pools      []zfs.Pool
	Mounts     []system.Mount
	Ledger     []Place
	Sync       map[string]string // of the datasets that hold the ledger, or will
	Reservoir  reservoir.State
	Swap       system.Swap
	Records    Recorded
	Links      []vnic.Link
	Route      string // the link of the default route; empty: there is none
	Addresses  []ipadm.Address
	Services   []inventory.OtherService
	Others     *inventory.Inventory // as far as zones and VMs of other owners show in it
	Publisher  Publisher
	Entire     string // the version that is installed; empty: none
	Baseline   string // the directory of it; empty: there is none
	Images     []packaging.Sum
	Installed  Installed
	VMM, Viona int // versions of the interfaces; 0: there is no such device
	Server     Program
	Build      packaging.Build
	Bootrom    int64 // size of the bootrom; -1: it does not exist
	// Unknown are the questions without an answer, and why.
	Unknown map[Question]error
}

// Place is where a copy of the ledger is, or may be.
type Place struct {
	Directory string
	Written   time.Time // zero: there is none
}

// ask asks one question; the answer puts itself into Seen.
type ask func(context.Context, Settings, host.Host) (put func(*Seen), err error)

// asked is an ask whose answer goes into one place.
func asked[T any](query func(context.Context, Settings, host.Host) (T, error), place func(*Seen) *T) ask {
	return func(ctx context.Context, s Settings, h host.Host) (func(*Seen), error) {
		value, err := query(ctx, s, h)
		return func(seen *Seen) { *place(seen) = value }, err
	}
}

// plain is a query that needs no settings.
func plain[T any](query func(context.Context, host.Host) (T, error)) func(context.Context, Settings, host.Host) (T, error) {
	return func(ctx context.Context, _ Settings, h host.Host) (T, error) { return query(ctx, h) }
}

func asks() map[Question]ask {
	return map[Question]ask{
		askRelease: asked(func(_ context.Context, _ Settings, h host.Host) (string, error) { return system.Release(h.Files()) },
			func(s *Seen) *string { return &s.Release }),
		askKernel:     asked(plain(system.QueryKernel), func(s *Seen) *system.Kernel { return &s.Kernel }),
		askZone:       asked(plain(system.QueryZone), func(s *Seen) *string { return &s.Zone }),
		askPrivileges: asked(plain(system.QueryPrivileges), func(s *Seen) *system.Privileges { return &s.Privileges }),
		askPools:      asked(plain(zfs.Pools), func(s *Seen) *[]zfs.Pool { return &s.Pools }),
		askMounts:     asked(plain(system.QueryMounts), func(s *Seen) *[]system.Mount { return &s.Mounts }),
		askLedger:     asked(queryLedger, func(s *Seen) *[]Place { return &s.Ledger }),
		askSync:       asked(querySync, func(s *Seen) *map[string]string { return &s.Sync }),
		askReservoir:  asked(plain(reservoir.Query), func(s *Seen) *reservoir.State { return &s.Reservoir }),
		askSwap:       asked(plain(system.QuerySwap), func(s *Seen) *system.Swap { return &s.Swap }),
		askRecords:    asked(queryRecords, func(s *Seen) *Recorded { return &s.Records }),
		askLinks: asked(func(ctx context.Context, _ Settings, h host.Host) ([]vnic.Link, error) {
			links, _, err := vnic.List(ctx, h)
			return links, err
		}, func(s *Seen) *[]vnic.Link { return &s.Links }),
		askVMM:     asked(plain(queryDevice(host.VMM)), func(s *Seen) *int { return &s.VMM }),
		askViona:   asked(plain(queryDevice(host.Viona)), func(s *Seen) *int { return &s.Viona }),
		askServer:  asked(queryServer, func(s *Seen) *Program { return &s.Server }),
		askBuild:   asked(queryBuild, func(s *Seen) *packaging.Build { return &s.Build }),
		askBootrom: asked(queryBootrom, func(s *Seen) *int64 { return &s.Bootrom }),
		askRoute:   asked(plain(queryRoute), func(s *Seen) *string { return &s.Route }),
		askAddresses: asked(func(ctx context.Context, _ Settings, h host.Host) ([]ipadm.Address, error) {
			return ipadm.Addresses(ctx, h, "")
		}, func(s *Seen) *[]ipadm.Address { return &s.Addresses }),
		askServices: asked(plain(inventory.OtherServices), func(s *Seen) *[]inventory.OtherService { return &s.Services }),
		askOthers:   asked(plain(queryOthers), func(s *Seen) **inventory.Inventory { return &s.Others }),

		askPublisher: asked(only(packaging.Lofs, queryPublisher), func(s *Seen) *Publisher { return &s.Publisher }),
		askEntire:    asked(only(packaging.Lofs, queryEntire), func(s *Seen) *string { return &s.Entire }),
		askBaseline:  asked(only(packaging.Image, queryBaseline), func(s *Seen) *string { return &s.Baseline }),
		askImages:    asked(only(packaging.Image, queryImages), func(s *Seen) *[]packaging.Sum { return &s.Images }),
		askInstalled: asked(queryInstalled, func(s *Seen) *Installed { return &s.Installed }),
	}
}

func queryRecords(ctx context.Context, s Settings, _ host.Host) (Recorded, error) {
	if s.Records == nil {
		return Recorded{}, nil
	}
	return s.Records(ctx)
}

// queryRoute finds the link of the default route, as bootstrap does.
func queryRoute(ctx context.Context, h host.Host) (string, error) {
	link, err := ipadm.DefaultLink(ctx, h)
	if errors.Is(err, host.ErrNotFound) {
		return "", nil
	}
	return link, err
}

// queryLedger lists where the ledger is, and when each copy was written to.
func queryLedger(_ context.Context, s Settings, h host.Host) ([]Place, error) {
	var all []Place
	for _, at := range ledger.Find(h.Files(), s.LedgerDir) {
		p := Place{Directory: at.Directory}
		if info, err := h.Files().Stat(at.File()); err == nil {
			p.Written = info.Time
		}
		all = append(all, p)
	}
	return all, nil
}

// querySync asks about the datasets that hold the ledger, or will: those of its places,
// and the roots of the M.2s' pools, whose datasets inherit from them.
func querySync(ctx context.Context, s Settings, h host.Host) (map[string]string, error) {
	mounts, err := system.QueryMounts(ctx, h)
	if err != nil {
		return nil, err
	}
	places, err := queryLedger(ctx, s, h)
	if err != nil {
		return nil, err
	}
	wanted := map[string]bool{}
	for _, p := range places {
		if m, ok := system.MountOf(mounts, p.Directory); ok && m.Type == "zfs" {
			wanted[m.Special] = true
		}
	}
	for _, m := range mounts {
		if kind, _ := naming.ParsePool(m.Special); m.Type == "zfs" && kind == naming.InternalPool {
			wanted[m.Special] = true
		}
	}
	return zfs.Sync(ctx, h, sorted(wanted))
}
