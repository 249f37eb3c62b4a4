// Package instance runs VMs, each in a zone of its own with its VNICs, its address
// and a Propolis server.
//
// A record in the ledger (package record) says what is wanted; the host shows what
// exists. An incarnation is one bring-up of an instance, from its VNICs to its
// Propolis server: stop ends it, and start begins another with the same addresses.
// There is one bring-up and one teardown; every operation chooses its actions from
// these two.
package instance

import (
	"context"
	"net/netip"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/engine/bundle"
	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// Settings are what instances take from the sled's configuration and from the
// packages next to this one.
type Settings struct {
	Names naming.Prefixes
	// Probe says that zones and control VNICs are made with a probe's prefixes.
	Probe bool
	// Namespace is the sled's own, in which names become ids.
	Namespace uuid.UUID

	// Asks is who asks for what is done; empty: the sled itself, which carries out what a keeper
	// has asked for.
	Asks record.Keeper

	// ControlLink is what control VNICs lie over: an etherstub or a link.
	ControlLink string
	// GZVNIC is the global zone's own link, by which it reaches control addresses;
	// empty: it has a way of its own.
	GZVNIC    string
	GuestLink string // what guest VNICs lie over unless told otherwise
	MTU       int    // of control VNICs; 0 leaves what the link gives

	// Underlay is the network of the control addresses; invalid: there is
	// none, and addresses come by DHCP.
	Underlay netip.Prefix
	Reserved []netip.Addr // addresses within it that are not to be given out
	Gateway  netip.Addr   // default route of control addresses; may be absent
	OPTE     layout.OPTE

	CPUs   int
	Memory uint64
	// Pools are the pools that zones may be put on, in order of preference;
	// nil: every external pool, else the fallback.
	Pools []string

	// Reservoir says that memory is set aside, and no instance gets more than is
	// free of it.
	Reservoir bool

	Propolis layout.Propolis
	// Versions, if set, is what is known of the versions that Propolis servers take.
	Versions *propolis.Versions
	RunDir   string
	// SecretDir is where secrets of machines lie whose pool has no encrypted
	// dataset; empty: there is no such place.
	SecretDir string

	// Bundles says where what a failed instance's zone can tell goes.
	Bundles bundle.Settings

	// Spares is how many zones are cloned ahead on each pool, and SparesBooted how many of them
	// are kept booted.
	Spares, SparesBooted int

	// Disk is the slot of the disk that a pool lies on, e.g. u2:3, as recorded; empty: it
	// is not known. Nil: nothing is.
	Disk func(view ledger.View, pool string) string
	// Volume is the raw device of a volume, by its name; nil: there are none.
	Volume func(view ledger.View, name string) (path string, err error)
	// MayStart refuses to start an instance whose disks are of different moments; nil: none are.
	MayStart func(view ledger.View, id string) error
	// Followers are the volumes that go with an instance that is deleted, or that has moved to another sled; nil: none.
	Followers func(view ledger.View, inv *inventory.Inventory, datasets []string, moved bool) (Followers, error)
	// MakeVolume makes a volume for an instance that is made with it, and DropVolume takes it back
	// where the instance could not be made, and says what it left, e.g. because what is left of the
	// instance has it; nil: none are made.
	MakeVolume func(ctx context.Context, env operation.Env, name string, d record.NewDisk, dryRun, keep bool) (path string, report operation.Report, err error)
	DropVolume func(ctx context.Context, env operation.Env, name string) (left string, err error)
	planned    map[string]bool // paths of volumes that a dry run would have made
	// Base is the base zone of a pool, as recorded; false when it has none.
	Base func(view ledger.View, pool string) (Base, bool)
	// MakeBase creates the base zone of a pool; nil: one that is missing is an error.
	MakeBase func(ctx context.Context, env operation.Env, pool string, dryRun, keep bool) (Base, operation.Report, error)
}

// Followers are removed with an instance: actions behind its teardown, what they remove, the facts
// that forget it, and what is to be reported.
type Followers struct {
	Actions []plan.Action
	Removes []operation.Object
	Facts   []ledger.Fact
	Warn    []error
}

// Base is a zone that instances are cloned from.
type Base struct {
	Zone    string
	UUID    string // of its installation
	Dataset string // of its zonepath
	Mark    string // that its dataset must carry
	Brand   string
	// Planned is a base that is not made yet: a dry run plans with it.
	Planned bool
}

// ID is the id that a name stands for on this sled: version 5 of its own
// namespace.
func (s Settings) ID(name string) string { return naming.InstanceID(s.Namespace, name).String() }

func (s Settings) Blueprint() layout.Blueprint {
	return layout.Blueprint{MTU: s.MTU, Underlay: s.Underlay, Gateway: s.Gateway, Propolis: s.Propolis, Versions: s.Versions, OPTE: s.OPTE}
}

// Find reads the record of the instance that ref, a name or an id, means.
func (s Settings) Find(view ledger.View, ref string) (record.Record, error) {
	id, err := record.Resolve(s.Namespace, view, ref)
	if err != nil {
		return record.Record{}, err
	}
	r, ok, err := record.Load(view, id)
	if err == nil && !ok {
		err = record.Missing(view, ref)
	}
	return r, err
}
