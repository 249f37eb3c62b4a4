package instance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/sledctl/sledctl/engine/bundle"
	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/ipadm"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/illumos/reservoir"
	"github.com/sledctl/sledctl/illumos/smf"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/propolis/packaging"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/migration"
	"github.com/sledctl/sledctl/sled/instance/ports"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/instance/secrets"
	"github.com/sledctl/sledctl/vnic"
	"github.com/sledctl/sledctl/zfs"
	"github.com/sledctl/sledctl/zone"
)

// ErrNoPool is a sled without a place for zones: it needs bootstrap.
var ErrNoPool = fault.New(fault.Refused, "no pool is prepared for zones")

// Observed is what an operation on one instance looked at.
type Observed struct {
	Inv  *inventory.Inventory
	Boot string // which boot of the sled this is
	// Planned are the paths of volumes that a dry run would have made.
	Planned map[string]bool
	// Disks says for each file that the instance may use as a disk whether it
	// is there; volumes are datasets.
	Disks map[string]error
	// Missing is what of Propolis is not on the host, where it is mounted from there.
	Missing   []string
	Bootrom   error              // what is wrong with the one that is there
	Packaging packaging.Observed // what the host lacks for each way into a zone
	// Places are where bundles can be written; Nowhere is why there is none.
	Places  []bundle.Place
	Nowhere error
	// Mode is that of the recorded incarnation's zonepath; 0 if it does not exist.
	Mode fs.FileMode
	// Of the zone of the recorded incarnation, when it is running:
	Inside Inside
	// Room is the VMM reservoir; nil where none is configured.
	Room *reservoir.State
	// Processors is how many are on-line; 0 where they were not asked for.
	Processors int
	// Profile is what lies in the zone as its site profile; nil if none.
	Profile []byte
	// Source is what an arrival's source says; zero where nothing arrives.
	Source migration.Peer
	Vault  secrets.Vault // what is kept of the machine's secrets
	Ports  ports.Observed
}

// Inside is what was seen inside a running zone.
type Inside struct {
	Services  map[string]string // state by FMRI, of those we care for
	Addresses []ipadm.Address
	Routes    []ipadm.Route
	VM        migration.VM
	Limits    map[string]vnic.Limits // by the name of a guest VNIC; none where they could not be read
	Err       error                  // why it could not be seen
}

// Look sees what a change of the instance may need: zones and links, the configurations
// and datasets of its zone and of those that no record names, pools, the files named as
// disks, and, if its zone runs, what is inside.
func (s Settings) Look(ctx context.Context, h host.Host, view ledger.View, r record.Record, disks []record.Disk, boot string) (Observed, error) {
	seen := Observed{Boot: boot, Planned: s.planned, Disks: lookAtFiles(h.Files(), disks)}
	want, err := wantOf(view, r, disks)
	if err != nil {
		return Observed{}, err
	}
	seen.Inv = inventory.Look(ctx, h, want)
	if err := seen.Inv.Know(want.Parts...); err != nil {
		return Observed{}, err
	}
	if err := answers(r, seen.Inv); err != nil {
		return Observed{}, err
	}
	for _, file := range []string{s.Propolis.Binary, s.Propolis.Bootrom} {
		info, err := h.Files().Stat(file)
		if err != nil {
			seen.Missing = append(seen.Missing, file)
		} else if file == s.Propolis.Bootrom {
			seen.Bootrom = CheckBootrom(file, info.Size)
		}
	}
	seen.Places, seen.Nowhere = s.Bundles.Ready(h.Files(), seen.Inv.Answering())
	if seen.Room, err = observeReservoir(ctx, s.Reservoir, h); err != nil {
		return seen, err
	}
	if seen.Ports, err = ports.Look(ctx, h, r, seen.Inv); err != nil {
		return seen, err
	}
	if seen.Packaging, err = s.Propolis.Packaging.Look(h.Files()); err != nil || r.Incarnation == nil {
		return seen, err
	}
	if info, err := h.Files().Stat(r.Incarnation.Zonepath); err == nil {
		seen.Mode = info.Mode.Perm()
	}
	return seen, lookInside(ctx, s.Blueprint(), h, r, &seen)
}

// lookAtFiles reports for each disk that is a file whether it exists.
func lookAtFiles(files host.Files, disks []record.Disk) map[string]error {
	found := map[string]error{}
	for _, d := range disks {
		if _, volume := d.Volume(); !volume {
			info, err := files.Stat(d.Path)
			if err == nil && info.Mode.IsDir() {
				err = syscall.EISDIR
			}
			found[d.Path] = err
		}
	}
	return found
}

// LostPoolError is a pool that does not answer: what an instance has on it can
// neither be seen nor changed, and is not gone.
type LostPoolError struct{ Pool, Health string }

// Error says how the pool is.
func (e *LostPoolError) Error() string {
	return fmt.Sprintf("pool %s, which holds its zone, is %s", e.Pool, e.Health)
}

func (*LostPoolError) Kind() fault.Kind { return fault.Refused }

// Hint says where to look.
func (e *LostPoolError) Hint() string {
	return "to see its disk, run: sledctl storage list; when the pool answers, run: sledctl bootstrap, then this command again"
}

// answers refuses an instance whose pool does not answer.
func answers(r record.Record, inv *inventory.Inventory) error {
	if r.Incarnation == nil {
		return nil
	}
	pools, err := inv.Pools()
	for _, p := range pools {
		if r.Incarnation.Pool() == p.Name && !p.Answers() {
			return &LostPoolError{Pool: p.Name, Health: p.Health}
		}
	}
	return err
}

// parentDepth is how many names below its pool a dataset in which zones lie has at most.
const parentDepth = 2

// wantOf is what a change of an instance looks at. Zones and datasets of other instances
// count as taken by their records, and are not looked at; those that no record names are.
func wantOf(view ledger.View, r record.Record, disks []record.Disk) (inventory.Want, error) {
	names, err := recordedNames(view)
	if err != nil {
		return inventory.Want{}, err
	}
	whole, err := treesOf(view, r, disks)
	if err != nil {
		return inventory.Want{}, err
	}
	own := r.Incarnations()
	return inventory.Want{
		Parts: []inventory.Part{inventory.Rival, inventory.Zones, inventory.Configs, inventory.Links, inventory.Pools, inventory.Datasets},
		Roots: datasetRoots(disks), User: []string{naming.PropertyInstance, naming.PropertySpec, naming.PropertyBase},
		OfZones: func(name string) bool {
			return names.zones[name] == "" || slices.ContainsFunc(own, func(i record.Incarnation) bool { return i.Zone == name })
		},
		Narrow: &inventory.Narrow{
			Depth: parentDepth, Whole: whole,
			Recorded: func(d zfs.Dataset) bool {
				id := names.datasets[d.Name]
				return id != "" && id == d.User[naming.PropertyInstance].Value
			},
		},
	}, nil
}

// namesRecorded says which instance's zones and datasets are, by their names.
type namesRecorded struct{ zones, datasets map[string]string }

func recordedNames(view ledger.View) (namesRecorded, error) {
	records, err := record.All(view)
	names := namesRecorded{zones: make(map[string]string, len(records)), datasets: make(map[string]string, len(records))}
	for _, r := range records {
		for _, incarnation := range r.Incarnations() {
			names.zones[incarnation.Zone], names.datasets[incarnation.Dataset] = r.ID, r.ID
		}
	}
	return names, err
}

// treesOf are the datasets of which also what lies below them is looked at: those of the
// instance and of the bases of its zones, the spares, and the volumes that are wanted as
// disks.
func treesOf(view ledger.View, r record.Record, disks []record.Disk) ([]string, error) {
	var trees []string
	for _, incarnation := range r.Incarnations() {
		trees = append(trees, incarnation.Dataset)
		if incarnation.BaseDataset != "" {
			trees = append(trees, incarnation.BaseDataset)
		}
	}
	spares, err := record.Spares(view)
	for _, spare := range spares {
		trees = append(trees, spare.Dataset)
	}
	for _, d := range disks {
		if volume, ok := d.Volume(); ok {
			trees = append(trees, volume)
		}
	}
	return trees, err
}

// datasetRoots picks the datasets to look at: where zones lie, and the volumes that
// are wanted as disks.
func datasetRoots(disks []record.Disk) func([]zfs.Pool) []string {
	return func(pools []zfs.Pool) []string {
		roots := inventory.ZonePools(pools)
		for _, d := range disks {
			volume, ok := d.Volume()
			pool, _, _ := strings.Cut(volume, "/")
			known := slices.ContainsFunc(pools, func(p zfs.Pool) bool { return p.Name == pool })
			if ok && known && !slices.Contains(roots, pool) {
				roots = append(roots, pool)
			}
		}
		return roots
	}
}

func lookInside(ctx context.Context, b layout.Blueprint, h host.Host, r record.Record, seen *Observed) error {
	z, there := seen.Inv.Zone(r.Incarnation.Zone)
	if !there {
		return nil
	}
	if z.State == zone.Installed || z.State == zone.Running {
		profile, err := readProfile(h.Files(), r.Incarnation.Zonepath)
		if err != nil {
			return err
		}
		seen.Profile = profile
	}
	if z.State != zone.Running {
		return nil
	}
	seen.Inside.Limits = LookLimits(ctx, h, *r.Incarnation)
	states, err := smf.States(ctx, h, r.Incarnation.Zone)
	if err == nil {
		seen.Inside.Services = states
		if states[layout.Milestone] == "online" {
			seen.Inside.Addresses, err = ipadm.Addresses(ctx, h, r.Incarnation.Zone)
		}
		if err == nil && layout.GatewayOf(b, r.Spec.Address).IsValid() && states[layout.Milestone] == "online" {
			seen.Inside.Routes, err = ipadm.Routes(ctx, h, r.Incarnation.Zone)
		}
	}
	seen.Inside.Err = err
	if service := layout.ServiceFMRI(b, r); states[service] == "online" || service == record.ByHand {
		seen.Inside.VM = askVM(ctx, b, h, r)
		if seen.Inside.VM.State != "" {
			now := vmStatus(ctx, b, h, r)
			seen.Inside.VM.Generation, seen.Inside.VM.Migration = now.Generation, now.Migration
		}
	}
	return nil
}

// vmStatus is the machine's state with its generation and its migrations; zero if
// it cannot be determined. A wait for the next state begins at that generation.
func vmStatus(ctx context.Context, b layout.Blueprint, h host.Host, r record.Record) propolis.Status {
	ctx, release := context.WithTimeout(ctx, layout.AskTimeout)
	defer release()
	client := propolis.Client{Host: h, Target: layout.TargetOf(b, r)}
	now, err := client.Monitor(ctx, 0)
	if err != nil {
		return propolis.Status{}
	}
	return now
}

// readProfile reads the site profile through a view that cannot leave the
// zone's root: a guest may have planted links there.
func readProfile(files host.Files, zonepath string) ([]byte, error) {
	root, err := files.In(path.Join(zonepath, "root"))
	if err != nil {
		return nil, nil // not mounted: nothing is written there either
	}
	data, err := host.ReadFile(root, smf.SiteProfile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// askVM asks the instance's Propolis for its machine.
func askVM(ctx context.Context, b layout.Blueprint, h host.Host, r record.Record) migration.VM {
	ctx, release := context.WithTimeout(ctx, layout.AskTimeout)
	defer release()
	client := propolis.Client{Host: h, Target: layout.OwnTarget(b, r)}
	answer, err := client.Get(ctx)
	if err != nil {
		return migration.VM{Err: err}
	}
	return migration.VM{State: answer.State, ID: answer.Properties.ID}
}

// startOf is where an incarnation begins: nothing was made.
func startOf(b layout.Blueprint, incarnation record.Incarnation, seen Observed) progress {
	return progress{vnics: map[string]bool{}, ports: seen.Ports, wide: layout.LinkHasMTU(b, incarnation, seen.Inv), without: seen.Packaging.Without}
}

// progressOf compares what was seen with what the record says must be.
func progressOf(b layout.Blueprint, r record.Record, seen Observed) progress {
	p := startOf(b, *r.Incarnation, seen)
	p.compareLinks(layout.PackagingOf(b, *r.Incarnation), *r.Incarnation, seen)
	p.compareZone(b, r, seen)
	if p.booted {
		p.compareLimits(r, seen)
		p.compareAddress(b, r, seen)
		p.comparePropolis(b, r, seen)
	}
	return p
}

func (p *progress) compareLinks(k layout.Packaging, incarnation record.Incarnation, seen Observed) {
	for _, v := range incarnation.VNICs() {
		l, ok := seen.Inv.Link(v.Name)
		p.vnics[v.Name] = ok && v.Is(l)
		if v == incarnation.Control {
			p.mtu = k.MTU == 0 || l.MTU == k.MTU || l.Zone != "" // in a zone it is what it was booted with
		}
	}
}

func (p *progress) compareLimits(r record.Record, seen Observed) {
	p.held, p.limits = map[string]bool{}, seen.Inside.Limits
	for _, v := range r.Incarnation.Guests {
		p.held[v.Name] = isHeld(r, v, seen.Inside.Limits)
	}
}

func (p *progress) compareZone(b layout.Blueprint, r record.Record, seen Observed) {
	incarnation := *r.Incarnation
	d, ok := seen.Inv.Dataset(incarnation.Dataset)
	p.dataset = ok && d.User[naming.PropertyInstance].Value == r.ID && d.User[naming.PropertyInstance].Source == "local"
	p.memo = d.User[naming.PropertySpec]
	z, there := seen.Inv.Zone(incarnation.Zone)
	config, configured := seen.Inv.Config(incarnation.Zone)
	wanted := layout.ZoneConfig(b, r)
	p.configured = there && configured && sameConfig(config.WithCap(wanted.CPUCap), wanted)
	if p.configured && config.CPUCap != wanted.CPUCap {
		p.cap = &zone.SetCap{Name: incarnation.Zone, Old: config.CPUCap, New: wanted.CPUCap}
	}
	p.installed = p.configured && (z.State == zone.Installed || z.State == zone.Running)
	p.mounted = d.Mounted
	p.private = p.mounted && seen.Mode == layout.ZonepathMode || p.installed // zoneadm has made it so
	p.profiled = p.installed && bytes.Equal(seen.Profile, smf.RenderProfile(layout.ProfileOf(b, r)))
	p.booted = p.installed && z.State == zone.Running
	p.noted = says(p.memo, r)
}

// says reports whether a dataset says what an instance is.
func says(memo zfs.Value, r record.Record) bool {
	return record.MemoOf(r) == "" || memo.Source == zfs.Local && memo.Value == record.MemoOf(r)
}

func (p *progress) compareAddress(b layout.Blueprint, r record.Record, seen Observed) {
	for _, a := range seen.Inside.Addresses {
		switch a.Object {
		case r.Incarnation.Control.Name + "/ll":
			p.linkLocal = true
		case layout.AddressObject(b, r):
			static := r.Spec.Address.Mode == record.Static
			p.address = !static || a.Address == r.Spec.Address.Prefix
			p.usable = p.usable || p.address && a.State == ipadm.OK && (static || isRoutable(a))
		}
	}
	gateway := layout.GatewayOf(b, r.Spec.Address)
	p.routed = slices.ContainsFunc(seen.Inside.Routes, func(x ipadm.Route) bool {
		return x.Destination == "default" && x.Gateway == gateway.String()
	})
}

func isRoutable(a ipadm.Address) bool {
	return a.Address.IsValid() && !a.Address.Addr().IsLinkLocalUnicast()
}

func (p *progress) comparePropolis(b layout.Blueprint, r record.Record, seen Observed) {
	p.settled = seen.Inside.Services[layout.Milestone] == "online"
	state := seen.Inside.Services[layout.ServiceFMRI(b, r)]
	if layout.ServiceFMRI(b, r) == record.ByHand && seen.Inside.VM.Err == nil {
		state = "online"
	}
	// A service on its way may be on its teardown.
	p.enabled = state == smf.Online || layout.PackagingOf(b, *r.Incarnation).ByItself && state != smf.Disabled
	p.online = state == "online"
	p.ensured = p.online && seen.Inside.VM.ID == r.ID
	p.noted = p.noted || p.ensured && record.TellsCloudInit(p.memo.Value, r)
	p.running = p.ensured && seen.Inside.VM.State == "Running"
}

// sameConfig ignores the order in which a configuration lists its resources,
// and an empty list's nil.
func sameConfig(found, wanted zone.Config) bool { return len(zone.Compare(wanted, found)) == 0 }
